"""Stacks of networks against torch's own modules with the same weights."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from demur.methods.deep import stack as stacks  # noqa: E402
from demur.methods.deep.stack import LeNetStack, SideBySide, TableStack  # noqa: E402


def streams(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def dense_layers(state):
    """Weights and biases of one network's dense layers, from the state of that network."""
    n_layers = sum(name.startswith("weights.") for name in state)
    for k in range(n_layers):
        weight = torch.tensor(state[f"weights.{k}"][0])
        layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
        layer.weight.data = weight
        layer.bias.data = torch.tensor(state[f"biases.{k}"].ravel())
        yield layer


def plain_table(state):
    """Linear, ReLU, BatchNorm1d, ..., Linear with the weights of a network of a TableStack."""
    *hidden, last = dense_layers(state)
    modules = []
    for k, layer in enumerate(hidden):
        norm = nn.BatchNorm1d(layer.out_features, dtype=layer.weight.dtype)
        norm.weight.data = torch.tensor(state[f"scales.{k}"].ravel())
        norm.bias.data = torch.tensor(state[f"shifts.{k}"].ravel())
        norm.running_mean = torch.tensor(state[f"mean{k}"].ravel())
        norm.running_var = torch.tensor(state[f"variance{k}"].ravel())
        modules += [layer, nn.ReLU(), norm]
    return nn.Sequential(*modules, last)


def plain_lenet(state):
    """LeNet-5 in torch's modules with the weights of a network of a LeNetStack."""
    first, second = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
    for k, layer in enumerate((first, second)):
        layer.weight.data = torch.tensor(state[f"kernels.{k}"][0])
        layer.bias.data = torch.tensor(state[f"offsets.{k}"].ravel())
    a, b, c = dense_layers(state)
    head = (first, nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*head, a, nn.ReLU(), b, nn.ReLU(), c)


def of_each(stack, n_networks):
    return [stack.state(i, i + 1) for i in range(n_networks)]


def assert_same_state(states, others, **tolerance):
    for state, other in zip(states, others, strict=True):
        assert state.keys() == other.keys()
        for name in state:
            np.testing.assert_allclose(state[name], other[name], err_msg=name, **tolerance)


def state_of(plain):
    """The state that a network of a TableStack has when it is the same as a plain one."""
    state = {}
    dense = [m for m in plain if isinstance(m, nn.Linear)]
    norms = [m for m in plain if isinstance(m, nn.BatchNorm1d)]
    for k, layer in enumerate(dense):
        state[f"weights.{k}"] = layer.weight.detach().numpy()[None]
        state[f"biases.{k}"] = layer.bias.detach().numpy()[None, :, None]
    for k, norm in enumerate(norms):
        state[f"scales.{k}"] = norm.weight.detach().numpy()[None, :, None]
        state[f"shifts.{k}"] = norm.bias.detach().numpy()[None, :, None]
        state[f"mean{k}"] = norm.running_mean.numpy()[None, :, None].copy()
        state[f"variance{k}"] = norm.running_var.numpy()[None, :, None].copy()
    return state


def some_loss(logits, targets):
    """Summed over networks, so that each learns from its own rows alone."""
    return -(targets * logits.log_softmax(-1)).sum(-1).mean(-1).sum()


def train_both(stack, plains, inputs, targets, rate=0.01):
    """A few steps of Adam on the stack, and on each plain network by itself."""
    optimizers = [torch.optim.Adam(module.parameters(), lr=rate) for module in (stack, *plains)]
    for x, t in zip(inputs, targets, strict=True):
        for optimizer in optimizers:
            optimizer.zero_grad()
        outputs = stack(x)
        each = [plain(rows) for plain, rows in zip(plains, x, strict=True)]
        yield outputs, torch.stack(each)
        some_loss(outputs, t).backward()
        for own, rows in zip(each, t, strict=True):
            some_loss(own, rows).backward()
        for optimizer in optimizers:
            optimizer.step()


