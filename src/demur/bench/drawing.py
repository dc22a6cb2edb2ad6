"""How each figure is drawn: numbers in, a matplotlib figure out; nothing is computed here.

Everything can be read in grey: methods differ by dashes, markers and lightness, not by colour
alone. Fonts are those that come with matplotlib, and PDF files have them inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.bench.curves import TradeOffCurve, describe, in_order
from demur.bench.neighborhoods import KSensitivity, NeighborCandidates
from demur.bench.statistics import Ranks, alike_groups
from demur.bench.styles import styles_of
from demur.theory import ExpectedMassCurve

_RC = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 8.5,
    "axes.edgecolor": "0.25",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,  # fonts as they are, not as drawings of letters
    "text.usetex": False,
    "savefig.dpi": 200,
}
_COLUMNS = 3  # of a page of trade-off curves
_MOST_NAMED = 30  # classes; more names than these cannot be read along an axis


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save inside this, so that all figures look alike."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib; install it with `pip install "demur[plot]"`.'
        ) from error
    with mpl.rc_context({**mpl.rcParamsDefault, **_RC, "backend": mpl.rcParams["backend"]}):
        yield


def _figure(width: float, height: float) -> Any:
    """A figure that no window belongs to."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _name(text: object, length: int = 24) -> str:
    """A name as it is, dollars start no formula; one that is too long ends in dots."""
    told = str(text)
    told = told if len(told) <= length else f"{told[: length - 1]}…"
    return told.replace("$", r"\$")


# ------------------------------------------------------------------------ trade-off curves


def trade_off_figure(curves: Sequence[TradeOffCurve], title: str) -> Any:
    """The curves of one setting, large."""
    figure = _figure(5.8, 3.6)
    ax = figure.subplots()
    _trade_off(ax, curves)
    ax.set_title(_name(title, 64), loc="left")
    ax.set(xlabel="Rejected predictions", ylabel="Accuracy of the accepted")
    figure.legend(
        handles=_methods_legend(in_order(c.method for c in curves)),
        title="Marker: the method's\nown threshold",
        loc="outside right upper",
        alignment="left",
        handlelength=4.5,
    )
    return figure


def trade_off_page(settings: Sequence[Sequence[TradeOffCurve]], titles: Sequence[str]) -> Any:
    """The curves of several settings, small, with one legend."""
    n_rows = -(-len(settings) // _COLUMNS)
    n_columns = min(_COLUMNS, len(settings))
    methods = in_order(c.method for curves in settings for c in curves)
    in_a_row = 2 * n_columns - (n_columns == _COLUMNS)
    legend_height = 0.35 + 0.19 * -(-len(methods) // in_a_row)
    figure = _figure(0.4 + 2.5 * n_columns, 2.0 * n_rows + legend_height)
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for ax in axes.flat[len(settings) :]:
        ax.remove()
    for ax, curves, title in zip(axes.flat, settings, titles, strict=False):
        _trade_off(ax, curves, small=True)
        ax.set_title("\n".join(wrap(_name(title, 64), 34)), loc="left", fontsize=8)
    figure.supxlabel("Rejected predictions", fontsize=8.5)
    figure.supylabel("Accuracy of the accepted", fontsize=8.5)
    figure.legend(
        handles=_methods_legend(methods),
        title="Marker: the method's own threshold",
        title_fontsize=8,
        loc="outside upper center",
        ncols=in_a_row,
        handlelength=4.5,
    )
    return figure


def _trade_off(ax: Any, curves: Sequence[TradeOffCurve], *, small: bool = False) -> None:
    styles = styles_of(curve.method for curve in curves)
    # The registry's first method is drawn last, over the others.
    for depth, curve in enumerate(reversed(curves)):
        style = styles[curve.method]
        ax.plot(
            curve.rejected,
            curve.accuracy,
            color=style.color,
            linestyle=(0, style.dashes) if style.dashes else "-",
            linewidth=1.1 if small else 1.5,
            zorder=2 + depth / 100,
        )
        ax.plot(
            *curve.operating_point,
            linestyle="",
            marker=style.marker,
            markersize=_marker_size(style.marker) * (0.8 if small else 1.0),
            color=style.color,
            markeredgecolor="white",
            markeredgewidth=0.7,
            zorder=4 + depth / 100,
            clip_on=False,
        )
    _percent_axes(ax, curves)


def _percent_axes(ax: Any, curves: Sequence[TradeOffCurve]) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    marks = [curve.operating_point[1] for curve in curves]
    shown = np.concatenate([*(curve.accuracy for curve in curves), marks])
    top = min(1.0, np.ceil(20 * np.nanmax(shown) - 1e-9) / 20)
    bottom = max(0.0, min(top - 0.05, np.floor(20 * np.nanmin(shown) + 1e-9) / 20))
    room = 0.03 * (top - bottom)  # so that lines and markers at the edge are seen whole
    ax.set(xlim=(-0.02, 1.0), ylim=(bottom - room, top + room))
    ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0])
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0))
    ax.grid()


