"""Draw what the commands on files print, for docs/files.md.

python benchmarks/labelme.py --write FOLDER && python docs/terminal.py FOLDER
"""

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

COMMANDS = {
    "audit": "demur audit train.parquet --features f1:f512 --answers answers.csv --id image",
    "fit": "demur fit train.parquet --features f1:f512 --answers answers.csv --id image "
    "--method dst-pll -o model.demur",
    "predict": "demur predict model.demur test.parquet -o decisions.csv --rejected look.csv",
    "explain": "demur explain model.demur test.parquet --row 4",
    "evaluate": "demur evaluate model.demur test.parquet --truth label --plot curve.png",
}
FOLDER = Path(__file__).parent / "terminal"


def main() -> None:
    """Run the commands, and draw what they print."""
    where = Path(sys.argv[1])
    FOLDER.mkdir(exist_ok=True)
    for name, command in COMMANDS.items():
        words = [sys.executable, "-c", "from demur.cli import main; main()", *command.split()[1:]]
        done = subprocess.run(words, cwd=where, capture_output=True, text=True, check=True)
        console = Console(record=True, width=100, file=io.StringIO())
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text(done.stdout.rstrip()))
        svg = console.export_svg(title="", unique_id=name)
        # No font is fetched from elsewhere: any of the reader's with fixed width will do.
        svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
        svg = svg.replace("Fira Code", "DejaVu Sans Mono")
        (FOLDER / f"{name}.svg").write_text(svg)


if __name__ == "__main__":
    main()