@pytest.mark.parametrize("n_networks", [1, 3])
@pytest.mark.parametrize("hidden", [(7,), (12, 9, 5)])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 2e-4)], ids=["f64", "f32"]
)
def test_tables_learn_as_plain_modules_do(n_networks, hidden, dtype, tolerance):
    torch.manual_seed(0)
    stack = TableStack(streams(*range(n_networks)), 6, 4, hidden).to(dtype)
    plains = [plain_table(state) for state in of_each(stack, n_networks)]
    x = torch.randn(8, n_networks, 33, 6, dtype=dtype) * 3 + 1
    targets = torch.rand(8, n_networks, 33, 4, dtype=dtype).softmax(-1)
    for outputs, expected in train_both(stack, plains, x, targets):
        torch.testing.assert_close(outputs, expected, rtol=tolerance, atol=tolerance)
    got, want = of_each(stack, n_networks), [state_of(plain) for plain in plains]
    assert_same_state(got, want, rtol=tolerance, atol=tolerance)
    assert not np.allclose(got[0]["mean0"], 0, atol=0.1)  # the running statistics did run

    stack.eval()
    for plain in plains:
        plain.eval()
    new = torch.randn(n_networks, 5, 6, dtype=dtype)
    expected = torch.stack([plain(rows) for plain, rows in zip(plains, new, strict=True)])
    close = {"rtol": tolerance, "atol": tolerance}
    torch.testing.assert_close(stack(new), expected, **close)
    seen = torch.stack([plain[:-1](rows) for plain, rows in zip(plains, new, strict=True)])
    torch.testing.assert_close(stack.features(new), seen, **close)
    assert_same_state(of_each(stack, n_networks), got, atol=0)  # eval changes nothing
    one_row = stack(new[:, :1])
    torch.testing.assert_close(one_row, expected[:, :1], **close)


def test_gradients_reach_the_inputs_and_the_features():
    """What a network in front of a stack, or a loss on the features, would need."""
    stack = TableStack(streams(1, 2), 3, 2, (5, 4)).double()
    plains = [plain_table(state) for state in of_each(stack, 2)]
    torch.manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.float64, requires_grad=True)
    again = x.detach().clone().requires_grad_()
    (stack.features(x) ** 3).sum().backward()
    sum((plain[:-1](rows) ** 3).sum() for plain, rows in zip(plains, again, strict=True)).backward()
    torch.testing.assert_close(x.grad, again.grad, rtol=1e-9, atol=1e-9)
    assert x.grad.abs().max() > 1e-3


def test_dead_units_and_no_hidden_layer():
    stack = TableStack(streams(0), 3, 2, (4,))
    state = stack.state(0, 1)
    state["biases.0"][:] = -1e3  # no unit ever fires, so each has variance 0
    stack.load(state)
    loss = some_loss(stack(torch.randn(1, 9, 3)), torch.full((1, 9, 2), 0.5))
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in stack.parameters() if p.grad is not None)

    linear = TableStack(streams(0), 3, 2, ())
    (layer,) = dense_layers(linear.state(0, 1))
    x = torch.randn(1, 9, 3)
    torch.testing.assert_close(linear(x)[0], layer(x[0]))
    torch.testing.assert_close(linear.features(x), x)


@pytest.mark.parametrize("n_networks", [1, 3])
def test_images_learn_as_plain_modules_do(n_networks):
    torch.manual_seed(0)
    stack = LeNetStack(streams(*range(n_networks)), 4)
    plains = [plain_lenet(state) for state in of_each(stack, n_networks)]
    x = torch.rand(3, n_networks, 6, 1, 28, 28)
    targets = torch.rand(3, n_networks, 6, 4).softmax(-1)
    for outputs, expected in train_both(stack, plains, x, targets, rate=0.001):
        torch.testing.assert_close(outputs, expected, rtol=1e-3, atol=1e-4)
    for state, plain in zip(of_each(stack, n_networks), plains, strict=True):
        for name, layer in (("kernels.0", plain[0]), ("kernels.1", plain[3])):
            np.testing.assert_allclose(state[name][0], layer.weight.detach(), atol=1e-3)
        for k, layer in enumerate((plain[7], plain[9], plain[11])):
            np.testing.assert_allclose(state[f"weights.{k}"][0], layer.weight.detach(), atol=1e-3)
            np.testing.assert_allclose(state[f"biases.{k}"].ravel(), layer.bias.detach(), atol=1e-3)
    seen = torch.stack([plain[:-1](rows) for plain, rows in zip(plains, x[0], strict=True)])
    torch.testing.assert_close(stack.features(x[0]), seen, rtol=1e-3, atol=1e-4)


def test_initial_weights_are_those_of_torch_in_distribution():
    stack = TableStack(streams(5), 400, 50, (300,))
    state = stack.state(0, 1)
    for k, fan_in in enumerate((400, 300)):
        bound = 1 / np.sqrt(fan_in)
        for name in (f"weights.{k}", f"biases.{k}"):
            assert np.abs(state[name]).max() <= bound
            assert np.abs(state[name]).max() > 0.9 * bound
        assert state[f"weights.{k}"].std() == pytest.approx(bound / np.sqrt(3), rel=0.02)
        reference = nn.Linear(fan_in, 300).weight.detach().numpy()
        assert state[f"weights.{k}"].std() == pytest.approx(reference.std(), rel=0.02)


