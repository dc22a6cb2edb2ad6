"""The command line: parses, calls the library, prints. One file a command or group of them.

Libraries are imported inside the commands, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

from demur import __version__

try:
    import typer
except ImportError:
    sys.exit('the command line needs typer and rich; install them with `pip install "demur[cli]"`.')

from demur.cli import bench, data
from demur.cli.audit import audit
from demur.cli.demo import demo
from demur.cli.evaluate import evaluate
from demur.cli.explain import explain
from demur.cli.fit import fit
from demur.cli.plan import plan
from demur.cli.predict import predict

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
for command in (audit, fit, predict, plan, explain, evaluate):
    app.command()(command)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"demur {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say which, and end."),
    ] = False,
) -> None:
    """Learn from candidate labels, and abstain where the answer is not sure."""


def main() -> None:
    """Entry point of the command `demur`: wrong usage is told in one line, exit code 2."""
    try:
        sys.exit(app(standalone_mode=False))
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        # typer's errors have no public name in common.
        told = getattr(error, "format_message", str)()
        if not hasattr(error, "exit_code") or "\n" in told:
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "demur"
        if told:  # else the help was asked for, and given
            typer.echo(f"{command}: {told} (see {command} --help)", err=True)
        sys.exit(error.exit_code)
