"""The one training loop: stacks of runs, batches, stopping, and what goes wrong."""

import os
import re
import signal
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from demur.methods.deep import Cc, CroSel, DeepClassifier, Pop, Proden, Strategy, Valen, fit_stack

torch = pytest.importorskip("torch")

from demur.methods.deep import training  # noqa: E402

# Every method goes through all of its phases within 14 epochs.
PHASES = {
    Proden: {},
    Cc: {},
    Pop: {"warm_up_epochs": 4, "purify_every": 2, "first_threshold": 0.05, "threshold_step": 0.05},
    CroSel: {"warm_up_epochs": 4, "confidence": 0.6},
    Valen: {"warm_up_epochs": 3, "batch_size": 16, "bound_weight": 0.1},
}
METHODS = list(PHASES)
SMALL = {
    "hidden_layer_sizes": (16, 8),
    "batch_size": 16,
    "n_epochs": 14,
    "learning_rate": 0.01,
    "device": "cpu",
}
CLOSE = {"rtol": 0, "atol": 2e-3}


def make(method, seed, **changes):
    return method(**{**SMALL, **PHASES.get(method, {}), "random_state": seed, **changes})


def problem(seed, n=50, n_classes=4):
    """Clouds with two to three candidates an instance."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, 5)) + 2.5 * np.eye(n_classes, 5)[y]
    S = rng.random((n, n_classes)) < 0.4
    S[np.arange(n), y] = True
    return X, S


def watched(method, *, at_start=None, before_loss=None, before_epoch_end=None):
    """The method, whose strategy tells what it does: hooks get it, and what it is given."""

    class Watched(method):
        def strategy(self):
            strategy = super().strategy()
            start, loss, after_epoch = strategy.start, strategy.loss, strategy.after_epoch

            def started(training):
                start(training)
                if at_start:
                    at_start(strategy, training)

            def lost(batch):
                factor = before_loss(strategy, batch) if before_loss else None
                return loss(batch) if factor is None else loss(batch) * factor

            def ended(epoch):
                if before_epoch_end:
                    before_epoch_end(strategy, epoch)
                after_epoch(epoch)

            strategy.start, strategy.loss, strategy.after_epoch = started, lost, ended
            return strategy

    return Watched


def assert_same_models(models, others, problems, **tolerance):
    for model, other, (X, S) in zip(models, others, problems, strict=True):
        proba = model.predict_proba(X)
        np.testing.assert_allclose(proba, other.predict_proba(X), **tolerance)
        np.testing.assert_allclose(model.history_, other.history_, **tolerance)
        np.testing.assert_array_equal(model.transduction_, other.transduction_)
        assert S[np.arange(len(X)), model.transduction_].all()


@pytest.fixture
def single_pieces(monkeypatch):
    """A CPU whose cache holds one run at a time."""
    monkeypatch.setattr(training, "CACHED", 1)


# -------------------------------------------------------------------- a stack and its runs


@pytest.mark.parametrize("method", METHODS)
def test_a_run_in_a_stack_is_the_run_alone(method):
    problems = [problem(seed) for seed in range(3)]
    Xs, Ss = zip(*problems, strict=True)
    alone = [make(method, i).fit(X, S) for i, (X, S) in enumerate(problems)]
    stacked = fit_stack([make(method, i) for i in range(3)], Xs, Ss)
    assert_same_models(stacked, alone, problems, **CLOSE)
    assert np.abs(alone[0].history_ - alone[1].history_).max() > 0.01


@pytest.mark.parametrize("method", METHODS)
def test_runs_on_the_same_features_share_them(method):
    X, S = problem(0)
    sets = [S, problem(1)[1] | S, S]
    models = fit_stack([make(method, seed) for seed in (0, 0, 5)], [X] * 3, sets)
    alone = [make(method, seed).fit(X, s) for seed, s in zip((0, 0, 5), sets, strict=True)]
    assert_same_models(models, alone, [(X, s) for s in sets], **CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_images_in_a_stack(method, rng):
    problems = [(rng.random((20, 28, 28)), rng.random((20, 3)) < 0.6) for _ in range(2)]
    for _, S in problems:
        S[:, 0] |= ~S.any(axis=1)
    changes = {"n_epochs": 5, "warm_up_epochs": 2} if PHASES[method] else {"n_epochs": 5}
    models = [make(method, seed, learning_rate=0.001, **changes) for seed in range(4)]
    alone = [m.fit(*p) for m, p in zip(models[:2], problems, strict=True)]
    stacked = fit_stack(models[2:], *zip(*problems, strict=True))
    for model, seed in zip(stacked, (2, 3), strict=True):
        assert model.random_state == seed
    stacked = fit_stack([make(method, s, learning_rate=0.001, **changes) for s in range(2)],
                        *zip(*problems, strict=True))  # fmt: skip
    assert_same_models(stacked, alone, problems, **CLOSE)


@pytest.mark.parametrize("threads", [1, 2])
def test_pieces_and_threads_change_nothing(threads, single_pieces):
    problems = [problem(seed) for seed in range(3)]
    alone = [make(Proden, i).fit(X, S) for i, (X, S) in enumerate(problems)]
    sizes = []
    watching = watched(Proden, at_start=lambda strategy, t: sizes.append(len(t.candidates)))
    torch.set_num_threads(threads)
    stacked = fit_stack([make(watching, i, **PHASES[Proden]) for i in range(3)],
                        *zip(*problems, strict=True))  # fmt: skip
    assert torch.get_num_threads() == threads
    assert sizes == [1, 1, 1]
    torch.set_num_threads(1)
    assert_same_models(stacked, alone, problems, **CLOSE)


def test_the_same_seed_gives_the_same_bits():
    X, S = problem(0)
    first, again, other = (make(Valen, seed).fit(X, S) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert not np.allclose(first.predict_proba(X), other.predict_proba(X), atol=1e-3)
    torch.manual_seed(99)  # torch's global stream has no say
    before = torch.random.get_rng_state()
    third = make(Valen, 1).fit(X, S)
    np.testing.assert_array_equal(first.predict_proba(X), third.predict_proba(X))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("method", METHODS)
def test_a_gpu_gives_what_the_cpu_gives(method):
    problems = [problem(seed) for seed in range(3)]
    Xs, Ss = zip(*problems, strict=True)
    stacked = fit_stack([make(method, i, device="cuda") for i in range(3)], Xs, Ss)
    assert {model.device_ for model in stacked} <= {"cuda", "cuda:0"}
    alone = [make(method, i, device="cuda").fit(X, S) for i, (X, S) in enumerate(problems)]
    assert_same_models(stacked, alone, problems, rtol=0, atol=1e-2)
    if method is not Valen:  # whose draws differ between devices
        on_cpu = fit_stack([make(method, i) for i in range(3)], Xs, Ss)
        assert_same_models(stacked, on_cpu, problems, rtol=0, atol=1e-2)


# ---------------------------------------------------------------------------------- batches


@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (2, [2]),
        (15, [15]),
        (16, [16]),
        (17, [17]),
        (18, [16, 2]),
        (33, [16, 17]),
        (50, [16] * 3 + [2]),
    ],
)
@pytest.mark.parametrize("method", [Cc, CroSel])
def test_batches_are_the_rows_in_another_order_and_never_one_alone(method, n, sizes):
    seen = []
    watching = watched(method, before_loss=lambda s, batch: seen.append(batch.rows.clone()))
    X, S = problem(0, n=n)
    model = make(watching, 0, n_epochs=3, **PHASES[method]).fit(X, S)
    assert np.isfinite(model.history_).all()
    assert [rows.shape[1] for rows in seen] == sizes * 3
    epochs = torch.cat(seen, dim=1).view(len(seen[0]), 3, n)
    assert torch.equal(epochs.sort(dim=2).values, torch.arange(n).expand_as(epochs))
    if n > 10:
        orders = {tuple(order.tolist()) for network in epochs for order in network}
        assert len(orders) == 3 * len(seen[0])


@pytest.mark.parametrize("n", [2, 3, 17])
@pytest.mark.parametrize("method", METHODS)
def test_few_rows_are_enough(method, n):
    X, S = problem(0, n=n)
    model = make(method, 0).fit(X, S)
    assert np.isfinite(model.history_).all()
    assert np.isfinite(model.predict_proba(X)).all()
    assert S[np.arange(n), model.transduction_].all()
    proba = make(method, 0, batch_size=2).fit(X, S).predict_proba(X)
    assert np.isfinite(proba).all()


def test_rows_are_predicted_in_portions(monkeypatch):
    X, S = problem(0)
    model = make(CroSel, 0).fit(X, S)
    proba = model.predict_proba(X)
    monkeypatch.setattr(training, "ROWS_AT_ONCE", 7)
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-12)
    again = make(CroSel, 0).fit(X, S)
    np.testing.assert_array_equal(again.transduction_, model.transduction_)


# --------------------------------------------------------------------------------- patience


@pytest.mark.parametrize("patience", [1, 3])
@pytest.mark.parametrize("method", [Proden, CroSel])
def test_who_does_not_improve_is_stopped(method, patience):
    X, S = problem(0, n=16)  # one batch, so that the criterion stands still exactly
    model = make(method, 0, learning_rate=0, patience=patience).fit(X, S)
    assert len(model.history_) == 1 + patience
    assert len(make(method, 0, learning_rate=0).fit(X, S).history_) == 14


def test_who_improves_is_not_stopped():
    X, S = problem(0)
    patient = make(Cc, 0, learning_rate=0.002, patience=3).fit(X, S)
    assert len(patient.history_) == 14
    eager = make(Cc, 0, learning_rate=0.002).fit(X, S)
    np.testing.assert_array_equal(patient.predict_proba(X), eager.predict_proba(X))


def test_the_runs_of_a_stack_stop_each_at_its_own_time():
    """Also where a run would improve again after its end: what it was by then is what counts."""
    problems = [problem(seed) for seed in range(4)]
    settings = {"patience": 1, "n_epochs": 30, "learning_rate": 0.05}
    alone = [make(Proden, i, **settings).fit(X, S) for i, (X, S) in enumerate(problems)]
    lengths = [len(model.history_) for model in alone]
    assert len(set(lengths)) > 1, "the case needs runs that stop at different times"
    stacked = fit_stack([make(Proden, i, **settings) for i in range(4)],
                        *zip(*problems, strict=True))  # fmt: skip
    assert [len(model.history_) for model in stacked] == lengths
    assert_same_models(stacked, alone, problems, **CLOSE)


# --------------------------------------------------------------------------------- progress


def test_progress_is_shown_when_asked(capsys):
    X, S = problem(0)
    make(Cc, 0, verbose=True).fit(X, S)
    shown = capsys.readouterr().out
    assert "Cc" in shown
    assert "100%" in shown
    make(Cc, 0).fit(X, S)
    assert capsys.readouterr().out == ""


def test_progress_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    X, S = problem(0)
    model = make(Cc, 0, verbose=True)
    with pytest.raises(ImportError, match=r'pip install "demur\[cli\]"'):
        model.fit(X, S)
    with pytest.raises(NotFittedError):
        model.predict(X)
    make(Cc, 0).fit(X, S)  # needs no rich


# ----------------------------------------------------------------------------- interruption


def interrupted_in(method, epoch, run=None):
    """The method, interrupted as by Ctrl-C at the first batch of an epoch, of one piece."""
    pieces = []

    def start(strategy, _):
        pieces.append(strategy)
        strategy.ended = 0

    def loss(strategy, _):
        if strategy.ended == epoch and run in (None, pieces.index(strategy)):
            raise KeyboardInterrupt

    def end(strategy, _):
        strategy.ended += 1

    return watched(method, at_start=start, before_loss=loss, before_epoch_end=end)


def interrupted_after(method, epoch):
    """The method, interrupted between two batches, once it has seen an epoch to its end."""
    trainings = []

    def end(_, ended):
        if ended == epoch:
            trainings[0].stop.set()

    return watched(
        method, at_start=lambda _, training: trainings.append(training), before_epoch_end=end
    )


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_within_a_step_takes_no_half_step(method):
    X, S = problem(0)
    model = make(interrupted_in(method, 6), 0, **PHASES[method])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, S)
    expected = make(method, 0, n_epochs=6).fit(X, S)
    np.testing.assert_array_equal(model.history_, expected.history_)
    for name, value in expected.state_.items():  # a normalisation's statistics saw the batch
        if not name.startswith(("mean", "variance")):
            np.testing.assert_array_equal(model.state_[name], value)
    assert S[np.arange(len(X)), model.transduction_].all()
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_leaves_the_model_as_trained_so_far(method):
    X, S = problem(0)
    model = make(interrupted_after(method, 5), 0, **PHASES[method])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, S)
    expected = make(method, 0, n_epochs=6).fit(X, S)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(model.history_, expected.history_)
    np.testing.assert_array_equal(model.transduction_, expected.transduction_)
    again = method(**{**SMALL, **PHASES[method]}).from_arrays(model.to_arrays())
    np.testing.assert_array_equal(again.predict_proba(X), expected.predict_proba(X))


def test_an_interrupt_before_the_first_epoch_ends():
    X, S = problem(0)
    model = make(interrupted_in(Proden, 0), 0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, S)
    assert model.history_.shape == (0,)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert S[np.arange(len(X)), model.transduction_].all()


def test_an_interrupted_stack_keeps_what_all_of_its_pieces_learned(single_pieces):
    problems = [problem(seed) for seed in range(3)]
    method = interrupted_in(Proden, 5, run=1)
    models = [make(method, i) for i in range(3)]
    with pytest.raises(KeyboardInterrupt):
        fit_stack(models, *zip(*problems, strict=True))
    assert [len(model.history_) for model in models] == [14, 5, 0]
    complete = make(Proden, 0).fit(*problems[0])
    assert_same_models(models[:1], [complete], problems[:1], atol=0)
    for model, (X, S) in zip(models, problems, strict=True):
        assert np.isfinite(model.predict_proba(X)).all()
        assert S[np.arange(len(X)), model.transduction_].all()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_ctrl_c_reaches_a_stack_in_threads(single_pieces):
    problems = [problem(seed) for seed in range(2)]
    main, started = threading.main_thread().ident, threading.Barrier(2, timeout=60)

    def end(strategy, epoch):
        if epoch == 1 and started.wait() == 0:  # both pieces are at work
            signal.pthread_kill(main, signal.SIGINT)

    models = [make(watched(Proden, before_epoch_end=end), 0, n_epochs=20_000) for _ in range(1)]
    models.append(type(models[0])(**{**models[0].get_params(), "random_state": 1}))
    torch.set_num_threads(2)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fit_stack(models, *zip(*problems, strict=True))
    assert time.monotonic() - begun < 15
    assert torch.get_num_threads() == 2
    for model, (X, _) in zip(models, problems, strict=True):
        assert 1 <= len(model.history_) < 20_000
        assert np.isfinite(model.predict_proba(X)).all()


# -------------------------------------------------------------------------- what goes wrong


def spoiled_in(method, epoch, value, run=None):
    """The method, whose loss is a value from an epoch on, of one run of those that start."""
    total = [0]

    def start(strategy, training):
        strategy.runs = torch.arange(len(training.candidates)) // strategy.networks + total[0]
        total[0] += len(training.candidates) // strategy.networks
        strategy.ended = 0

    def loss(strategy, _):
        if strategy.ended < epoch:
            return None
        struck = torch.ones(len(strategy.runs), dtype=torch.bool)
        return torch.where(struck if run is None else strategy.runs == run, value, 1.0)

    def end(strategy, _):
        strategy.ended += 1

    return watched(method, at_start=start, before_loss=loss, before_epoch_end=end)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("method", METHODS)
def test_a_loss_that_is_no_number_stops_the_training(method, value):
    X, S = problem(0)
    model = make(method, 0).fit(X, S)
    bad = make(spoiled_in(method, 5, value), 0, **PHASES[method])
    bad.__dict__.update(vars(model))  # a second fit must not pass off the first one's model
    with pytest.raises(ValueError, match=r"the loss is (nan|inf) in epoch 6; .*learning_rate"):
        bad.fit(X, S)
    for act in (bad.to_arrays, lambda: bad.predict(X), lambda: check_is_fitted(bad)):
        with pytest.raises(NotFittedError):
            act()
    with pytest.raises(NotFittedError):
        _ = bad.transduction_


@pytest.mark.parametrize("pieces", ["one", "each"])
def test_the_run_that_diverged_is_named(pieces, monkeypatch):
    if pieces == "each":
        monkeypatch.setattr(training, "CACHED", 1)
    problems = [problem(seed) for seed in range(4)]
    models = [make(spoiled_in(Proden, 2, np.nan, run=2), 0)]
    models += [type(models[0])(**{**models[0].get_params(), "random_state": i}) for i in (1, 2, 3)]
    with pytest.raises(ValueError, match="run 2 .*epoch 3"):
        fit_stack(models, *zip(*problems, strict=True))
    for model in models:
        with pytest.raises(NotFittedError):
            check_is_fitted(model)


def test_a_failure_in_one_thread_ends_the_others(single_pieces):
    problems = [problem(seed) for seed in range(2)]
    method = spoiled_in(Proden, 2, np.nan, run=0)
    models = [make(method, i, n_epochs=20_000) for i in range(2)]
    torch.set_num_threads(2)
    begun = time.monotonic()
    with pytest.raises(ValueError, match="epoch 3"):
        fit_stack(models, *zip(*problems, strict=True))
    assert time.monotonic() - begun < 15
    assert torch.get_num_threads() == 2


def test_features_that_overflow_the_network_are_blamed():
    X, S = problem(0)
    model = make(Cc, 0)
    with pytest.raises(ValueError, match=r"the loss is .* in epoch \d+; .*Scale the features"):
        model.fit(X * 1e37, S)  # each is a number of 32 bits, their products are not
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("method", METHODS)
def test_variances_that_overflow_leave_no_model(method):
    """The loss stays finite, since all outputs are normalised to nought: the model is not."""
    X, S = problem(0)
    model = make(method, 0)
    with pytest.raises(ValueError, match=r"not finite after epoch 14; .*Scale the features"):
        model.fit(X * 1e25, S)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_steps_that_are_too_long_are_blamed():
    X, S = problem(0)
    with pytest.raises(ValueError, match=r"epoch \d+; .* smaller learning_rate"):
        make(Cc, 0, learning_rate=1e30).fit(X, S)


def out_of_memory_above(method, n_networks, attempts, at_batch=0):
    def start(strategy, training):
        strategy.n_networks, strategy.batches = len(training.candidates), 0
        attempts.append(strategy.n_networks)

    def loss(strategy, _):
        strategy.batches += 1
        if strategy.n_networks > n_networks and strategy.batches > at_batch:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    return watched(method, at_start=start, before_loss=loss)


@pytest.mark.parametrize("at_batch", [0, 25])
@pytest.mark.parametrize("method", METHODS)
def test_a_stack_that_does_not_fit_is_split(method, at_batch):
    problems = [problem(seed) for seed in range(5)]
    Xs, Ss = zip(*problems, strict=True)
    per_run, attempts = 2 if method is CroSel else 1, []
    scarce = out_of_memory_above(method, 2 * per_run, attempts, at_batch)
    models = fit_stack([make(scarce, i, **PHASES[method]) for i in range(5)], Xs, Ss)
    assert attempts == [k * per_run for k in (5, 2, 3, 1, 2)]
    expected = [make(method, i).fit(X, S) for i, (X, S) in enumerate(problems)]
    assert_same_models(models, expected, problems, **CLOSE)


def test_a_single_run_that_does_not_fit_says_so():
    X, S = problem(0)
    attempts = []
    model = make(out_of_memory_above(Cc, 0, attempts), 0)
    with pytest.raises(torch.OutOfMemoryError):
        model.fit(X, S)
    assert attempts == [1]
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("device", ["no such device", "cuda:99", "meta", "hpu", "", None, 1.5])
def test_devices_that_cannot_be_used_are_refused(device):
    X, S = problem(0)
    model = make(Cc, 0, device=device)
    with pytest.raises(ValueError, match=re.escape(f"device {device!r} cannot be used")):
        model.fit(X, S)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_the_device_is_resolved_once(monkeypatch):
    X, S = problem(0)
    model = make(Cc, 0, device="auto").fit(X, S)
    assert model.device == "auto"
    assert model.device_ == ("cuda" if torch.cuda.is_available() else "cpu")
    monkeypatch.setattr(training, "resolve_device", lambda name: pytest.fail("asked again"))
    model.predict(X)


def test_a_model_from_a_gpu_predicts_without_one():
    X, S = problem(0)
    model = make(Cc, 0).fit(X, S)
    proba = model.predict_proba(X)
    model.device_ = "cuda:0"
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_which_nothing_can_be_learned(method):
    """All labels candidates of all; one class never a candidate; constant features."""
    S = np.ones((20, 4), bool)
    S[:, 3] = False
    model = make(method, 0).fit(np.ones((20, 5)), S)
    assert np.isfinite(model.history_).all()
    proba = model.predict_proba(np.ones((1, 5)))
    np.testing.assert_allclose(proba.sum(), 1)
    assert (model.transduction_ != 3).all()


# ------------------------------------------------------------------------- methods of users


class _CountingStrategy(Strategy):
    def __init__(self, calls):
        self.calls = calls

    def start(self, training):
        self.calls.append("start")
        assert training.candidates.dtype == torch.bool
        assert [g.initial_seed() for g in training.generators]
        self.state = torch.zeros(training.candidates.shape[:2])

    def loss(self, batch):
        self.calls.append("loss")
        torch.testing.assert_close(batch.log_proba.exp().sum(-1), torch.ones(batch.rows.shape))
        return -batch.log_proba.mean((1, 2))

    def after_batch(self, batch):
        self.calls.append("after_batch")
        batch.write(self.state, batch.of(self.state) + 1)

    def after_epoch(self, epoch):
        self.calls.append(epoch)
        assert (self.state == epoch + 1).all()  # each row once an epoch

    def label_scores(self, training):
        self.calls.append("label_scores")
        assert training.predict().shape == training.candidates.shape
        assert training.features().shape[:2] == training.candidates.shape[:2]
        return -torch.arange(training.candidates.shape[-1]).expand(training.candidates.shape)


def test_the_hooks_of_a_strategy_are_called_in_order():
    calls = []

    class Counting(DeepClassifier):
        def strategy(self):
            return _CountingStrategy(calls)

    X, S = problem(0, n=40)
    model = make(Counting, 0, n_epochs=2).fit(X, S)
    batch = ["loss", "after_batch"]
    assert calls == ["start", *batch * 3, 0, *batch * 3, 1, "label_scores"]
    np.testing.assert_array_equal(model.transduction_, S.argmax(axis=1))  # the first candidate


def test_a_strategy_without_a_loss_is_an_error():
    class Empty(DeepClassifier):
        def strategy(self):
            return Strategy()

    with pytest.raises(NotImplementedError):
        make(Empty, 0).fit(*problem(0))


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda shape, n_outputs: torch.nn.Linear(5, n_outputs + 1), "output"),
        (lambda shape, n_outputs: torch.nn.Linear(5, n_outputs - 1), "output"),
        (lambda shape, n_outputs: torch.nn.Identity(), "parameters"),
        (lambda shape, n_outputs: None, "torch module"),
    ],
    ids=["too wide", "too narrow", "nothing to train", "no module"],
)
def test_networks_that_do_not_suit_are_refused(factory, message):
    X, S = problem(0)
    model = make(Cc, 0, network=factory)
    with pytest.raises(ValueError, match=f"network.*{message}"):
        model.fit(X, S)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_the_factory_is_told_the_shape_and_the_outputs(rng):
    told = []

    def factory(shape, n_outputs):
        told.append((shape, n_outputs))
        return torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), n_outputs)
        )

    make(Valen, 0, network=factory, n_epochs=1).fit(*problem(0))
    assert told[0] == ((5,), 8)  # a head that predicts and one that infers
    told.clear()
    images = rng.random((6, 3, 8, 9))
    model = make(CroSel, 0, network=factory, n_epochs=1).fit(images, [0, 1, 2, 0, 1, 2])
    assert told == [((3, 8, 9), 3)] * 2
    assert model.image_shape_ == (3, 8, 9)
    assert model.predict_proba(images).shape == (6, 3)


def test_processes_may_fit_at_the_same_time():
    """A stack in threads inside of joblib's workers does not hang."""
    joblib = pytest.importorskip("joblib")
    X, S = problem(0)
    fit = joblib.delayed(_fitted_proba)
    first, second = joblib.Parallel(n_jobs=2, backend="threading")(fit(X, S) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert os.getpid()


def _fitted_proba(X, S):
    return make(Proden, 0).fit(X, S).predict_proba(X)
