"""The one training loop: stacks of networks, batches, devices, prediction and history."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from demur.methods.deep.estimator import DeepClassifier, Strategy
from demur.methods.deep.stack import Dropout, LeNetStack, SideBySide, Stack, State, TableStack

_OutOfMemory = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
CACHED = 2**18  # numbers of one layer's outputs that stay in a core's cache
ROWS_AT_ONCE = 4096  # of a prediction


class Run(NamedTuple):
    """What one network, or pair of networks, learns from."""

    X: NDArray[np.float32]
    candidates: NDArray[np.bool_]
    seed: int
    name: str = ""  # as errors call it


class Result(NamedTuple):
    """What a run learned."""

    state: State
    transduced: NDArray[np.intp]
    history: NDArray[np.float64]
    device: str
    interrupted: bool
    unseen_by: NDArray[np.intp]  # the network of the run that left the row out, or -1


class Batch(NamedTuple):
    """Rows of every network, and what the networks say of them."""

    network: Tensor  # (N, 1)
    rows: Tensor  # (N, B)
    candidates: Tensor  # (N, B, l)
    outputs: Tensor  # (N, B, heads * l)
    log_proba: Tensor  # (N, B, l), of the first head

    def of(self, state: Tensor) -> Tensor:
        """The rows of the batch, of a state (N, n, ...)."""
        return state[self.network, self.rows]

    def write(self, state: Tensor, values: Tensor) -> None:
        """Put values at the rows of the batch."""
        state[self.network, self.rows] = values


class Training:
    """Some runs, trained side by side on one device.

    Attributes
    ----------
    network : Stack
    candidates : Tensor of shape (N, n, l)
    generators : list of torch.Generator
        The random stream of each run, on the CPU.
    device : torch.device
    """

    def __init__(
        self,
        settings: DeepClassifier,
        runs: Sequence[Run],
        device: torch.device,
        stop: threading.Event,
        progress: Any = None,
    ) -> None:
        self.settings, self.device, self.stop, self.progress = settings, device, stop, progress
        self.strategy = settings.strategy()
        self.names = [run.name for run in runs]
        n, self.n_classes = runs[0].candidates.shape
        self.generators = [torch.Generator().manual_seed(run.seed) for run in runs]
        per_run = self.strategy.networks
        streams = [g for g in self.generators for _ in range(per_run)]
        shape, n_outputs = runs[0].X.shape[1:], self.n_classes * self.strategy.heads
        self.drop = _dropout(settings, streams, device)
        self.network = build(settings, streams, shape, n_outputs, self.drop).to(device)
        owner = torch.arange(len(runs), device=device).repeat_interleave(per_run)
        self.index = torch.arange(len(owner), device=device)[:, None]
        self.X, self.source = _features(runs, owner)
        candidates = torch.from_numpy(np.stack([run.candidates for run in runs]))
        self.candidates = candidates.to(device)[owner]
        self.total = torch.zeros(2, len(owner), device=device)  # of the loss, of the criterion
        weights, self.gradients = _flatten(self.network)
        self.optimizer = torch.optim.Adam(
            [weights],
            lr=settings.learning_rate,
            fused=device.type in ("cpu", "cuda"),
            capturable=device.type == "cuda",
        )
        wanted = settings.batch_size or settings.default_batch_size
        self.batch_size = wanted or (1024 if len(shape) == 1 else 64)
        self.unseen_by = [_left_out(self.strategy, g, n) for g in self.generators]
        self.seen = [
            torch.from_numpy(np.flatnonzero(unseen_by != k))
            for unseen_by in self.unseen_by
            for k in range(per_run)
        ]
        size = len(self.seen[0])  # of an epoch, the same for every network
        self.ends = [*range(self.batch_size, size - 1, self.batch_size), size]  # no row alone

    def run(self) -> list[Result]:
        """Train, and tell what each run learned."""
        settings, strategy = self.settings, self.strategy
        step: Callable[[Tensor], None] = self._step
        if self.device.type == "cuda" and strategy.capturable and settings.network is None:
            step = _Replayed(self._step, self)
        if self.progress:
            task = self.progress.add_task(type(settings).__name__, total=settings.n_epochs)
        history: list[NDArray[np.float64]] = []
        patience = _Patience(settings.patience, len(self.generators))
        finished: dict[int, Result] = {}
        strategy.start(self)
        try:
            for epoch in range(settings.n_epochs):
                for rows in self._batches():
                    if self.stop.is_set():
                        raise KeyboardInterrupt
                    step(rows)
                strategy.after_epoch(epoch)
                losses = self._mean_loss(epoch)
                history.append(losses[0])
                if self.progress:
                    self.progress.update(task, advance=1)
                for run in patience.over(losses[1]):
                    finished[run] = self._result(run, history)
                if len(finished) == len(self.generators):
                    break
        except KeyboardInterrupt:
            self.stop.set()
        runs = range(len(self.generators))
        return [finished[run] if run in finished else self._result(run, history) for run in runs]

    def predict(self) -> Tensor:
        """Probabilities of the training instances, (N, n, l)."""
        return self._over_rows(lambda x: _proba(self.network(x), self.n_classes))

    def features(self) -> Tensor:
        """What the last layer sees of the training instances, (N, n, width)."""
        return self._over_rows(self.network.features)

    def _batches(self) -> Iterator[Tensor]:
        """A permutation of the rows for each network, cut into batches."""
        streams = [g for g in self.generators for _ in range(self.strategy.networks)]
        orders = [
            seen[torch.randperm(len(seen), generator=g)]
            for seen, g in zip(self.seen, streams, strict=True)
        ]
        order = torch.stack(orders).to(self.device)
        start = 0
        for end in self.ends:
            yield order[:, start:end].contiguous()
            start = end

    def _step(self, rows: Tensor) -> None:
        outputs = self.network(self.X[self.source, rows])
        # Stacks give outputs that lie class by class, where a softmax is ten times quicker.
        log_proba = outputs.mT[:, : self.n_classes].log_softmax(1).mT
        candidates = self.candidates[self.index, rows]
        batch = Batch(self.index, rows, candidates, outputs, log_proba)
        loss = self.strategy.loss(batch)
        self.gradients.zero_()
        torch.autograd.backward(loss.sum())
        self.optimizer.step()
        with torch.no_grad():
            self.strategy.after_batch(batch)
            self.total[0] += loss * rows.shape[1]
            if self.settings.patience is not None:
                held = log_proba.masked_fill(~candidates, -math.inf).logsumexp(-1)
                self.total[1] -= held.sum(-1)

    def _mean_loss(self, epoch: int) -> NDArray[np.float64]:
        """Mean loss and criterion of each run in the epoch, (2, runs)."""
        losses = self.total.double() if self.device.type != "mps" else self.total
        losses = losses.cpu() / self.ends[-1]
        self.total.zero_()
        means: NDArray[np.float64] = losses.view(2, len(self.generators), -1).mean(-1).numpy()
        bad = np.flatnonzero(~np.isfinite(means[0]))
        if len(bad):
            raise ValueError(
                f"the loss{self.names[bad[0]]} is {means[0, bad[0]]} in epoch {epoch + 1}; "
                "training has diverged. Scale the features, or use a smaller learning_rate."
            )
        return means

    def _result(self, run: int, history: Sequence[NDArray[np.float64]]) -> Result:
        per_run = self.strategy.networks
        first, last = run * per_run, (run + 1) * per_run
        with torch.no_grad():
            scores = self.strategy.label_scores(self)[first:last].float().mean(0)
        best = scores.masked_fill(~self.candidates[first], -math.inf).argmax(-1)
        state = self.network.state(first, last)
        if not all(np.isfinite(array).all() for array in state.values()):
            # Normalised by an infinite variance, even a finite loss says nothing.
            raise ValueError(
                f"the network{self.names[run]} holds numbers that are not finite after epoch "
                f"{len(history)}; training has diverged. Scale the features."
            )
        return Result(
            state,
            best.cpu().numpy().astype(np.intp),
            np.array([losses[run] for losses in history]),
            str(self.device),
            self.stop.is_set(),
            self.unseen_by[run],
        )

    def _over_rows(self, ask: Callable[[Tensor], Tensor]) -> Tensor:
        self.network.eval()
        rows = torch.arange(self.candidates.shape[1], device=self.device)
        with torch.no_grad():
            parts = [ask(self.X[self.source, part]) for part in torch.split(rows, ROWS_AT_ONCE)]
        self.network.train()
        return torch.cat(parts, 1)


class _Patience:
    """Says which runs have waited for long enough."""

    def __init__(self, patience: int | None, runs: int) -> None:
        self.patience = patience
        self.best, self.waited = np.full(runs, np.inf), np.zeros(runs, dtype=int)

    def over(self, criterion: NDArray[np.float64]) -> list[int]:
        """Runs whose wait ends with this epoch."""
        if self.patience is None:
            return []
        better = criterion < self.best - 1e-4
        self.best = np.minimum(self.best, criterion)
        self.waited = np.where(better, 0, self.waited + 1)
        return np.flatnonzero(self.waited == self.patience).tolist()


class _Replayed:
    """A step that is recorded as CUDA graphs and replayed: one for each phase and batch size."""

    def __init__(self, step: Callable[[Tensor], None], training: Training) -> None:
        self.step, self.training = step, training
        self.graphs: dict[Any, tuple[Any, Tensor]] = {}
        self.warm_up: dict[Any, int] = {}
        self.make_stream: Callable[[], Any] = torch.cuda.Stream
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, rows: Tensor) -> None:
        key = self.training.strategy.phase, rows.shape
        if key in self.graphs:
            graph, kept = self.graphs[key]
            kept.copy_(rows)
            graph.replay()
        elif self.warm_up.setdefault(key, 3) > 0:
            self.warm_up[key] -= 1
            side: Any = self.make_stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.step(rows)
            torch.cuda.current_stream().wait_stream(side)
        else:
            self.graphs[key] = self._record(rows)
            self.graphs[key][0].replay()

    def _record(self, rows: Tensor) -> tuple[Any, Tensor]:
        graph: Any = torch.cuda.CUDAGraph()
        drop = self.training.drop
        for stream in (*self.training.strategy.streams, *(drop.streams if drop else ())):
            graph.register_generator_state(stream)  # so that each replay draws anew
        kept = rows.clone()
        with torch.cuda.graph(graph, pool=self.pool):
            self.step(kept)
        return graph, kept


# ------------------------------------------------------------------------ many runs at once


def train(settings: DeepClassifier, runs: Sequence[Run]) -> list[Result]:
    """Train all runs, in pieces that suit the device."""
    device = torch.device(resolve_device(settings.device))
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    size = _piece(settings, runs, threads) if device.type == "cpu" else len(runs)
    pieces = [runs[i : i + size] for i in range(0, len(runs), size)]
    stop = threading.Event()
    with _progress(settings.verbose) as progress:

        def work(piece: Sequence[Run]) -> list[Result]:
            return _train_or_split(settings, piece, device, stop, progress)

        if len(pieces) == 1 or threads == 1:
            parts = [work(piece) for piece in pieces]
        else:
            parts = _in_threads(work, pieces, threads, stop)
    return [result for part in parts for result in part]


def _piece(settings: DeepClassifier, runs: Sequence[Run], threads: int) -> int:
    """How many runs to train side by side on a CPU: more than fit its cache are slower."""
    X = runs[0].X
    rows = min(len(X), settings.batch_size or settings.default_batch_size or 1024)
    width = max([math.prod(X.shape[1:]), *settings.hidden_layer_sizes])
    return min(max(CACHED // (rows * width), 1), -(-len(runs) // threads))


def _train_or_split(
    settings: DeepClassifier,
    runs: Sequence[Run],
    device: torch.device,
    stop: threading.Event,
    progress: Any,
) -> list[Result]:
    try:
        return Training(settings, runs, device, stop, progress).run()
    except _OutOfMemory:
        if len(runs) == 1:
            raise
    # Outside of the handler, so that nothing holds the memory of the failed attempt.
    if device.type == "cuda":
        torch.cuda.empty_cache()
    half = len(runs) // 2
    return [
        result
        for part in (runs[:half], runs[half:])
        for result in _train_or_split(settings, part, device, stop, progress)
    ]


def _in_threads(
    work: Callable[[Sequence[Run]], list[Result]],
    pieces: Sequence[Sequence[Run]],
    threads: int,
    stop: threading.Event,
) -> list[list[Result]]:
    """One piece a thread; torch's own threads would get in each other's way."""
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            futures = [pool.submit(work, piece) for piece in pieces]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                if any(future.exception() for future in done):
                    stop.set()
            except KeyboardInterrupt:
                stop.set()
            return [future.result() for future in futures]
    finally:
        torch.set_num_threads(threads)


# ---------------------------------------------------------------------------------- pieces


def resolve_device(name: str) -> str:
    """The device that is meant, as torch names it."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError, TypeError, ImportError) as error:
        raise ValueError(f"device {name!r} cannot be used: {error}") from error
    return str(device)


