"""Combine the evidence of neighbours by Yager's rule, for a whole batch, on packed words.

Each neighbour with candidates s supports ``s & frame`` with mass 1 - alpha and leaves alpha
on the frame, unless s misses the frame or covers it. What is wanted are the masses of the
single labels, of the conflict and of the frame, and the heaviest focal set.

Equal sets are merged first: c of them leave alpha ** c on the frame. What remains is kept
by label: ``lacks[y]`` has a bit for every piece of evidence whose set lacks y, and a family
of pieces that are taken at their word leaves exactly the labels whose ``lacks`` it misses.
There are three ways to sum over families, and each is used where it is the fastest:

- Few distinct sets (`_by_families`): all 2 ** sets families, in one table. A family's focal
  set is known by the union of the ``lacks`` of its labels, which a subset transform gives.
- More (`_hitting`): the mass of {y} is the chance that no set that lacks y is taken at its
  word, and that for every other label some set that lacks it is. Inclusion and exclusion
  over the other labels gives it, where whole branches cancel: once the pieces ruled out
  cover the ``lacks`` of a label still to come, taking it or leaving it adds up to nothing.
- All masses of many sets (`_fold`): fold in one set after the other, and hold the
  intersections met so far in a hash table. Only needed for the heaviest focal set, and
  only where it cannot be told from a few (`_heaviest_of_few`): a set of labels weighs at
  most the chance that all of them stay, and all such sets together what single labels and
  the frame leave.

For alpha = 1/2 all masses are multiples of 2 ** -k, so for k up to 50 nothing is rounded.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur._kernels import in_ranges, kernel

MAX_NEIGHBORS = 64
# About 100 MB a thread for 64 classes; beyond it the time would be out of hand too.
MAX_FOCAL_SETS = 2**22
MAX_STEPS = 2**28
# Distinct sets up to which all families of them are summed in a table.
MAX_FAMILY_SETS = 10
# Fewer labels than this are quicker one by one.
MIN_FAMILY_LABELS = 32
# Focal sets that are weighed one by one, before all are.
FEW = 24
# CHOOSE[n, t]; the largest, of 32 among 64, still fits.
CHOOSE = np.array(
    [[comb(n, t) for t in range(MAX_NEIGHBORS + 1)] for n in range(MAX_NEIGHBORS + 1)]
)

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Ints = NDArray[np.intp]


class Evidence(NamedTuple):
    """Combined evidence, one row an instance.

    Attributes
    ----------
    belief, plausibility : ndarray of shape (n, n_classes)
        Of the single labels. The belief in a label is the mass of its singleton.
    conflict : ndarray of shape (n,)
        Mass of the empty set before Yager's rule gives it to the frame.
    ignorance : ndarray of shape (n,)
        Mass of the frame after that: what supports no label more than another.
    top_set : ndarray of uint64, shape (n, n_words)
        The focal set of the most mass; among equals the smallest, then the one whose
        first label that the other lacks comes first. Left empty where it was not asked for.
    top_mass : ndarray of shape (n,)
    """

    belief: Floats
    plausibility: Floats
    conflict: Floats
    ignorance: Floats
    top_set: Words
    top_mass: Floats


def combine(
    words: Words,
    neighbors: Ints,
    frames: Words,
    n_classes: int,
    *,
    alpha: float = 0.5,
    top_sets: bool = True,
    n_jobs: int | None = None,
) -> Evidence:
    """Combine the candidate sets of each instance's neighbours within its frame.

    Parameters
    ----------
    words : ndarray of uint64, shape (m, n_words)
        Packed candidate sets.
    neighbors : ndarray of shape (n, k)
        Rows of ``words`` that give evidence for each instance; k is at most 64.
    frames : ndarray of uint64, shape (n, n_words) or (1, n_words)
        Packed labels that an instance can have; one row serves for all.
    n_classes : int
    alpha : float, default=0.5
        Mass that each piece of evidence leaves on the frame.
    top_sets : bool, default=True
        Whether to find the heaviest focal set of every instance. If not, it is found
        where no single label has mass, since only there a prediction needs it.
    n_jobs : int, optional

    Returns
    -------
    evidence : Evidence

    Examples
    --------
    The example of the text: neighbours with the candidates {1}, {1, 2} and {1, 3}.

    >>> import numpy as np
    >>> words = np.array([[0b001], [0b011], [0b101]], dtype=np.uint64)
    >>> frame = np.array([[0b111]], dtype=np.uint64)
    >>> result = combine(words, np.array([[0, 1, 2]]), frame, 3)
    >>> result.belief.tolist(), result.plausibility.tolist()
    ([[0.625, 0.0, 0.0]], [[1.0, 0.25, 0.25]])
    >>> result.ignorance.tolist(), result.top_set.tolist()
    ([0.125], [[1]])
    """
    n, k = neighbors.shape
    if k > MAX_NEIGHBORS:
        raise ValueError(f"evidence of at most {MAX_NEIGHBORS} neighbours is combined; got {k}.")
    n_words = words.shape[1]
    result = Evidence(
        belief=np.zeros((n, n_classes)),
        plausibility=np.zeros((n, n_classes)),
        conflict=np.zeros(n),
        ignorance=np.zeros(n),
        top_set=np.zeros((n, n_words), dtype=np.uint64),
        top_mass=np.zeros(n),
    )
    # alpha ** c and (1 - alpha) ** c by products, which are exact for 1/2
    powers = np.cumprod(np.concatenate([[1.0], np.full(MAX_NEIGHBORS, alpha)]))
    rests = np.cumprod(np.concatenate([[1.0], np.full(MAX_NEIGHBORS, 1.0 - alpha)]))
    frames = np.broadcast_to(frames, (n, n_words))
    failed = np.zeros(n, dtype=np.bool_)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        _combine_rows(
            words, neighbors[rows], frames[rows], powers, rests, CHOOSE, top_sets,
            result.belief[rows], result.plausibility[rows], result.conflict[rows],
            result.ignorance[rows], result.top_set[rows], result.top_mass[rows], failed[rows],
        )  # fmt: skip

    in_ranges(work, n, n_jobs, range_size=256)
    if failed.any():
        raise ValueError(
            f"the evidence for row {int(np.argmax(failed))} has too many focal sets to combine "
            f"exactly (more than {MAX_FOCAL_SETS}); use fewer neighbours."
        )
    return result


def focal_sets(
    words: Words, neighbors: Ints, frame: Words, *, alpha: float = 0.5
) -> tuple[Words, Floats] | None:
    """All focal sets of one instance with their masses, heaviest first.

    Returns None where there are too many to list. The parameters are those of `combine`,
    for one row.
    """
    sets = np.zeros((len(neighbors), words.shape[1]), dtype=np.uint64)
    counts = np.zeros(len(neighbors), dtype=np.intp)
    n_sets = _gather(words, neighbors, frame, sets, counts)
    held, keys, masses, _, _ = _fold(
        frame, sets, np.asarray(alpha**counts, dtype=np.float64), n_sets,
        np.zeros((512, len(frame)), dtype=np.uint64), np.zeros(512),
        np.zeros(512, dtype=np.uint64), np.full(2048, -1, dtype=np.int32),
    )  # fmt: skip
    if held < 0:
        return None
    keys, masses = keys[:held], masses[:held]
    masses[0] += max(0.0, 1.0 - masses.sum())  # the conflict goes to the frame
    order = np.argsort(-masses, kind="stable")
    return keys[order], masses[order]


# Numba turns a sum of signed and unsigned integers into a float: keep these unsigned.
ONE = np.uint64(1)
ZERO = np.uint64(0)
SIX = np.uint64(6)
LOW_SIX = np.uint64(63)
M1 = np.uint64(0x5555555555555555)
M2 = np.uint64(0x3333333333333333)
M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
H01 = np.uint64(0x0101010101010101)
SHIFT_1, SHIFT_2, SHIFT_4, SHIFT_32, SHIFT_56 = (np.uint64(s) for s in (1, 2, 4, 32, 56))
MIX = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _count_bits(word: np.uint64) -> np.intp:
    """Population count; the compiler knows the pattern and uses one instruction."""
    word = word - ((word >> SHIFT_1) & M1)
    word = (word & M2) + ((word >> SHIFT_2) & M2)
    word = (word + (word >> SHIFT_4)) & M4
    return np.intp((word * H01) >> SHIFT_56)


@kernel
def _lowest(word: np.uint64) -> np.intp:
    """Place of the lowest bit that is set."""
    return _count_bits((word & (~word + ONE)) - ONE)


@kernel
def _slot_of(key: Words, keys: Words, table: NDArray[np.int32]) -> np.uint64:
    """Where in the table a set is, or would be."""
    mask = np.uint64(len(table) - 1)
    mixed = ZERO
    for w in range(len(key)):
        mixed = (mixed ^ key[w]) * MIX
        mixed ^= mixed >> SHIFT_32
    slot = mixed & mask
    while table[slot] >= 0:
        held = table[slot]
        same = True
        for w in range(len(key)):
            if keys[held, w] != key[w]:
                same = False
                break
        if same:
            break
        slot = (slot + ONE) & mask
    return slot


@kernel
def _fold(
    frame: Words,
    sets: Words,
    stays: Floats,
    n_sets: int,
    keys: Words,
    masses: Floats,
    slots: Words,
    table: NDArray[np.int32],
) -> tuple[int, Words, Floats, Words, NDArray[np.int32]]:
    """Fold the sets into the frame one by one; the frame is the first of the sets held.

    Returns how many sets are held (-1: too many) and the arrays that hold them, which may
    have grown. The mass of the empty set is left out.
    """
    n_words = len(frame)
    key = np.empty(n_words, dtype=np.uint64)
    keys[0] = frame
    masses[0] = 1.0
    slots[0] = _slot_of(frame, keys, table)
    table[slots[0]] = 0
    held = 1
    for g in range(n_sets):
        for s in range(held):
            empty = True
            whole = True
            for w in range(n_words):
                key[w] = keys[s, w] & sets[g, w]
                whole &= key[w] == keys[s, w]
                empty &= key[w] == ZERO
            if whole:
                continue  # what is inside the new set already keeps all its mass
            moved = masses[s] * (1.0 - stays[g])
            masses[s] *= stays[g]
            if empty:
                continue
            slot = _slot_of(key, keys, table)
            place = table[slot]
            if place >= 0:
                masses[place] += moved
                continue
            if held == len(masses):
                if 2 * held > MAX_FOCAL_SETS:
                    return -1, keys, masses, slots, table
                keys = np.concatenate((keys, np.empty_like(keys)))
                masses = np.concatenate((masses, np.empty_like(masses)))
                slots = np.concatenate((slots, np.empty_like(slots)))
                table = np.full(2 * len(table), -1, dtype=np.int32)
                for old in range(held):
                    slots[old] = _slot_of(keys[old], keys, table)
                    table[slots[old]] = old
                slot = _slot_of(key, keys, table)
            table[slot] = held
            slots[held] = slot
            keys[held] = key
            masses[held] = moved
            held += 1
    return held, keys, masses, slots, table


@kernel
def _comes_first(a: Words, b: Words) -> bool:
    """Whether the first label in which two sets differ belongs to a."""
    for w in range(len(a)):
        differ = a[w] ^ b[w]
        if differ != ZERO:
            return bool((a[w] >> np.uint64(_lowest(differ))) & ONE == ONE)
    return False


@kernel
def _size(words: Words) -> np.intp:
    size = np.intp(0)
    for w in range(len(words)):
        size += _count_bits(words[w])
    return size


@kernel
def _heaviest(keys: Words, masses: Floats, held: int) -> int:
    """The focal set of the most mass; among equals the smallest, then the first."""
    best = 0
    for s in range(1, held):
        if masses[s] < masses[best]:
            continue
        if masses[s] == masses[best]:
            size, best_size = _size(keys[s]), _size(keys[best])
            if size > best_size:
                continue
            if size == best_size and not _comes_first(keys[s], keys[best]):
                continue
        best = s
    return best


@kernel
def _gather(row_words: Words, neighbors: Ints, frame: Words, sets: Words, counts: Ints) -> int:
    """The distinct sets that are evidence within the frame, with how often each stands."""
    n_words = len(frame)
    key = np.empty(n_words, dtype=np.uint64)
    n_sets = 0
    for j in range(len(neighbors)):
        covers = True
        empty = True
        for w in range(n_words):
            key[w] = row_words[neighbors[j], w] & frame[w]
            covers &= key[w] == frame[w]
            empty &= key[w] == ZERO
        if covers or empty:
            continue
        for place in range(n_sets):
            same = True
            for w in range(n_words):
                if sets[place, w] != key[w]:
                    same = False
                    break
            if same:
                counts[place] += 1
                break
        else:
            sets[n_sets] = key
            counts[n_sets] = 1
            n_sets += 1
    return n_sets


@kernel
def _list_lacks(sets: Words, masks: Words, n_sets: int, n_classes: int, lacks: Words) -> None:
    """For each label, the union of the masks of the sets that lack it."""
    lacks[:] = ZERO
    for g in range(n_sets):
        for w in range(sets.shape[1]):
            absent = ~sets[g, w]
            # Without a branch, so that it runs as vector instructions.
            for b in range(min(64, n_classes - 64 * w)):
                lacks[64 * w + b] |= (ZERO - ((absent >> np.uint64(b)) & ONE)) & masks[g]


@kernel
def _lacks_by_set(
    sets: Words, n_sets: int, used: int, n_classes: int, lacks: Words, room: Words
) -> Words:
    """``lacks`` with one bit a distinct set in place of one a piece of evidence."""
    if n_sets == used:
        return lacks
    bits = ONE << np.arange(n_sets).astype(np.uint64)
    _list_lacks(sets, bits, n_sets, n_classes, room)
    return room


@kernel
def _by_families(
    lacks: Words,
    labels: Ints,
    stays: Floats,
    n_sets: int,
    union: NDArray[np.uint16],
    size: NDArray[np.int32],
    chance: Floats,
    mass: Floats,
) -> float:
    """Sum over all families of sets; returns the conflict.

    ``lacks`` is by distinct sets here. ``mass[u]`` becomes the mass of the focal set whose
    labels' ``lacks`` have the union u, ``size[u]`` how many they are.
    """
    n_cells = 1 << n_sets
    union[:n_cells] = 0
    size[:n_cells] = 0
    mass[:n_cells] = 0.0
    for y in labels:
        union[lacks[y]] = lacks[y]
        size[lacks[y]] += 1
    # Cell D is the family that takes all sets but those of D at their word.
    chance[0] = 1.0
    for g in range(n_sets):
        step = 1 << g
        for cell in range(step):
            chance[cell + step] = chance[cell] * stays[g]
            chance[cell] *= 1.0 - stays[g]
        for base in range(0, n_cells, 2 * step):
            for cell in range(base, base + step):
                union[cell + step] |= union[cell]
                size[cell + step] += size[cell]
    for cell in range(n_cells):
        mass[union[cell]] += chance[cell]
    if size[0] > 0:
        return 0.0  # some label is in every set
    conflict = mass[0]
    mass[0] = 0.0
    return float(conflict)


@kernel
def _heaviest_family(
    lacks: Words,
    labels: Ints,
    n_sets: int,
    size: NDArray[np.int32],
    mass: Floats,
    tied: NDArray[np.uint16],
    top_set: Words,
) -> float:
    """Write the focal set of the most mass, chosen as in `_heaviest`; returns the mass."""
    n_cells = 1 << n_sets
    best = n_cells - 1
    for cell in range(n_cells):
        if mass[cell] > mass[best] or (mass[cell] == mass[best] and size[cell] < size[best]):
            best = cell
    n_tied = 0
    for cell in range(n_cells):
        if mass[cell] == mass[best] and size[cell] == size[best]:
            tied[n_tied] = cell
            n_tied += 1
    for y in labels:
        # Of the sets still tied, keep those that hold the label, if any does.
        if n_tied > 1:
            kept = 0
            for i in range(n_tied):
                if lacks[y] & ~np.uint64(tied[i]) == ZERO:
                    tied[kept], tied[i] = tied[i], tied[kept]
                    kept += 1
            if kept > 0:
                n_tied = kept
    for y in labels:
        if lacks[y] & ~np.uint64(tied[0]) == ZERO:
            top_set[y // 64] |= ONE << np.uint64(y % 64)
    return float(mass[best])


@kernel
def _hitting(
    clauses: Words,
    n_clauses: int,
    powers: Floats,
    rests: Floats,
    choose: NDArray[np.int64],
    counts: NDArray[np.int64],
    covered: Words,
    position: Ints,
) -> float:
    """Chance that of every clause, a set of pieces of evidence, one is taken at its word.

    Sorts and thins out the clauses in place; the other arrays are room to work in.
    Returns -1 where it would take too long.
    """
    # From the smallest clause up: what holds another clause adds nothing to it.
    for i in range(1, n_clauses):
        clause = clauses[i]
        bits = _count_bits(clause)
        j = i
        while j > 0 and _count_bits(clauses[j - 1]) > bits:
            clauses[j] = clauses[j - 1]
            j -= 1
        clauses[j] = clause
    kept = 0
    certain = 0  # clauses of one piece, which is taken then
    pieces = ZERO
    for i in range(n_clauses):
        clause = clauses[i]
        needed = True
        for j in range(kept):
            if clauses[j] & ~clause == ZERO:
                needed = False
                break
        if needed:
            clauses[kept] = clause
            kept += 1
            if clause & (clause - ONE) == ZERO:
                certain += 1
            else:
                pieces |= clause
    n_pieces = _count_bits(pieces)
    # counts[c]: how many more even than odd choices of clauses have a union of c pieces.
    # Walk from the largest clause to the smallest, so that branches cancel soon.
    counts[: n_pieces + 1] = 0
    counts[0] = 1
    steps = 0
    depth = 0
    covered[0] = ZERO
    position[0] = kept
    sign = -1
    while depth >= 0:
        position[depth] -= 1
        at = position[depth]
        if at < certain:
            depth -= 1
            sign = -sign
            continue
        union = covered[depth] | clauses[at]
        cancels = False
        for j in range(certain, at):
            if clauses[j] & ~union == ZERO:
                cancels = True
                break
        if cancels:
            continue
        counts[_count_bits(union)] += sign
        depth += 1
        covered[depth] = union
        position[depth] = at
        sign = -sign
        steps += 1
        if steps > MAX_STEPS:
            return -1.0
    # In how many ways can t pieces be taken that hit everything? A whole number that fits,
    # so whatever overflows on the way cancels; then all that is added is positive.
    chance = 0.0
    for t in range(n_pieces + 1):
        ways = 0
        for c in range(n_pieces - t + 1):
            ways += counts[c] * choose[n_pieces - c, t]
        chance += ways * (powers[n_pieces - t] * rests[t])
    return float(chance * rests[certain])


@kernel
def _heaviest_of_few(
    lacks: Words, labels: Ints, everyone: np.uint64, least: float,
    powers: Floats, rests: Floats, choose: NDArray[np.int64], clauses: Words,
    counts: NDArray[np.int64], covered: Words, position: Ints, few: Words,
) -> float:  # fmt: skip
    """The most mass of a set of two labels or more, short of the frame, if it can reach least.

    A focal set is known by the pieces that must be ruled out for all its labels to stay,
    the union of their ``lacks``; with c of them it weighs at most alpha ** c. Returns -1
    where more than a few sets can reach ``least``, and 0 where none does; else the union of
    the heaviest, chosen as in `_heaviest`, is put first in ``few``.
    """
    held = 0
    for i in range(len(labels)):
        union = lacks[labels[i]]
        if powers[_count_bits(union)] >= least and union != everyone:
            known = False
            for j in range(held):
                known |= few[j] == union
            if not known:
                if held == FEW:
                    return -1.0
                few[held] = union
                held += 1
    i = 0
    while i < held:
        for y in labels:
            union = few[i] | lacks[y]
            if union != everyone and powers[_count_bits(union)] >= least:
                known = False
                for j in range(held):
                    known |= few[j] == union
                if not known:
                    if held == FEW:
                        return -1.0
                    few[held] = union
                    held += 1
        i += 1
    best, best_mass, best_size = -1, 0.0, 0
    for i in range(held):
        union = few[i]
        size = 0
        n_clauses = 0
        for y in labels:
            clause = lacks[y] & ~union
            if clause == ZERO:
                size += 1
            else:
                clauses[n_clauses] = clause
                n_clauses += 1
        if size < 2:
            continue
        hit = _hitting(clauses, n_clauses, powers, rests, choose, counts, covered, position)
        if hit < 0.0:
            return -1.0
        mass = hit * powers[_count_bits(union)]
        better = mass > best_mass or (mass == best_mass and size < best_size)
        if best >= 0 and mass == best_mass and size == best_size:
            for y in labels:
                stays, best_stays = lacks[y] & ~union == ZERO, lacks[y] & ~few[best] == ZERO
                if stays != best_stays:
                    better = stays
                    break
        if better and mass >= least:
            best, best_mass, best_size = i, mass, size
    if best >= 0:
        few[0] = few[best]
    return float(best_mass)


@kernel
def _combine_rows(
    words: Words,
    neighbors: Ints,
    frames: Words,
    powers: Floats,
    rests: Floats,
    choose: NDArray[np.int64],
    top_sets: bool,
    belief: Floats,
    plausibility: Floats,
    conflict: Floats,
    ignorance: Floats,
    top_set: Words,
    top_mass: Floats,
    failed: NDArray[np.bool_],
) -> None:
    n, k = neighbors.shape
    n_words = words.shape[1]
    sets = np.empty((k, n_words), dtype=np.uint64)
    counts = np.empty(k, dtype=np.intp)
    stays = np.empty(k)
    lacks = np.empty(64 * n_words, dtype=np.uint64)  # by pieces of evidence
    masks = np.empty(k, dtype=np.uint64)  # the pieces of a distinct set
    labels = np.empty(64 * n_words, dtype=np.intp)
    # for _by_families
    lacks_sets = np.empty(64 * n_words, dtype=np.uint64)
    union = np.empty(1 << MAX_FAMILY_SETS, dtype=np.uint16)
    size = np.empty(1 << MAX_FAMILY_SETS, dtype=np.int32)
    chance = np.empty(1 << MAX_FAMILY_SETS)
    mass = np.empty(1 << MAX_FAMILY_SETS)
    # for _hitting
    clauses = np.empty(64 * n_words, dtype=np.uint64)
    union_counts = np.empty(MAX_NEIGHBORS + 1, dtype=np.int64)
    covered = np.empty(64 * n_words + 1, dtype=np.uint64)
    position = np.empty(64 * n_words + 1, dtype=np.intp)
    few = np.empty(FEW, dtype=np.uint64)
    # for _fold
    keys = np.empty((512, n_words), dtype=np.uint64)
    masses = np.empty(512)
    slots = np.empty(512, dtype=np.uint64)
    table = np.full(2048, -1, dtype=np.int32)
    for row in range(n):
        frame = frames[row]
        singles = belief[row]
        n_sets = _gather(words, neighbors[row], frame, sets, counts)
        n_labels = 0
        for w in range(n_words):
            rest = frame[w]
            while rest != ZERO:
                y = 64 * w + _lowest(rest)
                rest &= rest - ONE
                labels[n_labels] = y
                n_labels += 1
        used = 0
        everyone = ZERO
        masks[:n_sets] = ZERO
        for g in range(n_sets):
            stays[g] = powers[counts[g]]
            for _ in range(counts[g]):
                masks[g] |= ONE << np.uint64(used)
                used += 1
            everyone |= masks[g]
        _list_lacks(sets, masks, n_sets, belief.shape[1], lacks)

        by_families = n_sets <= MAX_FAMILY_SETS and n_labels >= MIN_FAMILY_LABELS
        if by_families:
            by_set = _lacks_by_set(sets, n_sets, used, belief.shape[1], lacks, lacks_sets)
            clash = _by_families(
                by_set, labels[:n_labels], stays, n_sets, union, size, chance, mass
            )
            for i in range(n_labels):
                y = labels[i]
                if size[by_set[y]] == 1:
                    singles[y] = mass[by_set[y]]
        else:
            clash = 0.0
            for i in range(-1, n_labels):
                # -1 is the conflict: no label may be left
                own = ZERO if i < 0 else lacks[labels[i]]
                n_clauses = 0
                for j in range(n_labels):
                    if j != i:
                        clause = lacks[labels[j]] & ~own
                        if clause == ZERO:
                            break  # this label is left wherever label i is
                        clauses[n_clauses] = clause
                        n_clauses += 1
                else:
                    hit = _hitting(
                        clauses, n_clauses, powers, rests, choose, union_counts, covered, position
                    )
                    if hit < 0.0:
                        failed[row] = True
                        return
                    if i < 0:
                        clash = hit
                    else:
                        singles[labels[i]] = hit * powers[_count_bits(own)]

        conflict[row] = clash
        unsure = powers[used] + clash
        ignorance[row] = unsure
        left = 1.0 - unsure
        heaviest = labels[0]
        most, second = 0.0, 0.0
        for i in range(n_labels):
            y = labels[i]
            possible = powers[_count_bits(lacks[y])]
            plausibility[row, y] = possible + clash
            left -= singles[y]
            if singles[y] > singles[heaviest]:
                heaviest = y
            if possible > most:
                most, second = possible, most
            elif possible > second:
                second = possible
        if not top_sets and singles[heaviest] > 0.0:
            continue
        # Ties go to the smaller set, so a label may equal the bound, the frame may not.
        bound = min(second, left)
        if n_labels == 1 or (unsure > bound and unsure > singles[heaviest]):
            top_set[row] = frame
            top_mass[row] = unsure
        elif singles[heaviest] >= bound and singles[heaviest] >= unsure:
            top_set[row, heaviest // 64] = ONE << np.uint64(heaviest % 64)
            top_mass[row] = singles[heaviest]
        else:
            if not by_families:
                weight = _heaviest_of_few(
                    lacks, labels[:n_labels], everyone, max(unsure, singles[heaviest]),
                    powers, rests, choose, clauses, union_counts, covered, position, few,
                )  # fmt: skip
                if weight >= 0.0:
                    if weight > 0.0 and weight >= unsure and weight > singles[heaviest]:
                        for i in range(n_labels):
                            y = labels[i]
                            if lacks[y] & ~few[0] == ZERO:
                                top_set[row, y // 64] |= ONE << np.uint64(y % 64)
                        top_mass[row] = weight
                    elif singles[heaviest] >= unsure:
                        top_set[row, heaviest // 64] = ONE << np.uint64(heaviest % 64)
                        top_mass[row] = singles[heaviest]
                    else:
                        top_set[row] = frame
                        top_mass[row] = unsure
                    continue
            if n_sets <= MAX_FAMILY_SETS:
                by_set = _lacks_by_set(sets, n_sets, used, belief.shape[1], lacks, lacks_sets)
                if not by_families:
                    _by_families(
                        by_set, labels[:n_labels], stays, n_sets, union, size, chance, mass
                    )
                mass[(1 << n_sets) - 1] = unsure  # the frame
                top_mass[row] = _heaviest_family(
                    by_set, labels[:n_labels], n_sets, size, mass, union, top_set[row]
                )
                continue
            held, keys, masses, slots, table = _fold(
                frame, sets, stays, n_sets, keys, masses, slots, table
            )
            if held < 0:
                failed[row] = True
                return
            masses[0] = unsure
            for s in range(held):
                table[slots[s]] = -1
            best = _heaviest(keys, masses, held)
            top_set[row] = keys[best]
            top_mass[row] = masses[best]
