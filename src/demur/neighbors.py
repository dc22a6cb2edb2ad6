"""Exact k nearest neighbours in a stable order: by distance, then by training index.

The distance that counts is the one summed in float64 over the features in their order.
Every path ends in it, so all algorithms, chunk sizes and numbers of threads agree to the
last bit, ties included:

- ``kd_tree`` measures whole leaves that way, and prunes a box only when its own distance,
  summed in the same order and therefore never too large by rounding, rules it out.
- ``brute`` for Euclidean distance first multiplies matrices in float32 and keeps whatever
  comes within the rounding error of the k-th place, then measures what was kept.
- ``brute`` for Manhattan distance measures everything.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from demur._kernels import in_ranges, kernel
from demur._parameters import check_whole

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.intp]

METRICS = ("euclidean", "manhattan")
ALGORITHMS = ("auto", "kd_tree", "brute")

# Trees beat matrix products up to about this many features (benchmarks/dst_pll.py).
TREE_MAX_FEATURES = 9
LEAF_SIZE = 32
QUERY_ROWS, TRAIN_ROWS = 128, 2048  # a tile of float32 products that stays in cache
STEP = 64  # products looked at together
PENDING = 32
FLOAT32_UNIT = 2.0**-24
FLOAT64_UNIT = 2.0**-53


def build_index(
    X: Floats, n_neighbors: int, *, metric: str = "euclidean", algorithm: str = "auto"
) -> NeighborIndex:
    """Index for a method's training points, once its number of neighbours is checked."""
    check_whole("n_neighbors", n_neighbors, 1)
    if len(X) < n_neighbors + 1:
        warnings.warn(
            f"n_neighbors is {n_neighbors}, but there are only {len(X)} training instances; "
            "all there are is used (one fewer for the training instances themselves).",
            UserWarning,
            stacklevel=4,
        )
    return NeighborIndex(X, metric=metric, algorithm=algorithm)