def build(
    settings: DeepClassifier,
    generators: Sequence[torch.Generator],
    shape: tuple[int, ...],
    n_outputs: int,
    drop: Dropout | None = None,
) -> Stack:
    """Untrained networks for rows of a shape."""
    if settings.network is not None:
        return SideBySide(generators, settings.network, shape, n_outputs)
    if len(shape) == 1:
        return TableStack(generators, shape[0], n_outputs, settings.hidden_layer_sizes, drop)
    if shape == (1, 28, 28):
        return LeNetStack(generators, n_outputs, drop)
    raise ValueError(
        f"the network for images takes 28 x 28 with one channel, not {shape}; pass network=, a "
        "function that makes one for your images."
    )


def _left_out(strategy: Strategy, generator: torch.Generator, n: int) -> NDArray[np.intp]:
    """The network that leaves a row out, or -1; each leaves out as many, and no two the same."""
    unseen_by = np.full(n, -1)
    if strategy.networks > 1 and strategy.leave_out:
        each = min(int(strategy.leave_out * n), n // strategy.networks)
        rows = torch.randperm(n, generator=generator)[: each * strategy.networks]
        unseen_by[rows.numpy()] = np.repeat(np.arange(strategy.networks), each)
    return unseen_by


def _dropout(
    settings: DeepClassifier, generators: Sequence[torch.Generator], device: torch.device
) -> Dropout | None:
    """Streams of their own, so that what else a run draws is the same with and without it."""
    if not settings.dropout or settings.network is not None:
        return None
    seeds = [int(torch.randint(2**62, (1,), generator=g)) for g in generators]
    return Dropout(settings.dropout, [torch.Generator(device).manual_seed(s) for s in seeds])


def rebuild(model: DeepClassifier) -> Stack:
    """The networks of a fitted model."""
    strategy = model.strategy()
    generators = [torch.Generator()] * strategy.networks
    n_outputs = len(model.classes_) * strategy.heads
    network = build(model, generators, model._input_shape(), n_outputs)
    network.load(model.state_)
    network.eval()
    return network


def judge(model: DeepClassifier, X: NDArray[np.float32]) -> NDArray[np.float64]:
    """Probabilities by each network of a fitted model, (networks, n, l)."""
    lost = model.device_.startswith("cuda") and not torch.cuda.is_available()
    device = torch.device("cpu" if lost else model.device_)
    # In double precision an instance's result does not depend on its company.
    exact = device.type == "cpu" and model.network is None
    dtype = torch.float64 if exact else torch.float32
    network = rebuild(model).to(device, dtype)
    per_run, n_classes = model.strategy().networks, len(model.classes_)
    parts = []
    with torch.no_grad():
        for rows in torch.split(torch.from_numpy(X), ROWS_AT_ONCE):
            x = rows.to(device, dtype).expand(per_run, *rows.shape)
            parts.append(_proba(network(x).cpu().double(), n_classes))
    proba: NDArray[np.float64] = torch.cat(parts, 1).numpy()
    return proba


def _proba(outputs: Tensor, n_classes: int) -> Tensor:
    return outputs[..., :n_classes].softmax(-1)


def _features(runs: Sequence[Run], owner: Tensor) -> tuple[Tensor, Tensor]:
    """Features on the device, and which of them each network learns from, (N, 1)."""
    shared = all(np.array_equal(run.X, runs[0].X) for run in runs[1:])
    X = torch.from_numpy(np.stack([run.X for run in (runs[:1] if shared else runs)]))
    source = torch.zeros_like(owner) if shared else owner
    return X.to(owner.device), source[:, None]


def _flatten(network: nn.Module) -> tuple[nn.Parameter, Tensor]:
    """Lay all weights in one buffer and all gradients in one: single calls update them."""
    parameters = list(network.parameters())
    parts = [p.detach().reshape(-1) for p in parameters]
    # Vector loops round their last, odd elements differently: fill up, so that none is odd.
    parts.append(parts[0].new_zeros(-sum(map(len, parts)) % 64))
    flat = nn.Parameter(torch.cat(parts))
    flat.grad = gradients = torch.zeros_like(flat)
    start = 0
    for p in parameters:
        end = start + p.numel()
        p.data = flat.data[start:end].view_as(p)
        p.grad = gradients[start:end].view_as(p)
        start = end
    return flat, gradients


def _progress(verbose: bool) -> AbstractContextManager[Any]:
    if not verbose:
        return nullcontext()
    try:
        from rich.progress import Progress
    except ModuleNotFoundError as error:
        raise ImportError(
            'verbose=True shows progress with rich; install it with: pip install "demur[cli]"'
        ) from error
    shown: AbstractContextManager[Any] = Progress()
    return shown