def _factory(shape, n_outputs):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(int(np.prod(shape)), 6), nn.BatchNorm1d(6), nn.Linear(6, n_outputs)
    )


def _make(kind, *seeds):
    if kind == "table":
        return TableStack(streams(*seeds), 5, 3, (4, 4))
    if kind == "images":
        return LeNetStack(streams(*seeds), 3)
    return SideBySide(streams(*seeds), _factory, (5,), 3)


KINDS = ["table", "images", "own"]


@pytest.mark.parametrize("kind", KINDS)
def test_initial_weights_do_not_depend_on_company(kind):
    together = _make(kind, 11, 12, 13)
    assert_same_state([together.state(1, 2)], [_make(kind, 12).state(0, 1)], rtol=0)
    first, second = together.state(0, 1), together.state(1, 2)
    name = max(first, key=lambda k: first[k].size)
    assert not np.allclose(first[name], second[name])


def test_two_networks_of_one_stream_differ():
    stream = streams(3)[0]
    pair = TableStack([stream, stream], 5, 3, (4,))
    assert not np.allclose(pair.state(0, 1)["weights.0"], pair.state(1, 2)["weights.0"])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_is_loaded(kind):
    stack = _make(kind, 1, 2, 3)
    x = torch.rand(3, 8, 1, 28, 28) if kind == "images" else torch.rand(3, 8, 5)
    stack(x)  # moves the running statistics, where there are any
    stack.eval()
    kept = stack.state(1, 3)
    other = _make(kind, 7, 8)
    other.load(kept)
    other.eval()
    assert_same_state([other.state(0, 2)], [kept], rtol=0)
    torch.testing.assert_close(other(x[1:]), stack(x)[1:], rtol=0, atol=1e-6)
    before = copy.deepcopy(kept)
    with torch.no_grad():
        for p in stack.parameters():
            p.add_(1)
    assert_same_state([kept], [before], rtol=0)  # what was saved is a copy
    name = next(iter(kept))
    with pytest.raises(RuntimeError, match=name.split(".")[0]):
        other.load({k: v for k, v in kept.items() if k != name})


def test_networks_of_ones_own_are_the_modules_themselves():
    state_before = torch.random.get_rng_state()
    stack = _make("own", 4, 5)
    assert torch.equal(torch.random.get_rng_state(), state_before)  # the global stream is spared
    x = torch.rand(2, 10, 5)
    outputs = stack(x)
    stack.eval()
    for i, network in enumerate(stack.networks):
        assert isinstance(network, nn.Sequential)
        torch.testing.assert_close(stack(x)[i], network(x[i]))
    assert outputs.shape == (2, 10, 3)
    torch.testing.assert_close(stack.features(x), stack(x))


@pytest.mark.parametrize("padding", [0, 2])
def test_grouped_convolutions_are_the_single_ones(padding):
    """What a GPU computes with, tried on the CPU."""
    torch.manual_seed(0)
    x = torch.rand(3, 4, 2, 9, 9, dtype=torch.float64)
    kernel = torch.rand(3, 5, 2, 3, 3, dtype=torch.float64)
    offset = torch.rand(3, 5, dtype=torch.float64)
    each = [
        nn.functional.conv2d(*one, padding=padding) for one in zip(x, kernel, offset, strict=True)
    ]
    expected = torch.stack(each)
    torch.testing.assert_close(stacks._convolve_grouped(x, kernel, offset, padding), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_networks", [1, 3])
def test_products_of_matrices(n_networks, dtype):
    torch.manual_seed(0)
    scattered = torch.rand(n_networks, 6, 10, dtype=dtype)[:, :, ::2]
    for a, b in [
        (torch.rand(n_networks, 4, 5, dtype=dtype), torch.rand(n_networks, 5, 7, dtype=dtype)),
        (
            torch.rand(n_networks, 5, 4, dtype=dtype).mT,
            torch.rand(n_networks, 7, 5, dtype=dtype).mT,
        ),
        (scattered, scattered.mT),
        (torch.rand(n_networks, 1, 5, dtype=dtype), torch.rand(n_networks, 5, 1, dtype=dtype)),
    ]:
        ours = [t.clone().requires_grad_() for t in (a, b)]
        theirs = [t.clone().requires_grad_() for t in (a, b)]
        product, expected = stacks.product(*ours), torch.einsum("nij,njk->nik", *theirs)
        torch.testing.assert_close(product, expected)
        (product**2).sum().backward()
        (expected**2).sum().backward()
        for got, want in zip(ours, theirs, strict=True):
            torch.testing.assert_close(got.grad, want.grad)
