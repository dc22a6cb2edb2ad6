"""PL-ECOC: binary problems made of the candidate sets that fall on one side of a code."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from demur._kernels import in_ranges, kernel
from demur._parameters import check_number, check_whole
from demur.base import Judgement, PartialLabelClassifier
from demur.candidates import WORD_BITS, CandidateSets, unpack
from demur.state import check_array, check_columns

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

DECODINGS = ("agreement", "loss")
ALL_CODES_UP_TO = 10  # classes
CODES_A_DRAW = 256
MAX_SOLVER_ITERATIONS = 10_000
LARGEST_SQUARE = 1e150  # beyond, the solver squares it to infinity and never ends
NONE = np.uint64(0)


class PlEcoc(PartialLabelClassifier):
    r"""Disambiguation-free partial-label learning with error-correcting output codes.

    A code puts each class on a positive or a negative side. Instances whose candidates all
    lie on one side make a binary problem, which a linear support vector machine learns;
    the others are left out. Codes come in random order: all of them for up to 10 classes,
    random ones above. A code is used if enough instances are and both sides have some.

    With :math:`f_c(x)` the decision value of code c, :math:`m_{yc} = \pm 1` the side of
    class y, and :math:`g_{yc}` the share of training instances with candidate y that code
    c puts on the side of y (divided by its sum over the codes), a class is scored by

    - agreement: :math:`\sum_c g_{yc} \exp(m_{yc} f_c(x))`, the larger the better, or
    - loss: :math:`\sum_c g_{yc} \exp(-m_{yc} f_c(x))`, the smaller the better.

    Probabilities are proportional to the agreement, or to one over the loss.

    Parameters
    ----------
    n_codes : int or None, default=None
        How many codes to use; None for :math:`\lceil 10 \log_2 l \rceil`, l the number of
        classes. Where fewer are usable, fewer are used.
    min_share : float, default=0.1
        Share of the training instances that a code must be able to use.
    decoding : {"agreement", "loss"}, default="agreement"
        The article decodes by loss, which is often the more accurate by far; agreement
        reproduces the figures published for comparison with DST-PLL.
    C : float, default=1.0
        Inverse strength of the regularization of the linear support vector machines.
    max_draws : int, default=100_000
        How many random codes to try where there are more than 10 classes.
    random_state : int, RandomState or None, default=None
        Draws the codes.
    n_jobs : int or None, default=None
        Threads; None for all that the process may use. The results are the same.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    accept_threshold_ : float
        0.9.
    codes_ : ndarray of bool, shape (n_used_codes, n_classes)
        Whether a class is on the positive side.
    coef_ : ndarray of shape (n_used_codes, n_features)
    intercept_ : ndarray of shape (n_used_codes,)
    performance_ : ndarray of shape (n_classes, n_used_codes)
        The weights g.
    transduction_ : ndarray of shape (n_training_instances,)

    References
    ----------
    M.-L. Zhang, F. Yu, C.-Z. Tang: Disambiguation-free partial label learning.
    IEEE Transactions on Knowledge and Data Engineering, 2017.

    Examples
    --------
    >>> from demur.methods.pl_ecoc import PlEcoc
    >>> X = [[0.0, 0.0], [0.1, 0.0], [1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]]
    >>> S = [["ant"], ["ant", "bee"], ["bee"], ["bee"], ["cat"], ["ant", "cat"]]
    >>> clf = PlEcoc(decoding="loss", C=100.0, random_state=0).fit(X, S)
    >>> clf.predict([[0.0, 0.1], [0.9, 0.0], [0.0, 0.9]]).tolist()
    ['ant', 'bee', 'cat']
    >>> clf.transduction_.tolist()
    ['ant', 'ant', 'bee', 'bee', 'cat', 'cat']
    """

    accept_threshold_ = 0.9

    def __init__(
        self,
        n_codes: int | None = None,
        min_share: float = 0.1,
        decoding: Literal["agreement", "loss"] = "agreement",
        C: float = 1.0,
        max_draws: int = 100_000,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_codes = n_codes
        self.min_share = min_share
        self.decoding = decoding
        self.C = C
        self.max_draws = max_draws
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Floats, sets: CandidateSets) -> None:
        if self.n_codes is not None:
            check_whole("n_codes", self.n_codes, 1)
        check_whole("max_draws", self.max_draws, 1)
        check_number("min_share", self.min_share)
        check_number("C", self.C)
        if not 0 <= self.min_share <= 1:
            raise ValueError(f"min_share must be between 0 and 1; got {self.min_share}.")
        if self.decoding not in DECODINGS:
            raise ValueError(f"decoding must be one of {DECODINGS}; got {self.decoding!r}.")
        if not self.C > 0:
            raise ValueError(f"C must be over 0; got {self.C}.")
        largest = float(np.abs(X).max())
        if largest > np.sqrt(LARGEST_SQUARE / (max(1.0, self.C) * X.size)):
            raise ValueError(
                f"features as large as {largest:.3g} have squares that the solver cannot square "
                "again; scale them, for instance to [0, 1]."
            )
        words = self._choose_codes(sets)
        self.codes_ = unpack(words, sets.n_classes)
        candidates = sets.to_indicator()
        self._warn_of_twins(np.asarray(candidates.any(axis=0)))
        self._fit_sides(X, sets.words, words)
        self.performance_ = _performance(self._decide_sides(X) > 0, candidates, self.codes_)
        scores = self._log_scores(X)
        self._labels = np.asarray(np.where(candidates, scores, -np.inf).argmax(axis=1))

    def _choose_codes(self, sets: CandidateSets) -> Words:
        """The first codes, in random order, that can use enough of the sets."""
        wanted = self.n_codes or int(np.ceil(10 * np.log2(sets.n_classes)))
        needed = self.min_share * len(sets)
        chosen: dict[bytes, Words] = {}
        most = tried = 0
        rng = check_random_state(self.random_state)
        for codes in _codes_in_random_order(sets.n_classes, self.max_draws, rng):
            counts = np.empty((len(codes), 2), dtype=np.int64)

            def count(start: int, stop: int, codes: Any = codes, counts: Any = counts) -> None:
                _count_sides(codes[start:stop], sets.words, counts[start:stop])

            in_ranges(count, len(codes), self.n_jobs, range_size=32)
            used = np.where((counts > 0).all(axis=1), counts.sum(axis=1), 0)
            for code in codes[(used > 0) & (used >= needed)]:
                chosen[code.tobytes()] = code
            tried += len(codes)
            most = max(most, int(used.max()))
            if len(chosen) >= wanted:
                break
        if not chosen:
            raise ValueError(
                f"none of {tried} codes over {sets.n_classes} classes can use min_share="
                f"{self.min_share} of the {len(sets)} candidate sets and has some on both "
                f"sides; the best can use {most}. The candidate sets are too large for "
                "this method, unless a smaller min_share or more max_draws helps."
            )
        return np.stack(list(chosen.values())[:wanted])

    def _warn_of_twins(self, seen: NDArray[np.bool_]) -> None:
        """Tell which classes no code tells apart."""
        _, group, sizes = np.unique(
            self.codes_[:, seen], axis=1, return_inverse=True, return_counts=True
        )
        if (sizes > 1).any():
            twins = self.classes_[seen][group.ravel() == sizes.argmax()].tolist()
            warnings.warn(
                f"the {len(self.codes_)} codes in use do not tell the classes {twins} apart. Use "
                "more codes, or a smaller min_share if large candidate sets leave few codes.",
                UserWarning,
                stacklevel=4,
            )

    def _fit_sides(self, X: Floats, words: Words, codes: Words) -> None:
        """One linear support vector machine a code."""
        self.coef_ = np.empty((len(codes), X.shape[1]))
        self.intercept_ = np.empty(len(codes))
        iterations = np.empty(len(codes), dtype=np.int64)

        def learn(start: int, stop: int) -> None:
            for c in range(start, stop):
                sides = _sides(codes[c], words)
                used = sides != 0
                # The primal solver draws no random numbers, so threads cannot disturb it.
                svm = LinearSVC(C=self.C, dual=False, max_iter=MAX_SOLVER_ITERATIONS)
                svm.fit(X[used], sides[used])
                self.coef_[c], self.intercept_[c] = svm.coef_[0], svm.intercept_[0]
                iterations[c] = svm.n_iter_

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said once, below
            in_ranges(learn, len(codes), self.n_jobs, range_size=1)
        stuck = int((iterations >= MAX_SOLVER_ITERATIONS).sum())
        if stuck:
            warnings.warn(
                f"{stuck} of {len(codes)} support vector machines did not converge; "
                "scale the features, or use a smaller C.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _decide_sides(self, X: Floats) -> Floats:
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _log_scores(self, X: Floats) -> Floats:
        """Logarithm of the agreement, or of one over the loss, of each class."""
        sign = 1 if self.decoding == "agreement" else -1
        exponents = sign * np.where(self.codes_.T, 1.0, -1.0)
        scores = np.empty((len(X), len(self.classes_)))

        def score(start: int, stop: int) -> None:
            values = self._decide_sides(X[start:stop])[:, None, :] * exponents
            with np.errstate(divide="ignore"):
                scores[start:stop] = logsumexp(values, axis=2, b=self.performance_)

        in_ranges(score, len(X), self.n_jobs)
        # A class that never was a candidate has no weights, and no chance.
        return np.asarray(np.where(np.isneginf(scores), -np.inf, sign * scores))

    def _restored(self) -> None:
        n_codes, n_classes = len(self.codes_), len(self.classes_)
        check_array(self.codes_, "b", (n_codes, n_classes), "its codes")
        check_array(self.coef_, "f", (n_codes, self.n_features_in_), "its weights")
        check_array(self.intercept_, "f", (n_codes,), "its offsets")
        check_array(self.performance_, "f", (n_classes, n_codes), "its performances")
        check_columns(self._labels, n_classes, len(self._labels), "its labels")

    def _judge(self, X: Floats) -> Judgement:
        return Judgement.of_proba(softmax(self._log_scores(X), axis=1))

    def _transduce(self) -> NDArray[np.intp]:
        return self._labels


def _codes_in_random_order(
    n_classes: int, max_draws: int, rng: np.random.RandomState
) -> Iterator[Words]:
    """Blocks of packed codes with both sides taken."""
    if n_classes <= ALL_CODES_UP_TO:
        yield (1 + rng.permutation(2**n_classes - 2)).astype(np.uint64)[:, None]
        return
    n_words = -(-n_classes // WORD_BITS)
    last = np.uint64(2 ** (n_classes - WORD_BITS * (n_words - 1)) - 1)
    for drawn in range(0, max_draws, CODES_A_DRAW):
        size = (min(CODES_A_DRAW, max_draws - drawn), n_words)
        codes = rng.randint(2**64, size=size, dtype=np.uint64)
        codes[:, -1] &= last
        yield codes


def _performance(
    positive: NDArray[np.bool_], candidates: NDArray[np.bool_], codes: NDArray[np.bool_]
) -> Floats:
    """How often each code is right about each class's instances, as shares of the codes."""
    counts = candidates.sum(axis=0)[:, None]
    said_positive = candidates.T.astype(np.float64) @ positive
    right = np.where(codes.T, said_positive, counts - said_positive)
    total = right.sum(axis=1, keepdims=True)
    even = np.where(counts > 0, 1 / len(codes), 0.0) * np.ones_like(right)
    return np.asarray(np.divide(right, total, out=even, where=total > 0))


@kernel
def _side(code: Words, words: Words) -> int:
    """1 or -1 where a candidate set lies on one side of a code, else 0."""
    inside, outside = True, True
    for w in range(len(code)):
        common = words[w] & code[w]
        inside &= common == words[w]
        outside &= common == NONE
    return int(inside) - int(outside)


@kernel
def _count_sides(codes: Words, words: Words, counts: NDArray[np.int64]) -> None:
    for c in range(len(codes)):
        positive, negative = 0, 0
        for row in range(len(words)):
            side = _side(codes[c], words[row])
            positive += side > 0
            negative += side < 0
        counts[c] = positive, negative


@kernel
def _sides(code: Words, words: Words) -> NDArray[np.int8]:
    sides = np.empty(len(words), dtype=np.int8)
    for row in range(len(words)):
        sides[row] = _side(code, words[row])
    return sides
