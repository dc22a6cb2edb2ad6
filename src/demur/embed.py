"""The variational auto-encoder, as a transformer: a few numbers in place of an image's pixels."""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from demur.base import check_features

if TYPE_CHECKING:
    from torch import Tensor


class VAEEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Encode images by the means of a variational auto-encoder.

    The encoder of [1]_ has one hidden layer, then a mean and a variance for each component; the
    decoder mirrors it. AdamW minimises the binary cross-entropy of the pixels plus the divergence
    from a standard normal distribution. Only ``fit`` needs torch.

    Pixels from 0 to 1 are used as they are. If training values lie outside, all are scaled by
    their common minimum and maximum, as images of 0 to 255 want it; scale columns of different
    units one by one before. Later values beyond the training range are clipped to it, with a
    warning if they seem to be of another scale. NaN, infinity and text are refused.

    Parameters
    ----------
    n_components : int, default=48
    hidden : int, default=512
        Units of the hidden layers.
    n_epochs : int, default=30
    batch_size : int, default=128
    learning_rate : float, default=0.001
    device : str, default="auto"
        A torch device; "auto" is the GPU if there is one.
    random_state : int, RandomState or None, default=None
        Weights, order and noise. On a CPU the same seed gives the same bits.

    Attributes
    ----------
    coefs_, intercepts_ : lists of two ndarrays
        Weights (inputs, outputs) and offsets of the hidden layer and of the means.
    low_, span_ : float
        What is encoded is ``(X - low_) / span_``.
    history_ : ndarray of shape (epochs trained,)
        Mean loss of an image in each epoch, in nats.

    References
    ----------
    .. [1] D. P. Kingma, M. Welling. "Auto-Encoding Variational Bayes". ICLR 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from demur import DstPll
    >>> from demur.embed import VAEEncoder
    >>> images, y = load_digits(return_X_y=True)
    >>> S = [{label, (label + 1) % 10} if i % 3 else {label} for i, label in enumerate(y)]
    >>> model = make_pipeline(VAEEncoder(8, hidden=64, n_epochs=99, random_state=0), DstPll())
    >>> bool(model.fit(images, S).score(images, y) > 0.8)
    True
    """

    def __init__(
        self,
        n_components: int = 48,
        *,
        hidden: int = 512,
        n_epochs: int = 30,
        batch_size: int = 128,
        learning_rate: float = 0.001,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.hidden = hidden
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on tables (n, n_features) or images (n, 28, 28) or (n, 1, 28, 28); y is ignored.

        An interrupt (Ctrl-C) is passed on, but leaves the encoder as it was trained so far.
        """
        self._check_parameters()
        self.__dict__.pop("coefs_", None)  # a fit that failed leaves no model behind
        pixels = check_features(self, _flat(X), reset=True)
        low, high = float(pixels.min()), float(pixels.max())
        low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
        if math.isinf(high - low):
            raise ValueError(f"X reaches from {low} to {high}, too far for a float; scale it.")
        self.low_, self.span_ = low, (high - low) or 1.0
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._train(self._scale(pixels).astype(np.float32), seed)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Means of the components, of shape (n, n_components)."""
        check_is_fitted(self, "coefs_")
        pixels = check_features(self, _flat(X), reset=False)
        first, last, span = self.low_, self.low_ + self.span_, self.span_
        far = np.argwhere((pixels < first - span) | (pixels > last + span))
        if len(far):
            what = "X holds {} at row {}, column {}".format(pixels[tuple(far[0])], *far[0])
            done = f"{len(far)} such value(s) are clipped to [{first}, {last}], the training range"
            warnings.warn(f"{what}; {done}. Scale X as it was scaled for fit.", stacklevel=2)
        means = np.empty((len(pixels), self._n_features_out))
        for rows in gen_batches(len(pixels), 4096):
            hidden = self._scale(pixels[rows]) @ self.coefs_[0] + self.intercepts_[0]
            means[rows] = np.maximum(hidden, 0) @ self.coefs_[1] + self.intercepts_[1]
        return means

    def _check_parameters(self) -> None:
        for name in ("n_components", "hidden", "n_epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a whole number, 1 or more; got {value!r}.")
        if not isinstance(self.learning_rate, Real) or not 0 < float(self.learning_rate) < math.inf:
            raise ValueError(f"learning_rate must be a number over 0; got {self.learning_rate!r}.")

    def _scale(self, pixels: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = np.clip(pixels, self.low_, self.low_ + self.span_)
        inside -= self.low_
        inside /= self.span_
        return inside

    def _train(self, X: NDArray[np.float32], seed: int) -> None:
        try:
            import torch
        except ModuleNotFoundError as error:
            hint = 'fitting a VAEEncoder needs torch; install it with: pip install "demur[deep]"'
            raise ImportError(hint) from error
        from demur.methods.deep.training import resolve_device

        device = torch.device(resolve_device(self.device))
        generator = torch.Generator().manual_seed(seed)  # on the CPU: the same on every device
        (n, d), h, k = X.shape, self.hidden, self.n_components
        weights = []
        for n_in, n_out in [(d, h), (h, 2 * k), (k, h), (h, d)]:
            for shape in [(n_in, n_out), (n_out,)]:
                drawn = torch.empty(shape).uniform_(-1, 1, generator=generator) / n_in**0.5
                weights.append(drawn.to(device).requires_grad_())
        optimizer = torch.optim.AdamW(weights, lr=self.learning_rate, fused=device.type != "mps")
        images, total = torch.from_numpy(X).to(device), torch.zeros((), device=device)
        history: list[float] = []
        try:
            for epoch in range(self.n_epochs):
                order = torch.randperm(n, generator=generator).to(device)
                noise = torch.randn((n, k), generator=generator).to(device)
                total.zero_()
                for part in gen_batches(n, self.batch_size):
                    loss = batch_loss(weights, images[order[part]], noise[part])
                    optimizer.zero_grad()
                    torch.autograd.backward(loss / (part.stop - part.start))
                    optimizer.step()
                    total += loss.detach()
                history.append(float(total) / n)
                if not math.isfinite(history[-1]):
                    diverged = f"the loss is {history[-1]} in epoch {epoch + 1}; training diverged"
                    raise ValueError(f"{diverged}. Use a smaller learning_rate.")
                self._after_epoch(weights, history)
        except KeyboardInterrupt:
            self._keep(weights, history)
            raise
        self._keep(weights, history)

    def _after_epoch(self, weights: list[Tensor], history: list[float]) -> None:
        """For who watches the training: `benchmarks/encoder_epochs.py`."""

    def _keep(self, weights: list[Tensor], history: list[float]) -> None:
        kept = [w.detach().cpu().double().numpy() for w in weights[:4]]
        k = self._n_features_out = kept[2].shape[1] // 2
        self.history_ = np.array(history)
        self.intercepts_, self.coefs_ = [kept[1], kept[3][:k]], [kept[0], kept[2][:, :k].copy()]


def batch_loss(weights: list[Tensor], x: Tensor, noise: Tensor) -> Tensor:
    """Minus the evidence lower bound, summed over a batch; ``noise`` is standard normal."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    w1, b1, w2, b2, w3, b3, w4, b4 = weights
    mean, log_variance = ((x @ w1 + b1).relu() @ w2 + b2).chunk(2, dim=1)
    code = mean + (log_variance / 2).exp() * noise
    logits = (code @ w3 + b3).relu() @ w4 + b4
    reconstruction = binary_cross_entropy_with_logits(logits, x, reduction="sum")
    return reconstruction + (mean**2 + log_variance.exp() - 1 - log_variance).sum() / 2


def _flat(X: Any) -> Any:
    """Images as flat rows; tables as they are."""
    return X if getattr(X, "ndim", 2) < 3 else np.reshape(X, (len(X), math.prod(X.shape[1:])))
