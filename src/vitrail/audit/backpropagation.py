"""Explanations by backpropagation, for anything torch can differentiate: one network, or many at once.

A *forward* maps points (..., features) to outputs (..., classes); whatever stands before the features (people; models x
people) is carried along. Explained is the probability (or the logit) of the class predicted at the point:

    gradient                 d c / d x                                     (Simonyan et al. 2014)
    input x gradient         x * d c / d x                                 (Shrikumar et al. 2016)
    integrated gradients     (x - b) * mean of d c / d x at b + a (x - b)  (Sundararajan et al. 2017), a at midpoints in (0,
    1) guided backpropagation   only positive signals flow back through activations (Springenberg et al. 2014)
    layer relevance          relevance handed down in proportion to contributions, epsilon rule (Bach et al. 2015)
    smooth gradient          the mean gradient at x + N(0, sigma^2)        (Smilkov et al. 2017)

Guided backpropagation and layer relevance depend on how a network is built, so they need its layers; the rest need the
forward alone. The path of integrated gradients starts at the baseline: the x + a (x - b) of Shokri et al. leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..errors import InvalidInput

if TYPE_CHECKING:
    from torch import Tensor

Forward = Callable[["Tensor"], "Tensor"]
Explained = Literal["probability", "logit"]

METHODS = (
    "gradient",
    "input x gradient",
    "integrated gradients",
    "guided backpropagation",
    "layer relevance",
    "smooth gradient",
)
RELEVANCE_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class Layer:
    """A step of a network: ``linear`` ones share relevance out, the others (activations) hand it on."""

    apply: Forward
    linear: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers that methods have.

    Parameters
    ----------
    of : {"probability", "logit"}
        What of the predicted class is explained.
    steps : int
        Places on the path of integrated gradients.
    baseline : float
        Every feature's value at the start of that path.
    sigma, samples : float, int
        Noise and repetitions of smooth gradients.
    seed : int
        Of that noise.
    """

    of: Explained = "probability"
    steps: int = 32
    baseline: float = 0.0
    sigma: float = 0.15
    samples: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        if self.of not in ("probability", "logit"):
            raise InvalidInput(f"of is {self.of!r}; explain 'probability' or 'logit'")
        if self.steps < 1 or self.samples < 1 or not self.sigma >= 0:
            raise InvalidInput("steps and samples must be at least 1, and sigma not negative")


def explain(
    method: str, forward: Forward, points: Tensor, settings: Settings, layers: Callable[[], Sequence[Layer]] | None = None
) -> Tensor:
    """Explanations of points, in the points' shape."""
    import torch

    with torch.no_grad():
        classes = forward(points).argmax(dim=-1, keepdim=True)
    if method == "gradient":
        return gradient(forward, points, classes, settings.of)
    if method == "input x gradient":
        return points * gradient(forward, points, classes, settings.of)
    if method == "integrated gradients":
        away = points - settings.baseline
        shares = [(step + 0.5) / settings.steps for step in range(settings.steps)]
        total = sum(gradient(forward, settings.baseline + share * away, classes, settings.of) for share in shares)
        return away * total / settings.steps
    if method == "smooth gradient":
        noise = torch.Generator(device=points.device).manual_seed(settings.seed)
        total = torch.zeros_like(points)
        for _ in range(settings.samples):
            shift = torch.randn(points.shape, generator=noise, device=points.device, dtype=points.dtype)
            total += gradient(forward, points + settings.sigma * shift, classes, settings.of)
        return total / settings.samples
    if layers is None:
        raise InvalidInput(
            f"{method!r} needs a network's layers; give a torch.nn.Sequential of linear layers and activations"
        )
    if method == "guided backpropagation":
        return gradient(guided(layers()), points, classes, settings.of)
    if method == "layer relevance":
        return relevance(layers(), points, classes)
    raise InvalidInput(f"method is {method!r}; choose one of {', '.join(map(repr, METHODS))}")


def chosen_output(outputs: Tensor, classes: Tensor, of: Explained) -> Tensor:
    """The output of each point's class; a single output is the logit of the second of two classes."""
    import torch

    if outputs.shape[-1] == 1:
        outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=-1)
        classes = (outputs[..., 1:] > 0).long() if classes.shape == outputs[..., 1:].shape else classes
    if of == "probability":
        outputs = torch.softmax(outputs, dim=-1)
    return outputs.gather(-1, classes)


def gradient(forward: Forward, points: Tensor, classes: Tensor, of: Explained) -> Tensor:
    """d output of the class / d point."""
    import torch

    with torch.enable_grad():
        moved = points.detach().requires_grad_(True)
        total = chosen_output(forward(moved), classes, of).sum()
        return torch.autograd.grad(total, moved)[0].detach()


def guided(layers: Sequence[Layer]) -> Forward:
    """The same network, whose activations let positive signals back only."""

    def forward(points: Tensor) -> Tensor:
        value = points
        for layer in layers:
            value = layer.apply(value)
            if not layer.linear and value.requires_grad:
                value.register_hook(lambda signal: signal.clamp(min=0))
        return value

    return forward


def relevance(layers: Sequence[Layer], points: Tensor, classes: Tensor) -> Tensor:
    """Layer-wise relevance propagation with the epsilon rule, from the logit of the predicted class.

    A linear layer z = W a + b hands R_k to a_j in proportion a_j w_jk / z_k: as a gradient, R_j = a_j d(z . s)/d a_j with
    s = R/(z + epsilon sign z), which also holds for convolutions and pooling.
    """
    import torch

    values = [points.detach()]
    with torch.no_grad():
        for layer in layers:
            values.append(layer.apply(values[-1]))
    left = torch.zeros_like(values[-1])
    left.scatter_(-1, classes.clamp(max=left.shape[-1] - 1), values[-1].gather(-1, classes.clamp(max=left.shape[-1] - 1)))
    for layer, before, after in zip(reversed(layers), reversed(values[:-1]), reversed(values[1:]), strict=True):
        if not layer.linear:
            continue
        with torch.enable_grad():
            entered = before.detach().requires_grad_(True)
            passed = layer.apply(entered)
            signs = torch.where(after >= 0, 1.0, -1.0).to(after.dtype)
            share = (left / (after + RELEVANCE_EPSILON * signs)).detach()
            left = (entered * torch.autograd.grad((passed * share).sum(), entered)[0]).detach()
    return left
