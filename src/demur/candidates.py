"""Candidate sets: what they are, how they are read, checked, packed and counted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from demur.annotators import label_probabilities

WORD_BITS = 64


def _say_rows(rows: NDArray[np.intp]) -> str:
    """Name the first offending row and how many there are."""
    others = "the only such row" if len(rows) == 1 else f"{len(rows)} such rows"
    return f"row {int(rows[0])} ({others})"


def is_missing(value: object) -> bool:
    """None, NaN and their kin: values that differ from themselves."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True  # pandas.NA refuses to be a truth value


def _is_collection(value: object) -> bool:
    if isinstance(value, (str, bytes)):
        return False
    return isinstance(value, Collection) and getattr(value, "ndim", 1) != 0


def _pack(indicator: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of booleans as 64-bit words: bit b of word w is class ``64 * w + b``."""
    n, n_classes = indicator.shape
    n_words = -(-n_classes // WORD_BITS)
    octets = np.zeros((n, 8 * n_words), dtype=np.uint8)
    packed = np.packbits(indicator, axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    return octets.view("<u8").astype(np.uint64)


def unpack(words: NDArray[np.uint64], n_classes: int) -> NDArray[np.bool_]:
    """Packed words as a boolean array of shape (n, n_classes)."""
    octets = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little", count=n_classes).view(np.bool_)


def _pack_pairs(
    rows: NDArray[np.intp], columns: NDArray[np.intp], shape: tuple[int, int]
) -> NDArray[np.uint64]:
    """The same from the (row, column) places that are set."""
    words = np.zeros((shape[0], -(-shape[1] // WORD_BITS)), dtype=np.uint64)
    bits = np.uint64(1) << (columns % WORD_BITS).astype(np.uint64)
    np.bitwise_or.at(words, (rows, columns // WORD_BITS), bits)
    return words


def _as_classes(classes: Iterable[Any]) -> NDArray[Any]:
    listed = list(classes)
    array = np.asarray(listed)
    if array.ndim != 1:
        raise ValueError("classes must be a flat list of labels, such as ['ant', 'bee'].")
    if array.dtype.kind in "US" and not all(isinstance(c, (str, bytes)) for c in listed):
        # numpy would turn the 1 of [1, 'a'] into '1', and no set would ever hold it.
        raise ValueError("classes mixes strings with other labels; use one type of label.")
    missing = [i for i, label in enumerate(listed) if is_missing(label)]
    if missing:
        raise ValueError(f"classes[{missing[0]}] is missing (None or NaN); every class is named.")
    unique, counts = np.unique(array, return_counts=True)
    if len(unique) < len(array):
        raise ValueError(f"classes names {unique[counts > 1].tolist()[0]!r} more than once.")
    return array


def _sorted_labels(labels: set[Any]) -> NDArray[Any]:
    try:
        return _as_classes(sorted(labels))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"labels of different types cannot be put in order ({', '.join(kinds)}); "
            "use one type of label, or pass classes=[...]."
        ) from None


@dataclass(frozen=True)
class CandidateAudit:
    """What a collection of candidate sets looks like, before anything is learned from it.

    Attributes
    ----------
    n_sets, n_classes : int
    mean_size : float
        Mean number of candidates.
    singleton_share, full_share : float
        Share of sets with one candidate, and of sets with every class.
    cooccurrence : ndarray of shape (n_classes, n_classes)
        How many sets hold both classes; the diagonal counts one class.
    ambiguity_degree : float
        See :meth:`CandidateSets.ambiguity_degree`.
    never_seen : list
        Classes that are in no set.
    """

    n_sets: int
    n_classes: int
    mean_size: float
    singleton_share: float
    full_share: float
    cooccurrence: NDArray[np.int64]
    ambiguity_degree: float
    never_seen: list[Any]

    def __str__(self) -> str:
        unseen = ", ".join(map(str, self.never_seen)) if self.never_seen else "none"
        return (
            f"{self.n_sets} candidate sets over {self.n_classes} classes\n"
            f"  mean size         {self.mean_size:.2f}\n"
            f"  one candidate     {self.singleton_share:.1%}\n"
            f"  every class       {self.full_share:.1%}\n"
            f"  ambiguity degree  {self.ambiguity_degree:.3f}\n"
            f"  never a candidate {unseen}"
        )


class CandidateSets:
    """Candidate sets of labels, one a row, packed into 64-bit words.

    Parameters
    ----------
    S : array, sparse matrix, DataFrame, list of collections, or label vector
        One of

        - a 0/1 or boolean indicator of shape (n, l): numpy, scipy sparse, or a DataFrame
          whose columns name the classes;
        - a list of n collections of labels. A *list* of lists is always read so; for an
          indicator pass an array;
        - a 1-D vector of n labels: every set has one candidate;
        - another ``CandidateSets``.
    classes : array-like of shape (l,), optional
        The labels, in the order of the columns. Without it: the columns' names of a
        DataFrame, 0 to l - 1 for other indicators, else the sorted labels that occur.

    Attributes
    ----------
    words : ndarray of uint64, shape (n, ceil(l / 64))
        Bit b of word w says whether class ``64 * w + b`` is a candidate.
    classes : ndarray of shape (l,)

    Examples
    --------
    >>> from demur import CandidateSets
    >>> sets = CandidateSets([{"cat", "dog"}, {"dog"}, {"ant", "cat", "dog"}])
    >>> sets.classes.tolist()
    ['ant', 'cat', 'dog']
    >>> sets.sizes.tolist()
    [2, 1, 3]
    >>> sets.to_lists()[0]
    ['cat', 'dog']
    >>> print(sets.audit())
    3 candidate sets over 3 classes
      mean size         2.00
      one candidate     33.3%
      every class       33.3%
      ambiguity degree  1.000
      never a candidate none
    """

    words: NDArray[np.uint64]
    classes: NDArray[Any]

    def __init__(self, S: Any, *, classes: Iterable[Any] | None = None) -> None:
        named = None if classes is None else _as_classes(classes)
        if isinstance(S, CandidateSets):
            words, found = _rename(S, named)
        elif hasattr(S, "columns") and hasattr(S, "to_numpy"):
            words, found = _read_frame(S, named)
        elif sp.issparse(S):
            words, found = _read_sparse(S, named)
        elif isinstance(S, (list, tuple)) and S and any(_is_collection(row) for row in S):
            words, found = _read_collections(S, named)
        else:
            words, found = _read_array(S, named)
        if len(words) == 0:
            raise ValueError("S holds no rows; at least one candidate set is needed.")
        empty = np.flatnonzero(~words.any(axis=1))
        if len(empty):
            raise ValueError(
                f"the candidate set is empty in {_say_rows(empty)}; "
                "each instance needs at least one candidate, one of them its true label."
            )
        self.words = np.ascontiguousarray(words)
        self.classes = found

    @classmethod
    def _packed(cls, words: NDArray[np.uint64], classes: NDArray[Any]) -> Self:
        """Wrap words that are known to be good."""
        sets = cls.__new__(cls)
        sets.words, sets.classes = np.ascontiguousarray(words), classes
        return sets

    # ------------------------------------------------------------------ annotators' answers

    @classmethod
    def from_answers(
        cls,
        answers: Any,
        *,
        missing: Any = -1,
        min_votes: int | None = None,
        min_share: float | None = None,
        min_probability: float | None = None,
        fallback: Literal["most"] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> Self:
        """Candidate sets from a table of answers, items x annotators.

        Parameters
        ----------
        answers : array-like of shape (n_items, n_annotators)
            Each annotator's label for each item.
        missing : scalar, default=-1
            Marks that an annotator gave no answer. None and NaN always do.
        min_votes : int, optional
            Keep the labels with at least this many votes.
        min_share : float, optional
            Keep the labels with at least this share of the item's votes. Without a rule
            every label that got a vote is a candidate (the union).
        min_probability : float, optional
            Keep the labels that are at least so probable by who gave them, and always the
            most probable: see :mod:`demur.annotators`.
        fallback : {None, "most"}, default=None
            Where the rule leaves no label: an error, or the labels with the most votes.
        classes : array-like, optional
            All labels; by default those that occur.

        Examples
        --------
        >>> from demur import CandidateSets
        >>> answers = [[0, 0, 2], [1, -1, 1], [2, 1, 2]]
        >>> CandidateSets.from_answers(answers).to_lists()
        [[0, 2], [1], [1, 2]]
        >>> CandidateSets.from_answers(answers, min_votes=2).to_lists()
        [[0], [1], [2]]
        """
        try:
            table = np.asarray(answers)
        except ValueError:
            raise ValueError(
                "answers must be a table, items x annotators; its rows differ in length."
            ) from None
        if table.dtype.kind in "US":
            table = np.asarray(answers, dtype=object)  # else a -1 among words is the word '-1'
        if table.ndim != 2:
            raise ValueError(
                f"answers must be a table, items x annotators; got {table.ndim} dimension(s)."
            )
        given = np.ones(table.shape, dtype=bool)
        if table.dtype.kind in "fO":
            given &= ~np.vectorize(is_missing, otypes=[bool])(table)
        if not is_missing(missing):
            given[given] = np.asarray(table[given] != missing, dtype=bool)
        items, workers = np.nonzero(given)
        labels = table[given].tolist()
        return cls._from_votes(
            items,
            workers,
            labels,
            len(table),
            min_votes,
            min_share,
            min_probability,
            fallback,
            classes,
            np.arange(len(table)),
        )

    @classmethod
    def from_long_answers(
        cls,
        items: Sequence[Any] | NDArray[Any],
        workers: Sequence[Any] | NDArray[Any],
        labels: Sequence[Any] | NDArray[Any],
        *,
        min_votes: int | None = None,
        min_share: float | None = None,
        min_probability: float | None = None,
        fallback: Literal["most"] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> tuple[Self, NDArray[Any]]:
        """Candidate sets from a long table: one answer a row, as crowd tools export it.

        A worker who gave the same item the same label twice has one vote for it. The
        other parameters are those of :meth:`from_answers`.

        Returns
        -------
        sets : CandidateSets
        items : ndarray
            The items the rows of ``sets`` belong to, in the order of their first answer.

        Examples
        --------
        >>> from demur import CandidateSets
        >>> sets, items = CandidateSets.from_long_answers(
        ...     ["b", "b", "a"], ["ann", "bob", "ann"], ["x", "y", "x"]
        ... )
        >>> items.tolist(), sets.to_lists()
        (['b', 'a'], [['x', 'y'], ['x']])
        """
        columns = [
            column.tolist() if isinstance(column, np.ndarray) else list(column)
            for column in (items, workers, labels)
        ]
        if len({len(column) for column in columns}) > 1:
            sizes = ", ".join(
                f"{name} {len(column)}"
                for name, column in zip(("items", "workers", "labels"), columns, strict=True)
            )
            raise ValueError(f"items, workers and labels must be equally long; got {sizes}.")
        for name, column in zip(("item", "worker", "label"), columns, strict=True):
            bad = np.flatnonzero([is_missing(value) for value in column])
            if len(bad):
                raise ValueError(f"the {name} is missing in {_say_rows(bad)}.")
        votes = list(dict.fromkeys(zip(*columns, strict=True)))
        place = {item: i for i, item in enumerate(dict.fromkeys(columns[0]))}
        number = {worker: i for i, worker in enumerate(dict.fromkeys(columns[1]))}
        names = np.empty(len(place), dtype=object)
        names[:] = list(place)
        sets = cls._from_votes(
            np.asarray([place[item] for item, _, _ in votes], dtype=np.intp),
            np.asarray([number[worker] for _, worker, _ in votes], dtype=np.intp),
            [label for _, _, label in votes],
            len(place),
            min_votes,
            min_share,
            min_probability,
            fallback,
            classes,
            names,
        )
        plain = np.asarray(names.tolist())
        return sets, plain if plain.tolist() == names.tolist() else names

    @classmethod
    def _from_votes(
        cls,
        items: NDArray[np.intp],
        workers: NDArray[np.intp],
        labels: list[Any],
        n_items: int,
        min_votes: int | None,
        min_share: float | None,
        min_probability: float | None,
        fallback: str | None,
        classes: Iterable[Any] | None,
        names: NDArray[Any],
    ) -> Self:
        if sum(rule is not None for rule in (min_votes, min_share, min_probability)) > 1:
            raise ValueError("give one of min_votes, min_share and min_probability.")
        if min_votes is not None and min_votes < 1:
            raise ValueError(f"min_votes must be at least 1; got {min_votes}.")
        if min_share is not None and not 0 < min_share <= 1:
            raise ValueError(f"min_share must be over 0 and at most 1; got {min_share}.")
        if min_probability is not None and not 0 < min_probability <= 1:
            raise ValueError(
                f"min_probability must be over 0 and at most 1; got {min_probability}."
            )
        if fallback not in (None, "most"):
            raise ValueError(f"fallback must be None or 'most'; got {fallback!r}.")
        if n_items == 0:
            raise ValueError("there are no items; at least one answer is needed.")
        found = _sorted_labels(set(labels)) if classes is None else _as_classes(classes)
        given = _columns_of(items, labels, found)
        pairs, votes = np.unique(items * len(found) + given, return_counts=True)
        rows, columns = pairs // len(found), pairs % len(found)
        total = np.bincount(rows, weights=votes, minlength=n_items)
        if min_share is not None:
            # The slack keeps 3 of 10 votes at 30 % when 0.3 * 10 rounds up.
            keep = votes >= min_share * total[rows] - 1e-9
        elif min_probability is not None and total.all():
            probable = label_probabilities(items, workers, given, n_items, len(found))
            probable = probable[rows, columns]
            most_probable = np.zeros(n_items)
            np.maximum.at(most_probable, rows, probable)
            keep = probable >= np.minimum(min_probability, most_probable[rows])
        else:
            keep = votes >= (1 if min_votes is None else min_votes)
        if fallback == "most":
            most = np.zeros(n_items, dtype=np.int64)
            np.maximum.at(most, rows, votes)
            left = np.bincount(rows[keep], minlength=n_items)
            keep |= (left[rows] == 0) & (votes == most[rows])
        empty = np.flatnonzero(np.bincount(rows[keep], minlength=n_items) == 0)
        if len(empty):
            why = "it has no answer" if total[empty[0]] == 0 else "no label has enough votes"
            raise ValueError(
                f"item {names[empty].tolist()[0]!r} has no candidate: {why} "
                f"({len(empty)} such items). "
                "Drop such items, or use a weaker rule or fallback='most'."
            )
        return cls._packed(_pack_pairs(rows[keep], columns[keep], (n_items, len(found))), found)

    # ------------------------------------------------------------------ what the sets hold

    @property
    def n_classes(self) -> int:
        """Number of classes, whether or not they occur."""
        return len(self.classes)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of sets and of classes: the shape of the indicator."""
        return len(self.words), len(self.classes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of candidates of each set."""
        return np.asarray(np.bitwise_count(self.words).sum(axis=1, dtype=np.int64))

    def to_indicator(self) -> NDArray[np.bool_]:
        """The sets as a boolean array of shape (n, n_classes)."""
        return unpack(self.words, self.n_classes)

    def to_lists(self) -> list[list[Any]]:
        """The sets as lists of labels, each in the order of ``classes``."""
        rows, columns = np.nonzero(self.to_indicator())
        labels = self.classes[columns].tolist()
        bounds = np.cumsum([0, *np.bincount(rows, minlength=len(self))]).tolist()
        return [labels[start:end] for start, end in pairwise(bounds)]

    def contains(self, labels: ArrayLike) -> NDArray[np.bool_]:
        """Whether each label is a candidate of its row; a label outside ``classes`` is not.

        Examples
        --------
        >>> from demur import CandidateSets
        >>> CandidateSets([[0, 1], [1]]).contains([1, 0]).tolist()
        [True, False]
        """
        asked = np.asarray(labels)
        if asked.shape != (len(self),):
            raise ValueError(f"one label a set is needed, {len(self)}; got shape {asked.shape}.")
        place = {label: i for i, label in enumerate(self.classes.tolist())}
        columns = np.asarray([place.get(label, -1) for label in asked.tolist()], dtype=np.intp)
        word = self.words[np.arange(len(self)), columns // WORD_BITS]
        held = (word >> (columns % WORD_BITS).astype(np.uint64)) & np.uint64(1)
        return np.asarray((columns >= 0) & held.astype(bool))

    def ambiguity_degree(self, y_true: ArrayLike | None = None) -> float:
        """How surely some wrong label comes along with a label: 1 means that two never part.

        The largest value, over labels y and z, of the share of instances of y whose set
        holds z too. With ``y_true`` an instance is of y when y is its label (the ambiguity
        degree of Cour et al., by class); without, when y is a candidate.
        """
        if y_true is None:
            return _largest_company(self._cooccurrence())
        place = {label: i for i, label in enumerate(self.classes.tolist())}
        truth = [place.get(label, -1) for label in np.asarray(y_true).tolist()]
        if len(truth) != len(self) or min(truth) < 0:
            raise ValueError("y_true must hold one label of classes for each set.")
        company = np.zeros((self.n_classes, self.n_classes), dtype=np.int64)
        np.add.at(company, np.asarray(truth), self.to_indicator().astype(np.int64))
        return _largest_company(company, counts=np.bincount(truth, minlength=self.n_classes))

    def audit(self) -> CandidateAudit:
        """Count what a person should look at before learning from these sets."""
        cooccurrence = self._cooccurrence()
        sizes = self.sizes
        return CandidateAudit(
            n_sets=len(self),
            n_classes=self.n_classes,
            mean_size=float(sizes.mean()),
            singleton_share=float((sizes == 1).mean()),
            full_share=float((sizes == self.n_classes).mean()),
            cooccurrence=cooccurrence,
            ambiguity_degree=_largest_company(cooccurrence),
            never_seen=self.classes[np.diag(cooccurrence) == 0].tolist(),
        )

    def _cooccurrence(self) -> NDArray[np.int64]:
        sparse = sp.csr_array(self.to_indicator().astype(np.int64))
        return np.asarray((sparse.T @ sparse).toarray(), dtype=np.int64)

    # ------------------------------------------------------------------ as a container

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, key: Any) -> Any:
        """One set as a frozenset for an integer; otherwise the chosen rows."""
        if isinstance(key, tuple):
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("candidate sets are indexed by rows only.")
            key = key[0]  # scikit-learn takes rows as array[rows, ...]
        if isinstance(key, (int, np.integer)):
            return frozenset(self[[int(key)]].to_lists()[0])
        words = self.words[key]
        if words.ndim != 2:
            raise IndexError("candidate sets are indexed by rows only.")
        return type(self)._packed(words, self.classes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Let numpy and scikit-learn see the indicator."""
        if copy is False:
            raise ValueError("the indicator of packed sets is always a copy.")
        return self.to_indicator().astype(dtype or np.bool_, copy=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CandidateSets):
            return NotImplemented
        return np.array_equal(self.classes, other.classes) and np.array_equal(
            self.words, other.words
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"CandidateSets({len(self)} sets over {self.n_classes} classes, "
            f"mean size {self.sizes.sum() / max(len(self), 1):.2f})"
        )


def _largest_company(company: NDArray[np.int64], counts: NDArray[np.intp] | None = None) -> float:
    """Largest share of a label's instances that hold one given other label."""
    counts = np.diag(company) if counts is None else counts
    share = company / np.maximum(counts, 1)[:, None]
    np.fill_diagonal(share, 0.0)
    return float(share.max(initial=0.0))


# ---------------------------------------------------------------------- one reader a form


def _columns_of(
    rows: NDArray[np.intp], labels: Sequence[Any], classes: NDArray[Any]
) -> NDArray[np.intp]:
    """The column of each label; ``rows`` says where a label outside ``classes`` was found."""
    place: Mapping[Any, int] = {label: i for i, label in enumerate(classes.tolist())}
    columns = np.asarray([place.get(label, -1) for label in labels], dtype=np.intp)
    outside = np.flatnonzero(columns < 0)
    if len(outside):
        first = labels[outside[0]]
        raise ValueError(
            f"label {first!r} is not in classes, in {_say_rows(np.unique(rows[outside]))}; "
            f"classes are {_shorten(classes)}."
        )
    return columns


def _shorten(classes: NDArray[Any]) -> str:
    listed = classes.tolist()
    return (
        str(listed) if len(listed) <= 10 else f"{str(listed[:10])[:-1]}, ... {len(listed)} in all]"
    )


def _rename(
    sets: CandidateSets, named: NDArray[Any] | None
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    if named is None or np.array_equal(named, sets.classes):
        return sets.words, sets.classes
    rows, columns = np.nonzero(sets.to_indicator())
    columns = _columns_of(rows, sets.classes[columns].tolist(), named)
    return _pack_pairs(rows, columns, (len(sets), len(named))), named


def _read_frame(frame: Any, named: NDArray[Any] | None) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    columns = _as_classes(frame.columns)
    if named is not None:
        extra = [c for c in columns.tolist() if c not in set(named.tolist())]
        lacking = [c for c in named.tolist() if c not in set(columns.tolist())]
        if extra or lacking:
            raise ValueError(
                "the columns of S do not match classes: "
                + "; ".join(
                    f"{what} {', '.join(map(repr, labels[:5]))}"
                    for what, labels in (("not a class:", extra), ("no column for:", lacking))
                    if labels
                )
                + "."
            )
    words, _ = _read_indicator(np.asarray(frame.to_numpy()), columns)
    if named is None:
        return words, columns
    return _rename(CandidateSets._packed(words, columns), named)


def _read_sparse(
    matrix: Any, named: NDArray[Any] | None
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    if matrix.ndim != 2:
        raise ValueError(f"S has {matrix.ndim} dimension(s); an indicator has shape (n, l).")
    table = sp.coo_array(matrix)
    classes = _classes_of_columns(table.shape[1], named)
    table = table.tocsr().tocoo()  # by way of csr, which adds up entries that stand twice
    _check_zero_one(table.data, lambda bad: (table.row[bad], table.col[bad]))
    held = table.data != 0
    rows, columns = table.row[held].astype(np.intp), table.col[held].astype(np.intp)
    return _pack_pairs(rows, columns, (table.shape[0], len(classes))), classes


def _read_array(S: Any, named: NDArray[Any] | None) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    try:
        array = np.asarray(S)
    except ValueError as error:
        raise ValueError(
            "S is not a table: its rows differ in length. Pass an indicator, a list of "
            "collections of labels, or one label a row."
        ) from error
    if array.ndim == 1 and array.dtype.kind in "US":
        array = np.asarray(S, dtype=object)  # else the 1 of [1, 'a'] is the word '1'
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind != "b":
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; "
            "it is read as one label a row.",
            DataConversionWarning,
            stacklevel=4,
        )
        array = array.ravel()
    if array.ndim == 1:
        if array.dtype == object and any(_is_collection(row) for row in array):
            return _read_collections(array.tolist(), named)
        return _read_labels(array, named)
    if array.ndim != 2:
        raise ValueError(
            f"S has {array.ndim} dimension(s); pass an indicator of shape (n, l), a list of "
            "collections of labels, or one label a row."
        )
    return _read_indicator(array, named)


def _classes_of_columns(n_columns: int, named: NDArray[Any] | None) -> NDArray[Any]:
    if named is None:
        return np.arange(n_columns)
    if len(named) != n_columns:
        raise ValueError(
            f"S has {n_columns} columns but there are {len(named)} classes; "
            "one column a class is needed, in the order of classes."
        )
    return named


def _check_zero_one(
    values: NDArray[Any], place: Callable[[NDArray[np.intp]], tuple[NDArray[Any], NDArray[Any]]]
) -> None:
    """Refuse what is neither 0 nor 1; ``place`` tells the rows and columns of values."""
    if values.dtype == bool:
        return
    if values.dtype == object:
        good = np.fromiter((not is_missing(v) and v in (0, 1) for v in values), bool)
    elif values.dtype.kind in "iuf":
        good = (values == 0) | (values == 1)
    else:
        good = np.zeros(len(values), dtype=bool)
    bad = np.flatnonzero(~good)
    if len(bad):
        rows, columns = place(bad)
        raise ValueError(
            f"S holds {values[bad[0]]} at row {int(rows[0])}, column {int(columns[0])} "
            f"({len(bad)} such value(s) in {len(np.unique(rows))} row(s)); "
            "an indicator holds 0 and 1, or booleans. "
            "A list of lists of labels is read as candidate sets instead."
        )


def _read_indicator(
    array: NDArray[Any], named: NDArray[Any] | None
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    classes = _classes_of_columns(array.shape[1], named)
    _check_zero_one(array.ravel(), lambda bad: np.divmod(bad, array.shape[1]))
    return _pack(array.astype(bool)), classes


def _read_labels(
    y: NDArray[Any], named: NDArray[Any] | None
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    from sklearn.utils.multiclass import check_classification_targets

    missing = np.flatnonzero([is_missing(label) for label in y.tolist()])
    if len(missing):
        raise ValueError(f"Input y contains NaN: the label is missing in {_say_rows(missing)}.")
    if y.dtype.kind == "f" and np.isinf(y).any():
        rows = np.flatnonzero(np.isinf(y))
        raise ValueError(f"Input y contains infinity: no label, in {_say_rows(rows)}.")
    if y.dtype == object:
        y = np.asarray(y.tolist()) if len({type(v) for v in y}) == 1 else y
    if len(y) and named is None and y.dtype.kind not in "USO":
        check_classification_targets(y)
    labels = y.tolist()
    classes = _sorted_labels(set(labels)) if named is None else named
    rows = np.arange(len(y))
    return _pack_pairs(rows, _columns_of(rows, labels, classes), (len(y), len(classes))), classes


def _read_collections(
    rows: Sequence[Any], named: NDArray[Any] | None
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    odd = np.flatnonzero([not _is_collection(row) for row in rows])
    if len(odd):
        raise ValueError(
            f"S mixes collections of labels with {type(rows[odd[0]]).__name__}, "
            f"in {_say_rows(odd)}; wrap a single label in a list."
        )
    listed: list[Collection[Any]] = [
        row.tolist() if isinstance(row, np.ndarray) else row for row in rows
    ]
    places = np.repeat(np.arange(len(listed)), [len(row) for row in listed])
    labels = [label for row in listed for label in row]
    nested = np.flatnonzero([_is_collection(label) for label in labels])
    if len(nested):
        raise ValueError(f"a label is itself a collection in {_say_rows(places[nested])}.")
    missing = np.flatnonzero([is_missing(label) for label in labels])
    if len(missing):
        raise ValueError(
            f"a candidate is missing (None or NaN) in {_say_rows(np.unique(places[missing]))}."
        )
    classes = _sorted_labels(set(labels)) if named is None else named
    columns = _columns_of(places, labels, classes)
    return _pack_pairs(places, columns, (len(listed), len(classes))), classes