class NeighborIndex:
    """Training points, ready to be searched.

    Parameters
    ----------
    X : ndarray of float64, shape (n, d)
        Finite; rows are the training points.
    metric : {"euclidean", "manhattan"}
    algorithm : {"auto", "kd_tree", "brute"}
        All give the same answer.

    Examples
    --------
    >>> import numpy as np
    >>> index = NeighborIndex(np.array([[0.0], [1.0], [1.0], [3.0]]))
    >>> distances, neighbors = index.query(np.array([[1.0]]), 3)
    >>> neighbors.tolist(), distances.tolist()
    ([[1, 2, 0]], [[0.0, 0.0, 1.0]])
    >>> index.query_self(2)[1].tolist()
    [[1, 2], [2, 0], [1, 0], [1, 2]]
    """

    def __init__(
        self,
        X: Floats,
        *,
        metric: str = "euclidean",
        algorithm: str = "auto",
    ) -> None:
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {METRICS}; got {metric!r}.")
        if algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {ALGORITHMS}; got {algorithm!r}.")
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        self.metric = metric
        _check_distances(self.X, metric)
        n, d = self.X.shape
        if algorithm == "auto":
            algorithm = "kd_tree" if d <= TREE_MAX_FEATURES else "brute"
        self.algorithm = algorithm
        self._squared = metric == "euclidean"
        if algorithm == "brute" and self._squared:
            self._products = _Products(self.X)
        else:
            # Without splits the tree is one list of leaves: every point is measured.
            leaves = -(-n // LEAF_SIZE)
            levels = max(leaves - 1, 0).bit_length() if algorithm == "kd_tree" else 0
            self._tree = _build_tree(self.X, levels)

    def query(self, Q: Floats, k: int, *, n_jobs: int | None = None) -> tuple[Floats, Ints]:
        """The ``min(k, n)`` nearest training points of each row of ``Q``.

        Returns
        -------
        distances, indices : ndarrays of shape (len(Q), min(k, n))
        """
        _check_distances(Q, self.metric)
        own = np.full(len(Q), -1, dtype=np.intp)
        return self._search(np.ascontiguousarray(Q), own, min(k, len(self.X)), n_jobs)

    def query_self(self, k: int, *, n_jobs: int | None = None) -> tuple[Floats, Ints]:
        """The same for the training points, none of which is its own neighbour."""
        own = np.arange(len(self.X))
        return self._search(self.X, own, min(k, len(self.X) - 1), n_jobs)

    def _search(self, Q: Floats, own: Ints, k: int, n_jobs: int | None) -> tuple[Floats, Ints]:
        distances = np.empty((len(Q), k))
        indices = np.empty((len(Q), k), dtype=np.intp)
        if k == 0 or len(Q) == 0:
            return distances, indices
        if self.algorithm == "brute" and self._squared:
            self._products.search(Q, own, distances, indices, n_jobs)
        else:
            self._search_leaves(Q, own, distances, indices, n_jobs)
        if self._squared:
            np.sqrt(distances, out=distances)
        return distances, indices

    def _search_leaves(
        self, Q: Floats, own: Ints, distances: Floats, indices: Ints, n_jobs: int | None
    ) -> None:
        """Search the tree, one query after another that lies near it.

        They visit the same leaves, which are then still in the cache: twice as fast where the
        points are many.
        """
        visit = np.argsort(_own_leaves(Q, *self._tree[4:6], self._squared), kind="stable")

        def search(start: int, stop: int) -> None:
            rows = visit[start:stop]
            near, nearest = distances[rows], indices[rows]
            _search_tree(Q[rows], own[rows], *self._tree, self._squared, near, nearest)
            distances[rows], indices[rows] = near, nearest

        in_ranges(search, len(Q), n_jobs)


# ------------------------------------------------------------------------------ shared


def _check_distances(X: Floats, metric: str) -> None:
    """Refuse points whose distances could be infinite: then none would be the nearest."""
    largest = max(float(X.max(initial=0.0)), -float(X.min(initial=0.0)))
    share = np.finfo(np.float64).max / max(X.shape[1], 1)
    if 2 * largest > (np.sqrt(share) if metric == "euclidean" else share):
        raise ValueError(
            f"features as large as {largest:.3g} have distances that are no number; "
            "scale them, for instance to [0, 1]."
        )


@kernel
def _insert(distances: Floats, indices: Ints, held: int, value: float, index: int) -> int:
    """Put a point in its place among the best so far; returns how many are held."""
    k = len(distances)
    if held == k:
        last = distances[k - 1]
        if value > last or (value == last and index > indices[k - 1]):
            return held
        place = k - 1
    else:
        place = held
        held += 1
    while place > 0 and (
        distances[place - 1] > value
        or (distances[place - 1] == value and indices[place - 1] > index)
    ):
        distances[place] = distances[place - 1]
        indices[place] = indices[place - 1]
        place -= 1
    distances[place] = value
    indices[place] = index
    return held


# ------------------------------------------------------------------------------ the tree


@kernel
def _select(keys: Floats, order: Ints, left: int, right: int, nth: int) -> None:
    """Reorder keys[left..right], and order with it, so that the nth is in its sorted place."""
    while right > left:
        middle = (left + right) // 2
        a, b, c = keys[left], keys[middle], keys[right]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = left, right
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if nth <= j:
            right = j
        elif nth >= i:
            left = i
        else:
            return


@kernel
def _build_tree(X: Floats, levels: int) -> tuple[Floats, Ints, Ints, Ints, Floats, Floats, Ints]:
    """Split at the median of the widest feature, ``levels`` times.

    Node i has the children 2 i + 1 and 2 i + 2. Points are kept leaf by leaf, feature by
    feature within a leaf, so that a leaf is measured with vector instructions.
    """
    n, d = X.shape
    n_nodes = 2 ** (levels + 1) - 1
    order = np.arange(n)
    starts = np.zeros(n_nodes, dtype=np.intp)
    stops = np.zeros(n_nodes, dtype=np.intp)
    lower = np.zeros((n_nodes, d))
    upper = np.zeros((n_nodes, d))
    first = np.zeros(n_nodes, dtype=np.intp)  # the smallest index in the node
    keys = np.empty(n)
    stops[0] = n
    for node in range(n_nodes):
        start, stop = starts[node], stops[node]
        lower[node] = np.inf
        upper[node] = -np.inf
        first[node] = n
        for i in range(start, stop):
            point = order[i]
            first[node] = min(first[node], point)
            for f in range(d):
                lower[node, f] = min(lower[node, f], X[point, f])
                upper[node, f] = max(upper[node, f], X[point, f])
        if 2 * node + 2 < n_nodes:
            middle = (start + stop) // 2
            if stop - start > 1:
                widest = 0
                for f in range(1, d):
                    if upper[node, f] - lower[node, f] > upper[node, widest] - lower[node, widest]:
                        widest = f
                for i in range(start, stop):
                    keys[i] = X[order[i], widest]
                _select(keys, order, start, stop - 1, middle)
            starts[2 * node + 1], stops[2 * node + 1] = start, middle
            starts[2 * node + 2], stops[2 * node + 2] = middle, stop
    first_leaf = n_nodes // 2
    points = np.empty(n * d)
    for node in range(first_leaf, n_nodes):
        start, size = starts[node], stops[node] - starts[node]
        for block in range(start, start + size, LEAF_SIZE):
            width = min(LEAF_SIZE, start + size - block)
            for f in range(d):
                for j in range(width):
                    points[block * d + f * width + j] = X[order[block + j], f]
    return points, order, starts, stops, lower, upper, first


@kernel
def _box_distance(q: Floats, lower: Floats, upper: Floats, squared: bool) -> float:
    """From a point to a box, summed in the order in which points are measured."""
    total = 0.0
    for f in range(len(q)):
        gap = max(lower[f] - q[f], q[f] - upper[f], 0.0)
        total += gap * gap if squared else gap
    return total


@kernel
def _own_leaves(Q: Floats, lower: Floats, upper: Floats, squared: bool) -> Ints:
    """The leaf that each query comes to by the nearer box at every split."""
    leaves = np.empty(len(Q), dtype=np.intp)
    for row in range(len(Q)):
        node = 0
        while 2 * node + 2 < len(lower):
            left, right = 2 * node + 1, 2 * node + 2
            to_left = _box_distance(Q[row], lower[left], upper[left], squared)
            to_right = _box_distance(Q[row], lower[right], upper[right], squared)
            node = right if to_right < to_left else left
        leaves[row] = node
    return leaves


@kernel
def _search_tree(
    Q: Floats,
    own: Ints,
    points: Floats,
    order: Ints,
    starts: Ints,
    stops: Ints,
    lower: Floats,
    upper: Floats,
    first: Ints,
    squared: bool,
    distances: Floats,
    indices: Ints,
) -> None:
    d = Q.shape[1]
    n_nodes = len(starts)
    k = distances.shape[1]
    stack = np.empty(64, dtype=np.intp)
    stack_distance = np.empty(64)
    measured = np.empty(LEAF_SIZE)
    for row in range(len(Q)):
        q = Q[row]
        best, best_index = distances[row], indices[row]
        held = 0
        stack[0], stack_distance[0] = 0, 0.0
        depth = 1
        while depth > 0:
            depth -= 1
            node, distance = stack[depth], stack_distance[depth]
            if held == k and (
                distance > best[k - 1]
                or (distance == best[k - 1] and first[node] > best_index[k - 1])
            ):
                continue
            if 2 * node + 2 < n_nodes:
                left, right = 2 * node + 1, 2 * node + 2
                to_left = _box_distance(q, lower[left], upper[left], squared)
                to_right = _box_distance(q, lower[right], upper[right], squared)
                if to_left > to_right:
                    left, right = right, left
                    to_left, to_right = to_right, to_left
                stack[depth], stack_distance[depth] = right, to_right
                stack[depth + 1], stack_distance[depth + 1] = left, to_left
                depth += 2
                continue
            for block in range(starts[node], stops[node], LEAF_SIZE):
                width = min(LEAF_SIZE, stops[node] - block)
                measured[:] = 0.0
                for f in range(d):
                    at = block * d + f * width
                    value = q[f]
                    if squared:
                        for j in range(width):
                            gap = points[at + j] - value
                            measured[j] += gap * gap
                    else:
                        for j in range(width):
                            measured[j] += abs(points[at + j] - value)
                for j in range(width):
                    if held < k or measured[j] <= best[k - 1]:
                        index = order[block + j]
                        if index != own[row]:
                            held = _insert(best, best_index, held, measured[j], index)


# ------------------------------------------------------------------------------ products


class _Products:
    """Brute force for Euclidean distance, by float32 matrix products.

    Points are centred and scaled by a power of two, and carry their squared norm as one
    more feature: the product of (x, |x|^2) with (-2 q, 1) is |x - q|^2 - |q|^2, with an
    error that `_slack` bounds. A point is measured in float64 unless its product is
    larger than the k-th distance by more than that.
    """

    def __init__(self, X: Floats) -> None:
        self.X = X
        self.center = X.mean(axis=0)
        self.largest = float(np.abs(X).max(initial=0.0))
        centered = X - self.center
        norm = float(np.sqrt(np.einsum("ij,ij->i", centered, centered).max(initial=0.0)))
        # A power of two scales without rounding; 0 or infinity would not scale at all.
        usable = np.isfinite(norm) and norm > 1e-150
        self.scale = 2.0 ** -np.frexp(norm)[1] if usable else 1.0
        self.norm = norm * self.scale
        self.points = np.empty((len(X), X.shape[1] + 1), dtype=np.float32)
        self.points[:, :-1] = centered * self.scale
        rounded = self.points[:, :-1].astype(np.float64)
        self.points[:, -1] = np.einsum("ij,ij->i", rounded, rounded)

    def _prepare(self, Q: Floats) -> tuple[Singles, Floats]:
        """Queries ready for the product, and what to add to a squared distance to compare."""
        rounded = ((Q - self.center) * self.scale).astype(np.float32)
        norms = np.einsum("ij,ij->i", rounded, rounded, dtype=np.float64)
        reach = np.sqrt(norms) + self.norm
        largest = np.maximum(np.abs(Q).max(axis=1, initial=0.0), self.largest) * self.scale
        moved = FLOAT32_UNIT * reach + 4 * np.sqrt(Q.shape[1]) * FLOAT64_UNIT * largest
        slack = FLOAT32_UNIT * (Q.shape[1] + 16) * reach**2 + (2 * reach + moved) * moved
        queries = np.empty((len(Q), Q.shape[1] + 1), dtype=np.float32)
        queries[:, :-1] = -2 * rounded
        queries[:, -1] = 1
        return queries, slack - norms

    def search(
        self,
        Q: Floats,
        own: Ints,
        distances: Floats,
        indices: Ints,
        n_jobs: int | None,
    ) -> None:
        def search(start: int, stop: int) -> None:
            rows = slice(start, stop)
            queries, offsets = self._prepare(Q[rows])
            limits = np.full(stop - start, np.inf, dtype=np.float32)
            held = np.zeros(stop - start, dtype=np.intp)
            pending = np.empty((stop - start, PENDING), dtype=np.intp)
            waiting = np.zeros(stop - start, dtype=np.intp)
            products = np.empty((stop - start) * TRAIN_ROWS, dtype=np.float32)
            for first in range(0, len(self.X), TRAIN_ROWS):
                tile = self.points[first : first + TRAIN_ROWS]
                product = products[: len(queries) * len(tile)].reshape(len(queries), len(tile))
                np.matmul(queries, tile.T, out=product)
                _keep_close(
                    product, first, self.X, Q[rows], own[rows], offsets, self.scale,
                    limits, pending, waiting, held, distances[rows], indices[rows],
                )  # fmt: skip
            for row in range(stop - start):
                _measure_pending(
                    row, self.X, Q[rows], own[rows], offsets, self.scale,
                    limits, pending, waiting, held, distances[rows], indices[rows],
                )  # fmt: skip

        # One BLAS thread for each of ours: ranges are independent, products are small.
        with _blas().limit(limits=1, user_api="blas"):
            in_ranges(search, len(Q), n_jobs, range_size=QUERY_ROWS)


_controller: ThreadpoolController | None = None


def _blas() -> ThreadpoolController:
    """The loaded BLAS libraries; looking for them takes milliseconds, so do it once."""
    global _controller
    if _controller is None:
        _controller = ThreadpoolController()
    return _controller


@kernel
def _measure_pending(
    row: int,
    X: Floats,
    Q: Floats,
    own: Ints,
    offsets: Floats,
    scale: float,
    limits: Singles,
    pending: Ints,
    waiting: Ints,
    held: Ints,
    distances: Floats,
    indices: Ints,
) -> None:
    """Measure a row's waiting points in float64, and tighten its limit."""
    d = X.shape[1]
    q = Q[row]
    best, best_index = distances[row], indices[row]
    k = len(best)
    # Four at a time: each sum keeps its order, and the four do not wait for each other.
    for at in range(0, waiting[row], 4):
        last = waiting[row] - 1
        i0 = pending[row, at]
        i1 = pending[row, min(at + 1, last)]
        i2 = pending[row, min(at + 2, last)]
        i3 = pending[row, min(at + 3, last)]
        s0 = s1 = s2 = s3 = 0.0
        for f in range(d):
            value = q[f]
            g0 = X[i0, f] - value
            g1 = X[i1, f] - value
            g2 = X[i2, f] - value
            g3 = X[i3, f] - value
            s0 += g0 * g0
            s1 += g1 * g1
            s2 += g2 * g2
            s3 += g3 * g3
        held[row] = _insert(best, best_index, held[row], s0, i0)
        if at + 1 <= last:
            held[row] = _insert(best, best_index, held[row], s1, i1)
        if at + 2 <= last:
            held[row] = _insert(best, best_index, held[row], s2, i2)
        if at + 3 <= last:
            held[row] = _insert(best, best_index, held[row], s3, i3)
    waiting[row] = 0
    if held[row] == k:
        limits[row] = best[k - 1] * scale * scale + offsets[row]


@kernel
def _keep_close(
    product: Singles,
    first: int,
    X: Floats,
    Q: Floats,
    own: Ints,
    offsets: Floats,
    scale: float,
    limits: Singles,
    pending: Ints,
    waiting: Ints,
    held: Ints,
    distances: Floats,
    indices: Ints,
) -> None:
    """Let the points of a tile wait for measurement that may be among the k nearest."""
    rows, columns = product.shape
    whole = columns - columns % STEP
    for row in range(rows):
        values = product[row]
        limit = limits[row]
        for block in range(0, columns, STEP):
            if block < whole:
                # Of constant length and without a branch, so that it runs as vectors.
                least = values[block]
                for t in range(STEP):
                    value = values[block + t]
                    least = value if value < least else least
                if least > limit:
                    continue
            for j in range(block, min(block + STEP, columns)):
                if values[j] <= limit and first + j != own[row]:
                    pending[row, waiting[row]] = first + j
                    waiting[row] += 1
                    if waiting[row] == pending.shape[1]:
                        _measure_pending(
                            row, X, Q, own, offsets, scale, limits, pending, waiting, held,
                            distances, indices,
                        )  # fmt: skip
                        limit = limits[row]
