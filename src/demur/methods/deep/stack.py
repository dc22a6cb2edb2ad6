"""Networks of one shape as one network: every parameter and buffer leads with a network axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

State = dict[str, NDArray[Any]]
Factory = Callable[[tuple[int, ...], int], nn.Module]

# oneDNN uses the widest vectors of every maker's processors; torch's own BLAS does so on some
# only, at half the speed elsewhere. The operator is torch's own but not public, hence the care.
_ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None)


class Stack(nn.Module):
    """N networks side by side: (N, B, ...) in, logits (N, B, outputs) out."""

    def features(self, x: Tensor) -> Tensor:
        """What the last layer sees, of shape (N, B, width)."""
        raise NotImplementedError

    def state(self, first: int, last: int) -> State:
        """Arrays of the networks from first up to last; the first axis counts networks."""
        kept = self.state_dict()
        return {name: value[first:last].cpu().numpy().copy() for name, value in kept.items()}

    def load(self, state: State) -> None:
        """Take over what `state` gave."""
        self.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})


class Dropout:
    """Sets a share of the numbers to 0 and makes up for it; each network draws its own.

    The share is rounded to a multiple of 1/256, so that a random byte decides for each number.
    """

    def __init__(self, share: float, streams: Sequence[torch.Generator]) -> None:
        self.streams = streams  # one a network, on the networks' device
        self.level = round(256 * share)
        self.factor = 256 / (256 - self.level)

    def __call__(self, h: Tensor) -> Tensor:
        """Drop numbers of (N, ...)."""
        each = h[0].numel()
        words = torch.empty(len(h), -(-each // 8), dtype=torch.int64, device=h.device)
        for row, stream in zip(words, self.streams, strict=True):
            row.random_(-(2**63), None, generator=stream)  # eight random bytes a draw
        kept = words.view(torch.uint8)[:, :each].view(h.shape) >= self.level
        return h * (kept * self.factor)


class TableStack(Stack):
    """Layers of d-300-300-300-l: ReLU, then batch normalisation, then dropout if asked for.

    Rows run along the last axis inside. A normalisation is a scale and a shift of each
    feature, so it is worked into the weights of the next layer rather than into the rows;
    while rows are being dropped out, into the rows after all.
    """

    momentum = 0.1
    epsilon = 1e-5

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        n_inputs: int,
        n_outputs: int,
        hidden: Sequence[int] = (300, 300, 300),
        drop: Dropout | None = None,
    ) -> None:
        super().__init__()
        self.drop = drop
        n, sizes = len(generators), [n_inputs, *hidden, n_outputs]
        layers = list(zip(sizes[1:], sizes[:-1], strict=True))
        self.weights = nn.ParameterList(_uniform(generators, (o, i), i) for o, i in layers)
        self.biases = nn.ParameterList(_uniform(generators, (o, 1), i) for o, i in layers)
        self.scales = nn.ParameterList(torch.ones(n, h, 1) for h in hidden)
        self.shifts = nn.ParameterList(torch.zeros(n, h, 1) for h in hidden)
        for k, h in enumerate(hidden):
            self.register_buffer(f"mean{k}", torch.zeros(n, h, 1))
            self.register_buffer(f"variance{k}", torch.ones(n, h, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        h, scale, shift = self._hidden(x)
        weight, bias = self._folded(len(self.scales), scale, shift)
        return product(weight, h).add_(bias).mT

    def features(self, x: Tensor) -> Tensor:
        """The last hidden layer, normalised."""
        h, scale, shift = self._hidden(x)
        return h.mT if scale is None or shift is None else (h * scale + shift).mT

    def _hidden(self, x: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        h, scale, shift = x.mT, None, None
        for k in range(len(self.scales)):
            h, mean, variance = self._layer(k, *self._folded(k, scale, shift), h)
            scale = self.scales[k] * torch.rsqrt(variance + self.epsilon)
            shift = self.shifts[k] - mean * scale
            if self.drop and self.training:
                h, scale, shift = self.drop(h * scale + shift), None, None
        return h, scale, shift

    def _folded(self, k: int, scale: Tensor | None, shift: Tensor | None) -> tuple[Tensor, Tensor]:
        weight, bias = self.weights[k], self.biases[k]
        if scale is None or shift is None:
            return weight, bias
        return weight * scale.mT, product(weight, shift) + bias

    def _layer(self, k: int, weight: Tensor, bias: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        running = self.get_buffer(f"mean{k}"), self.get_buffer(f"variance{k}")
        if not self.training:
            return product(weight, h).add_(bias).relu_(), *running
        z, mean, variance = _apply(_Layer, weight, bias, h)
        rows = h.shape[-1]
        running[0].lerp_(mean.detach(), self.momentum)
        running[1].lerp_(variance.detach() * (rows / (rows - 1)), self.momentum)
        return z, mean, variance


class LeNetStack(Stack):
    """LeNet-5 for images of 28 x 28 and one channel; dropout, if asked for, in the dense layers."""

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        n_outputs: int,
        drop: Dropout | None = None,
    ) -> None:
        super().__init__()
        self.drop = drop
        kernels = [((6, 1, 5, 5), 25), ((16, 6, 5, 5), 150)]
        layers = [(120, 400), (84, 120), (n_outputs, 84)]
        self.kernels = nn.ParameterList(_uniform(generators, s, fan) for s, fan in kernels)
        self.offsets = nn.ParameterList(_uniform(generators, s[:1], fan) for s, fan in kernels)
        self.weights = nn.ParameterList(_uniform(generators, (o, i), i) for o, i in layers)
        self.biases = nn.ParameterList(_uniform(generators, (o, 1), i) for o, i in layers)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        return product(self.weights[2], self._hidden(x)).add_(self.biases[2]).mT

    def features(self, x: Tensor) -> Tensor:
        """The layer of 84."""
        return self._hidden(x).mT

    def _hidden(self, x: Tensor) -> Tensor:
        h = x
        for kernel, offset, padding in zip(self.kernels, self.offsets, (2, 0), strict=True):
            h = _convolve(h, kernel, offset, padding).relu_()
            pooled = nn.functional.max_pool2d(h.flatten(0, 1), 2)
            h = pooled.view(*h.shape[:2], *pooled.shape[1:])
        h = h.flatten(2).mT
        for k in range(2):
            h = product(self.weights[k], h).add_(self.biases[k]).relu_()
            if self.drop and self.training:
                h = self.drop(h)
        return h


class SideBySide(Stack):
    """Networks that a user's factory made, one after the other."""

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        factory: Factory,
        shape: tuple[int, ...],
        n_outputs: int,
    ) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            self.networks = nn.ModuleList()
            for generator in generators:
                torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))
                self.networks.append(_checked(factory(shape, n_outputs), shape, n_outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        return torch.stack([net(rows) for net, rows in zip(self.networks, x, strict=True)])

    def features(self, x: Tensor) -> Tensor:
        """The logits: nothing else is known of these networks."""
        return self.forward(x)

    def state(self, first: int, last: int) -> State:
        """Arrays of the networks from first up to last."""
        states = [net.state_dict() for net in self.networks[first:last]]
        return {k: np.stack([s[k].cpu().numpy() for s in states]) for k in states[0]}

    def load(self, state: State) -> None:
        """Take over what `state` gave."""
        for i, net in enumerate(self.networks):
            net.load_state_dict({k: torch.as_tensor(value[i]) for k, value in state.items()})


def _checked(network: Any, shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """A network that a user's factory made, once it has shown that it suits."""
    if not isinstance(network, nn.Module):
        raise ValueError(f"network(shape, n_outputs) must return a torch module; got {network!r}.")
    if not any(p.requires_grad for p in network.parameters()):
        raise ValueError(f"network(shape, n_outputs) gave no parameters to train: {network!r}.")
    was_training = network.training
    with torch.no_grad():
        found = tuple(network.eval()(torch.zeros(2, *shape)).shape)
    network.train(was_training)
    if found != (2, n_outputs):
        raise ValueError(
            f"network({shape}, {n_outputs}) must map rows of that shape to {n_outputs} outputs "
            f"each; two rows gave outputs of shape {found}."
        )
    return network


def product(a: Tensor, b: Tensor) -> Tensor:
    """Products of matrices, one a network: (N, i, j) and (N, j, k) give (N, i, k)."""
    result: Tensor = _apply(_Product, a, b)
    return result


def _apply(function: Any, *inputs: Tensor) -> Any:
    return function.apply(*inputs)


def _convolve(x: Tensor, kernel: Tensor, offset: Tensor, padding: int) -> Tensor:
    """Convolutions, one a network, of images (N, B, channels, height, width)."""
    if len(x) > 1 and x.device.type != "cpu":
        return _convolve_grouped(x, kernel, offset, padding)
    each = zip(x, kernel, offset, strict=True)
    return torch.stack([nn.functional.conv2d(*one, padding=padding) for one in each])


def _convolve_grouped(x: Tensor, kernel: Tensor, offset: Tensor, padding: int) -> Tensor:
    """The same in one call, which is slower on a CPU."""
    h = nn.functional.conv2d(
        x.transpose(0, 1).flatten(1, 2),
        kernel.flatten(0, 1),
        offset.flatten(),
        padding=padding,
        groups=len(x),
    )
    return h.view(h.shape[0], len(x), -1, *h.shape[2:]).transpose(0, 1)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return _multiply(a, b)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        need_a, need_b = ctx.needs_input_grad
        return (
            _multiply(grad, b.mT) if need_a else None,
            _multiply(a.mT, grad) if need_b else None,
        )


def _multiply(a: Tensor, b: Tensor) -> Tensor:
    if _ONEDNN is None or a.device.type != "cpu" or a.dtype != torch.float32:
        return torch.bmm(a, b)
    pairs = zip(_dense(a), _dense(b), strict=True)
    parts = [_ONEDNN(x, y.mT, None, "none", [], "") for x, y in pairs]
    return parts[0].unsqueeze_(0) if len(parts) == 1 else torch.stack(parts)


def _dense(a: Tensor) -> Tensor:
    """A copy of what lies scattered, for which oneDNN has no quick kernel."""
    return a if a.is_contiguous() or a.mT.is_contiguous() else a.contiguous()


class _Layer(torch.autograd.Function):
    """A dense layer after ReLU, and mean and variance of each feature over the rows.

    Written out because, on a CPU, each pass over the rows that torch's own operators add
    costs as much as a tenth of a product.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        z = _multiply(weight, h).add_(bias).relu_()
        mean = z.mean(-1, keepdim=True)
        variance = (z - mean).square_().mean(-1, keepdim=True)
        ctx.save_for_backward(weight, h, z, mean)
        return z, mean, variance

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weight, h, z, mean = ctx.saved_tensors
        to_z, to_mean, to_variance = grads
        slope = to_variance * (2 / z.shape[-1])
        # In place: the next layer is the only one to read z, so the gradient is ours.
        to_z.addcmul_(z, slope).add_(to_mean / z.shape[-1] - slope * mean)
        torch.ops.aten.threshold_backward.grad_input(to_z, z, 0, grad_input=to_z)
        to_h = _multiply(weight.mT, to_z) if ctx.needs_input_grad[2] else None
        return _multiply(to_z, h.mT), to_z.sum(-1, keepdim=True), to_h


def _uniform(generators: Sequence[torch.Generator], shape: tuple[int, ...], fan_in: int) -> Tensor:
    """Initial weights, each network's from its own stream alone."""
    bound = 1 / math.sqrt(fan_in)
    return torch.stack(
        [torch.empty(shape).uniform_(-bound, bound, generator=g) for g in generators]
    )
