"""A table of means by method, and the ways to write it: text, Markdown, LaTeX, CSV."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from demur.bench.published import Published

_WIDTH = 100  # of text
_ABSENT = "–"
_PLUS_MINUS = "±"
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "λ": r"$\lambda$",
        "–": "--",
    }
)


class Column(NamedTuple):
    """One column of a table.

    Attributes
    ----------
    group : str
        Heading over this column and its neighbours of the same group; may be empty.
    name : str
    decimals : int, default=1
    published_decimals : int, default=1
        As many as the text printed.
    """

    group: str
    name: str
    decimals: int = 1
    published_decimals: int = 1

    @property
    def title(self) -> str:
        """Heading in one line."""
        return ", ".join(part for part in (self.group, self.name) if part)


class Cell(NamedTuple):
    """What a method reached in a column, in the unit of the column.

    Attributes
    ----------
    mean : float
    std : float
        Standard deviation over what the mean is of; NaN where there is none to tell.
    interval : tuple of two floats, optional
        Around the mean, told in place of the standard deviation.
    n : int
        How many pairs of setting and seed, or settings, the mean is of.
    p_value : float
        Of the test against the best.
    among_best : bool
    """

    mean: float
    std: float = float("nan")
    interval: tuple[float, float] | None = None
    n: int = 0
    p_value: float = float("nan")
    among_best: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a row for each method.

    Parameters
    ----------
    name : str
        Of the files, without ending.
    title : str
    columns : tuple of Column
    methods : tuple of str
    cells : mapping of (method, column) to Cell
        What is not there is shown as a dash.
    published : mapping of (method, column) to Published
        The text's numbers, shown in brackets.
    notes : tuple of str
        Told under the table.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    methods: tuple[str, ...]
    cells: Mapping[tuple[str, Column], Cell]
    published: Mapping[tuple[str, Column], Published]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.to_text()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All numbers, unrounded, one row for each method and column."""
        records = []
        for column in self.columns:
            for method in self.methods:
                cell, told = self.cells.get((method, column)), self.published.get((method, column))
                if cell is None and told is None:
                    continue
                low, high = (cell and cell.interval) or (np.nan, np.nan)
                records.append(
                    {
                        "method": method,
                        "group": column.group,
                        "column": column.name,
                        "mean": cell.mean if cell else np.nan,
                        "std": cell.std if cell else np.nan,
                        "low": low,
                        "high": high,
                        "n": cell.n if cell else 0,
                        "p_value": cell.p_value if cell else np.nan,
                        "among_best": bool(cell and cell.among_best),
                        "published_mean": told.mean if told else np.nan,
                        "published_std": told.std if told else np.nan,
                        "published_best": bool(told and told.best),
                    }
                )
        return pd.DataFrame(records)

    # --------------------------------------------------------------------- ways to write it

    def to_csv(self) -> str:
        """All numbers, unrounded, one line for each method and column."""
        return str(self.frame.to_csv(index=False))

    def to_text(self) -> str:
        """For a terminal: columns side by side as far as a line goes, then below each other."""
        first = max(map(len, ("method", *self.methods)))
        blocks: list[list[list[str]]] = []
        room = 0
        for column in self.columns:
            lines = self._text_column(column)
            if not blocks or room + 2 + len(lines[0]) > _WIDTH:
                blocks.append([[line.ljust(first) for line in ("", "method", *self.methods)]])
                room = first
            room += 2 + len(lines[0])
            blocks[-1].append(lines)
        parts = ["\n".join(textwrap.wrap(self.title, _WIDTH))]
        for block in blocks:
            head, names, *body = ["  ".join(line).rstrip() for line in zip(*block, strict=True)]
            rule = "-" * max(map(len, (head, names, *body)))
            parts.append("\n".join(line for line in (head, names, rule, *body) if line))
        parts.append("\n".join(textwrap.fill(note, _WIDTH) for note in self.notes))
        return "\n\n".join(part for part in parts if part) + "\n"

    def _text_column(self, column: Column) -> list[str]:
        told = [self._parts(method, column) for method in self.methods]
        wide = [max(len(part) for part in parts) for parts in zip(*told, strict=True)]
        marked = [
            # Where nothing is among the best there is no place for the mark either.
            mean.rjust(wide[0])
            + ("*" if self._is_best(method, column) else " ")
            + "".join(
                f" {part.rjust(width)}" for part, width in zip(rest, wide[1:], strict=True) if width
            )
            for method, (mean, *rest) in zip(self.methods, told, strict=True)
        ]
        lines = [column.group, column.name, *(line.rstrip() for line in marked)]
        width = max(map(len, lines))
        return [line.ljust(width) for line in lines]

    def to_markdown(self) -> str:
        """A Markdown table with a title above and notes below."""
        rows = [["method", *(column.title for column in self.columns)]]
        for method in self.methods:
            row = [method]
            for column in self.columns:
                mean, *rest = self._parts(method, column)
                if self._is_best(method, column):
                    mean = f"**{mean}**"
                row.append(" ".join(" ".join((mean, *rest)).split()))
            rows.append(row)
        cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
        rule = ["---", *["---:"] * len(self.columns)]
        lines = [f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])]
        notes = "\n".join(f"- {_escaped_stars(note)}" for note in self.notes)
        parts = [f"**{self.title}**", "\n".join(lines), notes]
        return "\n\n".join(part for part in parts if part) + "\n"

    def to_latex(self) -> str:
        """A ``table`` of LaTeX; it needs the package booktabs."""
        rows = [" & ".join(["method", *(_escaped(column.name) for column in self.columns)])]
        for method in self.methods:
            row = [_escaped(method)]
            for column in self.columns:
                mean, *rest = map(_escaped, self._parts(method, column))
                if self._is_best(method, column):
                    mean = rf"\textbf{{{mean}}}"
                row.append(" ".join(" ".join((mean, *rest)).split()))
            rows.append(" & ".join(row))
        head = self._latex_groups()
        notes = [rf"\par {_escaped(note)}" for note in self.notes]
        return "\n".join(
            [
                "% needs \\usepackage{booktabs}",
                r"\begin{table}",
                rf"\caption{{{_escaped(self.title)}}}",
                rf"\label{{tab:{self.name}}}",
                r"\centering\small",
                rf"\begin{{tabular}}{{l{'r' * len(self.columns)}}}",
                r"\toprule",
                *head,
                rf"{rows[0]} \\",
                r"\midrule",
                *(rf"{row} \\" for row in rows[1:]),
                r"\bottomrule",
                r"\end{tabular}",
                *([r"\par\smallskip\raggedright\footnotesize", *notes] if notes else []),
                r"\end{table}",
                "",
            ]
        )

    def _latex_groups(self) -> list[str]:
        """The line of headings over several columns, and the rules below them."""
        heads, rules, at = [""], [], 2
        for group, members in groupby(column.group for column in self.columns):
            n = len(list(members))
            heads.append(rf"\multicolumn{{{n}}}{{c}}{{{_escaped(group)}}}")
            if group:
                rules.append(rf"\cmidrule(lr){{{at}-{at + n - 1}}}")
            at += n
        return [rf"{' & '.join(heads)} \\", "".join(rules)] if rules else []

    def write(self, folder: Path) -> None:
        """Write all four into a folder: NAME.txt, NAME.md, NAME.tex, NAME.csv."""
        for ending, text in {
            "txt": self.to_text(),
            "md": self.to_markdown(),
            "tex": self.to_latex(),
            "csv": self.to_csv(),
        }.items():
            (folder / f"{self.name}.{ending}").write_text(text, encoding="utf-8")

    # --------------------------------------------------------------------- cells

    def _is_best(self, method: str, column: Column) -> bool:
        cell = self.cells.get((method, column))
        return cell is not None and cell.among_best

    def _parts(self, method: str, column: Column) -> tuple[str, str, str]:
        """Mean, its spread or interval, and the text's number; each may be empty."""
        cell, told = self.cells.get((method, column)), self.published.get((method, column))
        text = f"[{told.mean:.{column.published_decimals}f}]" if told else ""
        if cell is None:
            return _ABSENT, "", text
        digits = column.decimals
        if cell.interval is not None:
            low, high = cell.interval
            spread = f"({low:.{digits}f} to {high:.{digits}f})"
        elif np.isnan(cell.std):
            spread = ""
        else:
            spread = f"{_PLUS_MINUS} {self._padded(cell.std, column)}"
        return f"{cell.mean:.{digits}f}", spread, text

    def _padded(self, std: float, column: Column) -> str:
        """A standard deviation as wide as the widest of its column, for the columns of text."""
        stds = [cell.std for (_, own), cell in self.cells.items() if own == column]
        wide = max(len(f"{s:.{column.decimals}f}") for s in stds)
        return f"{std:.{column.decimals}f}".rjust(wide)


def _escaped_stars(text: str) -> str:
    return text.replace("*", r"\*")


def _escaped(text: str) -> str:
    return text.translate(_LATEX)
