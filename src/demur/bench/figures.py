"""All figures of a folder of results, each as PDF and PNG."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from demur.bench import drawing
from demur.bench.curves import Setting, TradeOffCurve, describe, trade_off_curves
from demur.bench.measures import measure_runs
from demur.bench.neighborhoods import KS, k_sensitivity, neighbor_candidates
from demur.bench.prepare import Data, load_data
from demur.bench.published import reference_method
from demur.bench.spec import REAL
from demur.bench.store import Results, read_results
from demur.bench.tables import ALPHA, rankings
from demur.theory import PAPER, expected_mass_curve

KINDS = ("trade-off", "ranks", "k-sensitivity", "neighbors", "expected-masses")
FORMATS = ("pdf", "png")
N_NEIGHBORS = 10  # whose candidates the heat maps count
N_FOLDS = 5
N_DRAWS = 100_000
_A_PAGE = 12  # settings on a page of trade-off curves
_LONGEST_NAME = 100  # of a file


@dataclass
class Drawn:
    """What became of the figures.

    Attributes
    ----------
    files : list of Path
    left_out : list of str
        Figures that could not be drawn, and why.
    """

    files: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def draw_figures(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    kinds: Collection[str] = KINDS,
    data: str | Path | None = None,
    n_draws: int = N_DRAWS,
    watch: Callable[[str], object] = lambda name: None,
) -> Drawn:
    """Draw figures of a folder of results.

    Parameters
    ----------
    folder : path
        Of ``demur bench run --out``.
    out : path, optional
        Where to put the files; ``folder/figures`` by default, made if missing.
    kinds : collection of str
        Some of `KINDS`: trade-off curves, one file a setting and pages of all; average ranks
        with their critical difference; for each set with candidates of its own how k matters,
        and which candidates the neighbours have; expected masses, worked out and simulated.
    data : path, optional
        Folder of the datasets, for the two kinds that look at neighbours.
    n_draws : int, default=100_000
        Of the simulation, for each number of neighbours.
    watch : callable
        Is given the name of each figure before it is drawn.

    Returns
    -------
    Drawn
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(f"no figure is called {unknown[0]!r}; there are {', '.join(KINDS)}.")
    pen = _Pen(Path(folder, "figures") if out is None else Path(out), watch)
    with drawing.house_style():
        if set(kinds) != {"expected-masses"}:
            _draw_results(read_results(folder), kinds, data, pen)
        if "expected-masses" in kinds:
            pen.watch("expected-masses")
            curve = expected_mass_curve(PAPER, n_draws=n_draws, random_state=0)
            pen.save(drawing.expected_masses_figure(curve, n_draws), "expected-masses")
    return pen.drawn


def _draw_results(
    results: Results, kinds: Collection[str], data: str | Path | None, pen: _Pen
) -> None:
    if {"trade-off", "ranks"} & set(kinds):
        measures = measure_runs(results, reference=reference_method())  # refuses mixed results
    if "trade-off" in kinds:
        _draw_trade_offs(trade_off_curves(results), pen)
    if "ranks" in kinds:
        found = rankings(measures)
        for name, (methods, ranks) in found.items():
            few = "setting" if ranks.n_settings == 1 else "settings"
            title = f"Average ranks by {name}: {ranks.n_settings} {few}, level {ALPHA}"
            pen.watch(f"ranks by {name}")
            pen.save(drawing.ranks_figure(methods, ranks, title), f"ranks-{name}")
        if not found:
            pen.drawn.left_out.append("ranks: no two methods ran in the same setting.")
    if {"k-sensitivity", "neighbors"} & set(kinds):
        _draw_neighborhoods(results, kinds, data, pen)


def _draw_trade_offs(curves: Sequence[TradeOffCurve], pen: _Pen) -> None:
    groups = by_setting(curves)
    titles = drawing.titles_of(groups)
    for group, title in zip(groups, titles, strict=True):
        pen.watch(f"trade-off of {title}")
        pen.save(drawing.trade_off_figure(group, title), f"trade-off-{title}")
    for page, start in enumerate(range(0, len(groups), _A_PAGE), start=1):
        pen.watch(f"trade-offs, page {page}")
        part = slice(start, start + _A_PAGE)
        pen.save(drawing.trade_off_page(groups[part], titles[part]), f"trade-offs-page-{page}")


