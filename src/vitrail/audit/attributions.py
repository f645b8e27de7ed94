"""Explanations by backpropagation of the class that a torch module predicts, computed by captum.

    gradient                 d c / d x                                     (Simonyan et al. 2014)
    input x gradient         x * d c / d x                                 (Shrikumar et al. 2016)
    integrated gradients     (x - b) * mean of d c / d x at b + a (x - b)  (Sundararajan et al. 2017), a at midpoints
    guided backpropagation   only positive signals flow back through activations (Springenberg et al. 2014)
    layer relevance          relevance handed down in proportion to contributions, epsilon rule (Bach et al. 2015)
    smooth gradient          the mean gradient at x + N(0, sigma^2)        (Smilkov et al. 2017)

c is the probability of the predicted class, or its logit. A single output is the logit of the second of two classes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import InvalidInput
from .signals import FloatArray

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

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
POINTS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers that methods have.

    Parameters
    ----------
    of : {"probability", "logit"}
        What of the predicted class is explained.
    steps : int
        Points on the path of integrated gradients.
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


def attributions(module: Module, method: str, settings: Settings, points: object) -> FloatArray:
    """Attributions (points, features), of the class that the module predicts at each point."""
    if method not in METHODS:
        raise InvalidInput(f"method is {method!r}; choose one of {', '.join(map(repr, METHODS))}")
    return ask_module(module, lambda some: _attribution(module, method, settings, some), points)


def ask_module(module: Module, look: Callable[[Tensor], Tensor], points: object) -> FloatArray:
    """What ``look`` says of points, as (points, numbers); the module is switched to evaluation while it is asked."""
    import torch

    rows = np.asarray(points)
    parameter = next(iter(module.parameters()), torch.zeros(0, dtype=torch.float64))
    training = module.training
    module.eval()
    answers = []
    try:
        for start in range(0, len(rows), POINTS_AT_ONCE):
            some = torch.as_tensor(rows[start : start + POINTS_AT_ONCE], dtype=parameter.dtype, device=parameter.device)
            answers.append(look(some).detach().reshape(len(some), -1).double().cpu().numpy())
    finally:
        module.train(training)
    return np.concatenate(answers)


def two_or_more(logits: Tensor) -> Tensor:
    """Logits of all classes: a single one is that of the second of two."""
    import torch

    return logits if logits.shape[-1] > 1 else torch.cat([torch.zeros_like(logits), logits], dim=-1)


def _attribution(module: Module, method: str, settings: Settings, points: Tensor) -> Tensor:
    import torch

    try:
        from captum import attr
    except ImportError as error:
        raise InvalidInput("captum is not installed; install it with: pip install 'vitrail[torch]'") from error

    with torch.no_grad():
        classes = two_or_more(module(points)).argmax(dim=-1)
    points = points.detach().requires_grad_(True)

    def chosen(points: Tensor, classes: Tensor) -> Tensor:
        outputs = two_or_more(module(points))
        outputs = torch.softmax(outputs, dim=-1) if settings.of == "probability" else outputs
        # captum differentiates outputs one by one. Points do not touch each other, so their sum has the same gradients, at
        # a fifth of the time.
        return outputs.gather(-1, classes[:, None]).sum()[None]

    saliency = attr.Saliency(chosen)
    if method == "gradient":
        found = saliency.attribute(points, abs=False, additional_forward_args=classes)
    elif method == "input x gradient":
        found = attr.InputXGradient(chosen).attribute(points, additional_forward_args=classes)
    elif method == "integrated gradients":
        found = attr.IntegratedGradients(chosen).attribute(
            points, settings.baseline, n_steps=settings.steps, method="riemann_middle", internal_batch_size=len(points),
            additional_forward_args=classes,
        )  # fmt: skip
    elif method == "smooth gradient":
        with torch.random.fork_rng(devices=[points.device] if points.is_cuda else []):
            torch.manual_seed(settings.seed)
            found = attr.NoiseTunnel(saliency).attribute(
                points, nt_samples=settings.samples, nt_samples_batch_size=1, stdevs=settings.sigma, abs=False,
                additional_forward_args=classes,
            )  # fmt: skip
    elif method == "guided backpropagation":
        found = _guided(module, lambda: saliency.attribute(points, abs=False, additional_forward_args=classes))
    else:
        found = _relevance(module, points, classes)
    answer: Tensor = found
    return answer


def _is_activation(layer: Module) -> bool:
    return type(layer).__module__ == "torch.nn.modules.activation" and not any(layer.children())


def _guided(module: Module, gradient: Callable[[], Tensor]) -> Tensor:
    """The gradient, with positive signals only let back through activations of every kind: captum's guides through ReLU."""

    def guide(_layer: Module, _entered: object, output: Tensor) -> None:
        if output.requires_grad:
            output.register_hook(lambda signal: signal.clamp(min=0))

    handles = [layer.register_forward_hook(guide) for layer in module.modules() if _is_activation(layer)]
    if not handles:
        raise InvalidInput(
            f"the module is a {type(module).__name__} without activation layers such as torch.nn.ReLU(); guided "
            "backpropagation has nothing to guide through"
        )
    try:
        return gradient()
    finally:
        for handle in handles:
            handle.remove()


def _relevance(module: Module, points: Tensor, classes: Tensor) -> Tensor:
    """Layer-wise relevance from the logit of the predicted class; captum propagates through leaves in a sequence."""
    import torch
    from captum.attr import LRP
    from captum.attr._utils.lrp_rules import EpsilonRule, IdentityRule

    network = torch.nn.Sequential(copy.deepcopy(module))  # rules are written into the layers
    for layer in network.modules():
        if isinstance(layer, torch.nn.Softmax | torch.nn.LogSoftmax):
            raise InvalidInput("the module ends in a softmax; give one that returns logits")
        if any(layer.children()):
            if not isinstance(layer, torch.nn.Sequential):
                raise InvalidInput(f"the module has a {type(layer).__name__}; layer relevance needs a torch.nn.Sequential")
            continue
        if hasattr(layer, "inplace"):
            layer.inplace = False
        if not isinstance(layer, torch.nn.ReLU | torch.nn.Tanh | torch.nn.Dropout):  # captum hands relevance through these
            layer.rule = IdentityRule() if _is_activation(layer) else EpsilonRule(RELEVANCE_EPSILON)
    with torch.no_grad():
        outputs = network(points).shape[-1]
    found: Tensor = LRP(network).attribute(points, target=classes.clamp(max=outputs - 1))
    return found
