"""Trees that learn from soft labels, kept as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur._kernels import in_ranges, kernel, n_threads
from demur.state import check_array

Floats = NDArray[np.float64]
Forest = dict[str, NDArray[Any]]  # packed by `demur.state`; see `_flatten`

LEAST_ROWS = 2  # of a leaf: one row alone would be believed whatever its label
MOST_FEATURES = 100  # looked at for a split, so that wide tables and images stay affordable


def grow_forest(X: Floats, labels: Floats, n_trees: int, seed: int) -> tuple[Forest, Floats]:
    """Grow extremely randomised trees on drawn rows, and hear what they say of rows left out.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    labels : ndarray of shape (n, l)
        Soft labels; rows sum to 1.
    n_trees : int
    seed : int

    Returns
    -------
    forest : dict of ndarrays
    held_out : ndarray of shape (n, l)
        Mean opinion of the trees that have not seen the row; equal shares where all have.
    """
    from sklearn.ensemble import ExtraTreesRegressor  # takes a second to import

    n, d = X.shape
    trees = ExtraTreesRegressor(
        n_trees,
        min_samples_leaf=LEAST_ROWS,
        max_features=min(-(-d // 2), MOST_FEATURES),
        bootstrap=True,
        random_state=seed,
        n_jobs=n_threads(None),
    ).fit(X, labels)
    forest = _flatten([one.tree_ for one in trees.estimators_])
    seen = np.zeros((n_trees, n), dtype=np.bool_)
    for row, drawn in zip(seen, trees.estimators_samples_, strict=True):
        row[drawn] = True
    return forest, _ask(forest, X, seen)


def ask_forest(forest: Forest, X: Floats) -> Floats:
    """Mean opinion of all trees, (n, l)."""
    return _ask(forest, X, np.zeros((0, 0), dtype=np.bool_))


def _ask(forest: Forest, X: Floats, seen: NDArray[np.bool_]) -> Floats:
    opinions = np.zeros((len(X), forest["leaves"].shape[1]))
    rows = X.astype(np.float32)  # as the trees were grown on

    def work(start: int, stop: int) -> None:
        _add_up(
            rows, forest["feature"], forest["threshold"], forest["children"], forest["roots"],
            forest["leaves"], seen, opinions, start, stop,
        )  # fmt: skip

    in_ranges(work, len(X), None)
    return opinions


@kernel
def _add_up(
    X: Any, feature: Any, threshold: Any, children: Any, roots: Any, leaves: Any, seen: Any,
    opinions: Any, start: Any, stop: Any,
) -> None:  # fmt: skip
    l = leaves.shape[1]
    asked = np.zeros(stop - start, dtype=np.int64)
    for t in range(len(roots)):
        for i in range(start, stop):
            if len(seen) and seen[t, i]:
                continue
            node = roots[t]
            while feature[node] >= 0:
                side = 0 if X[i, feature[node]] <= threshold[node] else 1
                node = children[node, side]
            leaf = children[node, 0]
            asked[i - start] += 1
            for y in range(l):
                opinions[i, y] += leaves[leaf, y]
    for i in range(start, stop):
        for y in range(l):
            if asked[i - start]:
                opinions[i, y] /= asked[i - start]
            else:
                opinions[i, y] = 1.0 / l


def _flatten(trees: list[Any]) -> Forest:
    """One array of nodes for all trees: a leaf has feature -1, and its place among the leaves
    instead of children.
    """
    counts = np.array([tree.node_count for tree in trees])
    roots = np.concatenate([[0], counts.cumsum()[:-1]])
    feature = np.concatenate([tree.feature for tree in trees])
    offset = np.repeat(roots, counts)
    children = np.stack(
        [np.concatenate([tree.children_left for tree in trees]) + offset,
         np.concatenate([tree.children_right for tree in trees]) + offset], axis=1,
    )  # fmt: skip
    is_leaf = feature < 0
    feature[is_leaf] = -1
    children[is_leaf] = np.arange(is_leaf.sum())[:, None]
    values = np.concatenate([tree.value[:, :, 0] for tree in trees])
    return {
        "feature": feature.astype(np.int32),
        "threshold": np.where(is_leaf, 0.0, np.concatenate([tree.threshold for tree in trees])),
        "children": children.astype(np.int32),
        "roots": roots.astype(np.int32),
        "leaves": values[is_leaf].astype(np.float32),
    }


def check_forest(forest: Any, n_trees: int, n_features: int, n_classes: int) -> None:
    """Refuse arrays that no forest is made of, on which the kernel might not end."""
    names = {"feature", "threshold", "children", "roots", "leaves"}
    if not isinstance(forest, Mapping) or set(forest) != names:
        raise ValueError("not the arrays of a fitted model: its trees are not complete.")
    feature, children, roots = (forest[name] for name in ("feature", "children", "roots"))
    n = len(feature) if feature.ndim == 1 else 0
    check_array(feature, "i", (n,), "the trees' features")
    check_array(forest["threshold"], "f", (n,), "the trees' thresholds")
    check_array(children, "i", (n, 2), "the trees' children")
    check_array(roots, "i", (n_trees,), "the trees' roots")
    is_leaf = feature < 0
    check_array(forest["leaves"], "f", (int(is_leaf.sum()), n_classes), "the trees' leaves")
    inner = children[~is_leaf]
    good = (
        n > 0
        and feature.max() < n_features
        and (roots >= 0).all()
        and (roots < n).all()
        and (inner > np.flatnonzero(~is_leaf)[:, None]).all()  # downwards only, so it ends
        and (inner < n).all()
        and (children[is_leaf, 0] >= 0).all()
        and (children[is_leaf, 0] < is_leaf.sum()).all()
    )
    if not good:
        raise ValueError("not the arrays of a fitted model: its trees lead nowhere.")