def by_setting(curves: Sequence[TradeOffCurve]) -> list[list[TradeOffCurve]]:
    """The curves of each setting, as they come from `trade_off_curves`."""
    return [list(group) for _, group in groupby(curves, key=lambda curve: curve.setting)]


# ------------------------------------------------------------------------ neighbourhoods


def _draw_neighborhoods(
    results: Results, kinds: Collection[str], data: str | Path | None, pen: _Pen
) -> None:
    wanted = [kind for kind in ("k-sensitivity", "neighbors") if kind in kinds]
    found = list(_real_sets(results, None if data is None else str(data), wanted, pen))
    if "k-sensitivity" in wanted and found:
        curves = {}
        for title, loaded in found:
            pen.watch(f"k-sensitivity on {title}")
            n_train = len(loaded.y) - -(-len(loaded.y) // N_FOLDS)
            ks = [k for k in KS if k < n_train]
            curves[title] = k_sensitivity(
                loaded.X, loaded.candidates, _labels(loaded), ks, n_folds=N_FOLDS
            )
        pen.save(drawing.k_sensitivity_figure(curves), "k-sensitivity")
    for title, loaded in found if "neighbors" in wanted else ():
        pen.watch(f"neighbors on {title}")
        counted = neighbor_candidates(loaded.X, loaded.candidates, _labels(loaded), N_NEIGHBORS)
        pen.save(
            drawing.neighbor_candidates_figure(counted, title, N_NEIGHBORS), f"neighbors-{title}"
        )


def _real_sets(
    results: Results, folder: str | None, wanted: Sequence[str], pen: _Pen
) -> Iterator[tuple[str, Data]]:
    """The datasets among the results that bring candidates of their own, as far as they load."""
    keys = results.runs.loc[results.runs["noise"] == REAL, ["dataset", "classes"]]
    settings = [Setting(d, c, REAL) for d, c in sorted(set(keys.itertuples(index=False)))]
    kinds = ", ".join(wanted)
    if not settings:
        pen.drawn.left_out.append(f"{kinds}: no run is of a set with candidates of its own.")
    for setting in settings:
        title = describe(setting, settings).removesuffix(f", {REAL}")
        try:
            yield title, load_data(setting.dataset, setting.classes, folder)
        except (ValueError, OSError) as error:
            pen.drawn.left_out.append(f"{kinds} of {title}: {error}")


def _labels(data: Data) -> Any:
    """The true labels by their names."""
    assert data.candidates is not None, "only sets with candidates of their own are looked at"
    return np.asarray(data.candidates.classes)[data.y]


# ------------------------------------------------------------------------------- writing


class _Pen:
    """Writes figures, each under a name of its own."""

    def __init__(self, folder: Path, watch: Callable[[str], object]) -> None:
        self.folder, self.watch = folder, watch
        self.drawn = Drawn()
        self._taken: set[str] = set()

    def save(self, figure: Any, name: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = self._stem(name)
        for ending in FORMATS:
            path = self.folder / f"{stem}.{ending}"
            # Without a date, so that the same results give the same file.
            undated = {"CreationDate": None} if ending == "pdf" else {}
            figure.savefig(path, metadata={"Title": name, **undated})
            self.drawn.files.append(path)

    def _stem(self, name: str) -> str:
        """A name for files: whatever it came from, it stays in the folder, and is no other's."""
        lower = name.lower().replace("λ", "lambda")
        plain = re.sub(r"[^a-z0-9.]+", "-", lower).strip("-.")[:_LONGEST_NAME] or "figure"
        stem, n = plain, 1
        while stem in self._taken:
            n += 1
            stem = f"{plain}-{n}"
        self._taken.add(stem)
        return stem
