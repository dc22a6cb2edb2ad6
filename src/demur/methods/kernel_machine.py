"""A kernel machine for soft labels, kept as arrays: ridge regression on random centres."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from demur.state import check_array

Floats = NDArray[np.float64]
Machine = dict[str, NDArray[Any]]  # packed by `demur.state`

MOST_CENTERS = 1000
WIDTHS = (0.3, 1.0)  # of the kernel, as shares of 1 / (features x their variance)
RIDGES = tuple(10.0**power for power in range(-4, 2))
LEAST = 1e-3  # of an opinion, before it is made to sum to 1
SMALL = 1e-6  # directions of the kernel below this share of the largest are left out


class KernelBasis:
    """What does not depend on the labels, so that machines for several of them are cheap.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    seed : int
        Chooses the centres, at most 1,000 of the rows.
    """

    def __init__(self, X: Floats, seed: int) -> None:
        rows = np.random.default_rng(seed).permutation(len(X))[:MOST_CENTERS]
        self.centers = X[rows]
        scale = X.shape[1] * X.var() or 1.0
        self.bases = [self._basis(X, width / scale) for width in WIDTHS]

    def _basis(self, X: Floats, gamma: float) -> tuple[float, Floats, Floats, Floats]:
        """Width, features whose scalar products are the kernel's, their sizes, and the map."""
        values, vectors = np.linalg.eigh(rbf_kernel(self.centers, gamma=gamma))
        kept = values > SMALL * values[-1]
        to_features = vectors[:, kept] / np.sqrt(values[kept])
        features = rbf_kernel(X, self.centers, gamma=gamma) @ to_features
        sizes, axes = np.linalg.eigh(features.T @ features)
        return gamma, features @ axes, np.maximum(sizes, 0.0), to_features @ axes

    def fit(self, labels: Floats, candidates: NDArray[np.bool_]) -> tuple[Machine, Floats]:
        """The machine under which the candidate sets are likeliest, each row left out in turn.

        Parameters
        ----------
        labels : ndarray of shape (n, l)
            Soft labels; rows sum to 1.
        candidates : ndarray of shape (n, l)

        Returns
        -------
        machine : dict of ndarrays
        held_out : ndarray of shape (n, l)
            For each row what a machine says that was trained on all others; exact, by the
            formula for leaving one out of a ridge regression.
        """
        mean = labels.mean(axis=0)
        best = -np.inf
        for gamma, features, sizes, to_features in self.bases:
            targets = features.T @ (labels - mean)
            squares = features**2
            for ridge in RIDGES:
                shrunk = targets / (sizes + ridge)[:, None]
                own = np.minimum(squares @ (1 / (sizes + ridge)), 1 - 1e-9)[:, None]
                fitted = features @ shrunk
                left_out = _opinions(mean + (fitted - own * (labels - mean)) / (1 - own))
                likelihood = np.log((left_out * candidates).sum(axis=1)).sum()
                if likelihood > best:
                    best, held_out = likelihood, left_out
                    machine = {
                        "centers": self.centers,
                        "coefficients": to_features @ shrunk,
                        "mean": mean,
                        "gamma": np.array([gamma]),
                    }
        return machine, held_out


def ask_machine(machine: Machine, X: Floats) -> Floats:
    """Opinions of the machine, (n, l); rows sum to 1."""
    kernel = rbf_kernel(X, machine["centers"], gamma=machine["gamma"][0])
    return _opinions(machine["mean"] + kernel @ machine["coefficients"])


def check_machine(machine: Any, n_features: int, n_classes: int) -> None:
    """Refuse arrays that no machine is made of."""
    names = {"centers", "coefficients", "mean", "gamma"}
    if not isinstance(machine, Mapping) or set(machine) != names:
        raise ValueError("not the arrays of a fitted model: its kernel machine is not complete.")
    n = len(machine["centers"]) if machine["centers"].ndim else 0
    check_array(machine["centers"], "f", (n, n_features), "the kernel machine's centres")
    check_array(machine["coefficients"], "f", (n, n_classes), "the kernel machine's coefficients")
    check_array(machine["mean"], "f", (n_classes,), "the kernel machine's mean")
    check_array(machine["gamma"], "f", (1,), "the kernel machine's width")


def _opinions(outputs: Floats) -> Floats:
    raised = np.maximum(outputs, LEAST)
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
