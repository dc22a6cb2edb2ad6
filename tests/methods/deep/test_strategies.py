"""What each network method does with the outputs, against plain transcriptions, row by row."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from demur.methods.deep import Cc, CroSel, Pop, Proden, Valen, valen  # noqa: E402
from demur.methods.deep.training import Batch  # noqa: E402

ROWS, CLASSES = 40, 5


@pytest.fixture
def candidates(rng):
    S = rng.random((ROWS, CLASSES)) < 0.5
    S[np.arange(ROWS), rng.integers(CLASSES, size=ROWS)] = True
    return S


def begun(strategy, S, networks=1):
    """The strategy at the start of a training on these candidates."""
    held = torch.from_numpy(np.stack([S] * networks))
    generators = [torch.Generator().manual_seed(0)]
    strategy.start(
        SimpleNamespace(candidates=held, generators=generators, device=torch.device("cpu"))
    )
    for name, value in vars(strategy).items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            setattr(strategy, name, value.double())
    return strategy


def batch_of(logits, S, rows):
    """What the networks say of some rows; ``logits`` (N, n, outputs)."""
    outputs = torch.from_numpy(logits[:, rows])
    n = len(outputs)
    return Batch(
        torch.arange(n)[:, None],
        torch.from_numpy(rows).expand(n, -1),
        torch.from_numpy(S[rows]).expand(n, -1, -1),
        outputs,
        outputs[..., :CLASSES].log_softmax(-1),
    )


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


def shares(proba, S):
    """Probabilities given that the label is a candidate."""
    return proba * S / (proba * S).sum(axis=-1, keepdims=True)


def test_proden_learns_from_targets_that_become_its_own_view(rng, candidates):
    strategy = begun(Proden().strategy(), candidates)
    logits = rng.normal(size=(1, ROWS, CLASSES))
    proba, rows = softmax(logits[0]), rng.permutation(ROWS)[:15]
    targets = candidates / candidates.sum(axis=1, keepdims=True)
    batch = batch_of(logits, candidates, rows)
    loss = -np.mean([targets[i] @ np.log(proba[i]) for i in rows])
    assert strategy.loss(batch).tolist() == pytest.approx([loss])
    strategy.after_batch(batch)
    targets[rows] = shares(proba, candidates)[rows]
    np.testing.assert_allclose(strategy.targets[0], targets, rtol=1e-6)
    loss = -np.mean([targets[i] @ np.log(proba[i]) for i in rows])
    assert strategy.loss(batch).tolist() == pytest.approx([loss])


def test_cc_makes_the_candidates_together_likely(rng, candidates):
    logits = rng.normal(size=(1, ROWS, CLASSES))
    proba = softmax(logits[0])
    loss = -np.mean([np.log(proba[i][candidates[i]].sum()) for i in range(ROWS)])
    batch = batch_of(logits, candidates, np.arange(ROWS))
    assert Cc().strategy().loss(batch).tolist() == pytest.approx([loss])


def test_pop_purifies_on_the_mean_of_the_last_epochs(rng, candidates):
    model = Pop(
        warm_up_epochs=4,
        purify_every=2,
        first_threshold=0.2,
        threshold_step=0.15,
        last_threshold=0.4,
    )
    strategy = begun(model.strategy(), candidates)
    kept, history, threshold, sizes = candidates.copy(), [], 0.2, []
    lean = rng.normal(size=(ROWS, CLASSES))
    for epoch in range(11):
        logits = (lean + rng.normal(size=(ROWS, CLASSES)))[None]
        strategy.after_batch(batch_of(logits, candidates, np.arange(ROWS)))
        strategy.after_epoch(epoch)
        targets = shares(softmax(logits[0]), kept)
        history.append(targets)
        if epoch in (4, 6, 8, 10):
            mean = (history[-1] + history[-2]) / 2
            for i in range(ROWS):
                for y in range(CLASSES):
                    if mean[i, y] < threshold * mean[i].max():
                        kept[i, y] = False
            targets = shares(mean, kept)
            threshold = min(threshold + 0.15, 0.4)
        sizes.append(kept.sum())
        np.testing.assert_array_equal(strategy.kept[0], kept)
        np.testing.assert_allclose(strategy.targets[0], targets, rtol=1e-9)
    assert sizes[3] == candidates.sum() > sizes[4] > sizes[6] > sizes[10] >= ROWS
    assert kept.any(axis=1).all()


def test_pop_asks_for_more_as_the_text_says():
    """From 0.001 to 0.04 in steps of 0.001: after 39 purifications it stays."""
    strategy = begun(Pop(warm_up_epochs=0, purify_every=1).strategy(), np.ones((2, 3), bool))
    asked = [strategy.threshold]
    for epoch in range(60):
        strategy.after_epoch(epoch)
        asked.append(strategy.threshold)
    np.testing.assert_allclose(asked, np.minimum(0.001 * np.arange(1, 62), 0.04))


def test_crosel_selects_for_the_other_network(rng, candidates):
    model = CroSel(warm_up_epochs=3, memory=3, confidence=0.5, consistency_weight=2.0)
    strategy = begun(model.strategy(), candidates, networks=2)
    lean = 4 * rng.normal(size=(2, ROWS, CLASSES))
    history = []
    for epoch in range(5):
        logits = lean + 1.5 * rng.normal(size=lean.shape)
        batch = batch_of(logits, candidates, np.arange(ROWS))
        in_warm_up = [-np.mean(np.log((softmax(z) * candidates).sum(axis=1))) for z in logits]
        assert (epoch < 3) == (strategy.loss(batch).tolist() == pytest.approx(in_warm_up))
        strategy.after_batch(batch)
        strategy.after_epoch(epoch)
        history.append(softmax(logits))
        if epoch < 2:
            assert not strategy.selected.any()
            continue
        last = np.array(history[-3:])
        selected = np.zeros((2, ROWS), bool)
        for network in range(2):
            other = 1 - network
            for i in range(ROWS):
                tops = last[:, other, i].argmax(axis=1)
                selected[network, i] = (
                    candidates[i, tops[-1]]
                    and len(set(tops)) == 1
                    and last[:, other, i].mean(axis=0).max() > 0.5
                )
        np.testing.assert_array_equal(strategy.selected, selected)
        np.testing.assert_array_equal(strategy.labels, last[-1][::-1].argmax(axis=-1))
        agreed = shares(last[-1].sum(axis=0), candidates)
        np.testing.assert_allclose(strategy.targets[0], agreed, atol=1e-7)
        np.testing.assert_allclose(strategy.targets[1], agreed, atol=1e-7)
        assert 0 < selected.sum() < selected.size
        assert (selected[0] != selected[1]).any()
        losses = []
        for network in range(2):
            log_proba = np.log(softmax(logits[network]))
            taught = np.flatnonzero(selected[network])
            labels = last[-1][1 - network].argmax(axis=1)
            known = -np.mean(log_proba[taught, labels[taught]])
            others = 1 - len(taught) / ROWS
            losses.append(known - 2.0 * others * np.mean((agreed * log_proba).sum(axis=1)))
        assert strategy.loss(batch).tolist() == pytest.approx(losses)


@pytest.mark.parametrize("at_once", [7, 1024])
def test_valens_neighbours_are_the_nearest_and_few_are_held_at_once(rng, monkeypatch, at_once):
    monkeypatch.setattr(valen, "NEIGHBORS_AT_ONCE", at_once)
    held, cdist = [], torch.cdist
    monkeypatch.setattr(torch, "cdist", lambda a, b: held.append(len(a)) or cdist(a, b))
    X = rng.normal(size=(60, 4))
    found = valen._nearest(torch.from_numpy(X), 3)
    for i, links in enumerate(found.tolist()):
        gaps = ((X - X[i]) ** 2).sum(axis=1)
        gaps[i] = np.inf
        assert sorted(links) == sorted(np.argsort(gaps)[:3].tolist())
    assert max(held) == min(at_once, 60)
    assert sum(held) == 60
    assert valen._nearest(torch.from_numpy(X[:3]), 3).shape == (3, 2)


def test_valens_divergence_is_that_of_the_dirichlet_distributions(rng, candidates):
    alpha = np.exp(rng.normal(size=(ROWS, CLASSES)))
    expected = [
        float(
            torch.distributions.kl_divergence(
                torch.distributions.Dirichlet(torch.from_numpy(a[s])),
                torch.distributions.Dirichlet(torch.ones(int(s.sum()), dtype=torch.float64)),
            )
        )
        for a, s in zip(alpha, candidates, strict=True)
        if s.sum() > 1
    ]
    held = torch.from_numpy(candidates[candidates.sum(axis=1) > 1])[None]
    several = torch.from_numpy(alpha[candidates.sum(axis=1) > 1])[None]
    assert valen._divergence(several, held).tolist() == pytest.approx([np.mean(expected)])
    alone = valen._divergence(torch.full((1, 1, 3), 2.0), torch.tensor([[[True, False, False]]]))
    assert alone.tolist() == pytest.approx([0.0], abs=1e-6)  # one candidate is certain


def test_valen_draws_from_the_dirichlet_over_the_candidates(candidates):
    strategy = begun(Valen().strategy(), candidates)
    alpha = torch.tensor([3.0, 1.0, 0.5, 2.0, 4.0]).expand(1, 20_000, CLASSES)
    held = torch.tensor([True, True, False, False, True]).expand(1, 20_000, CLASSES)
    drawn = strategy._draw(alpha, held)[0]
    assert not drawn[:, 2:4].any()
    torch.testing.assert_close(drawn.sum(-1), torch.ones(20_000))
    expected = torch.tensor([3 / 8, 1 / 8, 0, 0, 4 / 8])
    assert torch.allclose(drawn.mean(0), expected, atol=0.01)
    variance = expected * (1 - expected) / 9
    assert torch.allclose(drawn.var(0), variance, atol=0.002)


def test_valen_links_an_instance_to_its_neighbours_and_to_no_others(rng, candidates):
    strategy = begun(Valen(n_neighbors=2).strategy(), candidates)
    strategy.inferred = torch.from_numpy(rng.dirichlet(np.ones(CLASSES), size=(1, ROWS)))
    strategy.neighbors = torch.from_numpy(rng.integers(ROWS, size=(1, ROWS, 2)))
    rows = rng.permutation(ROWS)[:12]
    drawn = rng.dirichlet(np.ones(CLASSES), size=12)
    total = 0.0
    for at, i in enumerate(rows):
        for j in strategy.neighbors[0, i].tolist():
            total += np.log(1 / (1 + np.exp(-drawn[at] @ strategy.inferred[0, j].numpy())))
        for shift in (1, 2):
            total += np.log(1 - 1 / (1 + np.exp(-drawn[at] @ drawn[at - shift])))
    batch = batch_of(np.zeros((1, ROWS, 2 * CLASSES)), candidates, rows)
    found = strategy._edges(batch, torch.from_numpy(drawn)[None])
    assert found.tolist() == pytest.approx([total / 12])


def test_valens_heads_learn_from_each_other(rng, candidates):
    strategy = begun(Valen(warm_up_epochs=1, n_neighbors=2).strategy(), candidates)
    strategy.training.features = lambda: torch.from_numpy(rng.normal(size=(1, ROWS, 3)))
    logits = rng.normal(size=(1, ROWS, 2 * CLASSES))
    batch = batch_of(logits, candidates, np.arange(ROWS))
    first, second = softmax(logits[0, :, :CLASSES]), softmax(logits[0, :, CLASSES:])
    equal = candidates / candidates.sum(axis=1, keepdims=True)
    losses = -(equal * np.log(first)).sum(axis=1) - (equal * np.log(second)).sum(axis=1)
    assert strategy.loss(batch).tolist() == pytest.approx([losses.mean()])
    strategy.after_batch(batch)  # in the warm-up both learn from what the predictor says
    np.testing.assert_allclose(strategy.inferred[0], shares(first, candidates), rtol=1e-9)
    strategy.after_epoch(0)
    assert strategy.neighbors.shape == (1, ROWS, 2)
    strategy.after_batch(batch)
    np.testing.assert_allclose(strategy.predicted[0], shares(first, candidates), rtol=1e-9)
    np.testing.assert_allclose(strategy.inferred[0], shares(second, candidates), rtol=1e-9)
    torch.testing.assert_close(strategy.label_scores(None), strategy.inferred)