def _marker_size(marker: str) -> float:
    return {"o": 6.5, "s": 6.0, "D": 5.8, "*": 10.0, "P": 7.5, "X": 7.5}.get(marker, 7.0)


def _methods_legend(methods: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D(
            [],
            [],
            color=style.color,
            linestyle=(0, style.dashes) if style.dashes else "-",
            marker=style.marker,
            markersize=_marker_size(style.marker),
            markeredgecolor="white",
            markeredgewidth=0.7,
            label=_name(name),
        )
        for name, style in styles_of(methods).items()
    ]


def titles_of(groups: Sequence[Sequence[TradeOffCurve]]) -> list[str]:
    """A title for the curves of each setting."""
    among = [curves[0].setting for curves in groups]
    return [describe(setting, among) for setting in among]


# ---------------------------------------------------------------------------------- ranks


def ranks_figure(methods: Sequence[str], ranks: Ranks, title: str) -> Any:
    """Average ranks on a line; a bar joins those that do not differ significantly."""
    order = np.argsort(ranks.average, kind="stable")
    groups = alike_groups(ranks.average, ranks.critical_difference)
    n = len(methods)
    step, first_bar = 0.42, 0.35
    first_name = first_bar + 0.26 * len(groups) + 0.45
    n_left = -(-n // 2)
    depth = first_name + step * (n_left - 1) + 0.3
    above = 1.35
    figure = _figure(6.4, 0.62 * (depth + above) + 0.55)
    ax = figure.subplots()
    low, high = 1.0, float(max(n, 2))
    margin = 0.36 * (high - low)
    ax.set(xlim=(low - margin, high + margin), ylim=(depth, -above))
    ax.axis("off")
    ax.set_title(_name(title, 64), loc="left")
    ax.plot([low, high], [0, 0], color="0.25", linewidth=0.9)
    for rank in range(1, n + 1):
        ax.plot([rank, rank], [0, -0.12], color="0.25", linewidth=0.9)
        ax.text(rank, -0.2, str(rank), ha="center", va="bottom")
    _critical_difference(ax, low, ranks.critical_difference, high + margin)
    for i, group in enumerate(groups):
        ends = ranks.average[[group[0], group[-1]]] + np.array([-0.012, 0.012]) * (high - low)
        y = first_bar + 0.26 * i
        ax.plot(ends, [y, y], color="0.1", linewidth=3.2, solid_capstyle="butt")
    styles = styles_of(methods)
    for place, column in enumerate(order.tolist()):
        left = place < n_left
        y = first_name + step * (place if left else n - 1 - place)
        x, style = ranks.average[column], styles[methods[column]]
        end = low - 0.06 * (high - low) if left else high + 0.06 * (high - low)
        ax.plot([x, x, end], [0, y, y], color="0.45", linewidth=0.8)
        ax.plot(
            x,
            0,
            marker=style.marker,
            markersize=_marker_size(style.marker),
            color=style.color,
            markeredgecolor="white",
            markeredgewidth=0.7,
            zorder=3,
        )
        told = [_name(methods[column]), f"{x:.2f}"]
        ax.text(
            end + (-0.02 if left else 0.02) * (high - low),
            y,
            "  ".join(told if left else told[::-1]),
            ha="right" if left else "left",
            va="center",
        )
    return figure


def _critical_difference(ax: Any, low: float, width: float, end: float) -> None:
    """A bar as long as the critical difference; one that leaves the picture has an open end."""
    y = -0.95
    shown = min(low + width, end)
    ax.plot([low, shown], [y, y], color="0.1", linewidth=1.1)
    for x in (low, low + width):
        if x <= end:
            ax.plot([x, x], [y - 0.1, y + 0.1], color="0.1", linewidth=1.1)
    label = f"Critical difference {width:.2f}"
    ax.text(low, y - 0.14, label, ha="left", va="bottom", fontsize=8)


# ------------------------------------------------------------------------- neighbourhoods


def k_sensitivity_figure(found: Mapping[str, KSensitivity]) -> Any:
    """How k changes the predictions, the share accepted, and the accepted predictions."""
    panels = (
        ("mcc", "MCC of all predictions"),
        ("accepted", "Share accepted"),
        ("mcc_accepted", "MCC of the accepted"),
    )
    figure = _figure(7.6, 2.9)
    axes = figure.subplots(1, 3, sharex=True)
    for ax, (name, title) in zip(axes, panels, strict=True):
        lines = [
            _band(ax, result.ks, getattr(result, name), nth, label)
            for nth, (label, result) in enumerate(found.items())
        ]
        ax.set_title(title, loc="left", fontsize=9)
        ax.set(xlabel="Neighbours k", xscale="log", ylim=(None, 1.02))
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        ticks = _ticks(np.unique(np.concatenate([result.ks for result in found.values()])))
        ax.set_xticks(ticks, [str(k) for k in ticks])
        ax.minorticks_off()
        ax.grid()
    figure.legend(handles=lines, loc="outside lower center", ncols=4, handlelength=4.5)
    return figure


def _band(ax: Any, ks: NDArray[np.int64], values: NDArray[np.float64], nth: int, name: str) -> Any:
    """Mean over the folds, and its standard deviation as a shade; folds without a value are out."""
    told = ~np.isnan(values)
    counts = told.sum(axis=1)
    known = counts > 0
    kept = np.where(told, values, 0.0)[known]
    mean = kept.sum(axis=1) / counts[known]
    away = np.where(told[known], (values[known] - mean[:, None]) ** 2, 0.0).sum(axis=1)
    std = np.sqrt(away / np.maximum(counts[known] - 1, 1))
    color, dashes, marker = _SET_STYLES[nth % len(_SET_STYLES)]
    ax.fill_between(ks[known], mean - std, mean + std, color=color, alpha=0.18, linewidth=0)
    (line,) = ax.plot(
        ks[known],
        mean,
        color=color,
        linestyle=(0, dashes) if dashes else "-",
        marker=marker,
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        label=_name(name),
    )
    return line


# Of datasets: from dark to light, so that no colour is taken for that of a method in grey.
_SET_STYLES: tuple[tuple[str, tuple[float, ...], str], ...] = (
    ("#00204d", (), "o"),
    ("#8a8678", (4.5, 1.8), "s"),
    ("#414d6b", (1.2, 1.4), "^"),
    ("#c2a633", (6.0, 1.6, 1.2, 1.6), "D"),
    ("#666970", (9.0, 2.5), "v"),
)


def _ticks(ks: NDArray[np.int64]) -> list[int]:
    """The ks, less those that would stand too close on a logarithmic axis."""
    kept: list[int] = []
    for k in ks.tolist():
        if not kept or k >= 1.35 * kept[-1]:
            kept.append(k)
    return kept


def neighbor_candidates_figure(found: NeighborCandidates, title: str, n_neighbors: int) -> Any:
    """Which candidates the neighbours of each class have."""
    n = len(found.classes)
    side = min(6.0, 2.3 + 0.16 * n)
    figure = _figure(side + 0.9, side)
    ax = figure.subplots()
    image = ax.imshow(found.shares, cmap="Greys", vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set_title(_name(title, 64), loc="left")
    ax.set(xlabel=f"Candidates of the {n_neighbors} neighbours", ylabel="True class")
    ax.spines[:].set_visible(True)
    if n <= _MOST_NAMED:
        names = [_name(label, 18) for label in found.classes.tolist()]
        wide = max(map(len, names)) > 2
        ax.set_xticks(range(n), names, rotation=90 if wide else 0, fontsize=7)
        ax.set_yticks(range(n), names, fontsize=7)
    bar = figure.colorbar(image, ax=ax, shrink=0.8, pad=0.03)
    bar.set_label("Share of the neighbours")
    bar.outline.set_linewidth(0.5)
    return figure


# --------------------------------------------------------------------------------- theory


def expected_masses_figure(curve: ExpectedMassCurve, n_draws: int) -> Any:
    """Expected masses of the true and the confused label: lines worked out, points simulated."""
    figure = _figure(6.2, 3.0)
    axes = figure.subplots(1, 2)
    labels = (("True label", "0.1", (), "o"), ("Confused label", "0.55", (4.5, 1.8), "s"))
    for ax, scale in zip(axes, ("linear", "log"), strict=True):
        for column, (name, color, dashes, marker) in enumerate(labels):
            ax.plot(
                curve.n_neighbors,
                curve.closed_form[:, column],
                color=color,
                linestyle=(0, dashes) if dashes else "-",
                label=f"{name}, closed form",
            )
            ax.plot(
                curve.n_neighbors,
                curve.simulated[:, column],
                linestyle="",
                marker=marker,
                markersize=3.2,
                markerfacecolor="white",
                markeredgecolor=color,
                markeredgewidth=0.8,
                markevery=max(1, len(curve.n_neighbors) // 33),
                label=f"{name}, simulated",
            )
        ax.set(xlabel="Neighbours k", ylabel="Expected mass", yscale=scale)
        ax.set_title(f"{'Linear' if scale == 'linear' else 'Logarithmic'} scale", loc="left")
        ax.grid()
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        title=f"Simulated: mean of {n_draws:,} draws for each k",
        title_fontsize=8,
        loc="outside lower center",
        ncols=2,
    )
    return figure
