"""What can be attacked, behind one small protocol: ``explain(points) -> array (points, width)``.

Any function of that shape is a target. The adapters below make one of torch modules, of captum, lime and shap explainers,
and of everything in Vitrail. Explanations of torch modules are computed by captum, for the class that the module predicts:

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
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from .. import _checks
from .._types import Floats
from ..errors import InvalidInput

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Explained = Literal["probability", "logit"]
Output: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"

RELEVANCE_EPSILON = 1e-6
POINTS_AT_ONCE = 1024


# Explanations of public points: ``explain(points) -> array (points, width)``; and what makes one of a torch module.
Explain: TypeAlias = Callable[..., Floats]
Adapter: TypeAlias = "Callable[[Module], Explain]"


@dataclass(frozen=True, slots=True)
class Target:
    """What is under attack.

    Parameters
    ----------
    explain : callable
        ``explain(points) -> array (points, width)``, or anything with such an array as ``.values``. The
        adapters below make one.
    predict : callable, optional
        ``predict(points)`` gives class probabilities (points, classes), or (points,) for two classes.
    counterfactuals : callable, optional
        ``counterfactuals(points) -> array (points, features)``, NaN where none was found.
    name : str
        For reports.
    """

    explain: Callable[..., object]
    predict: Callable[..., object] | None = None
    counterfactuals: Callable[..., object] | None = None
    name: str = "explainer"


def predictions(module: Module) -> Explain:
    """Class probabilities of a torch module that returns logits.

    Examples
    --------
    >>> import numpy as np, torch
    >>> predict = predictions(torch.nn.Linear(3, 2))
    >>> predict(np.zeros((4, 3))).sum(axis=1).round(6).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def look(points: Tensor) -> Tensor:
        import torch

        with torch.no_grad():
            return torch.softmax(two_or_more(module(points).double()), dim=-1)

    return lambda points: ask_module(module, look, points)


def gradient(module: Module, *, of: Explained = "probability") -> Explain:
    """The gradient of the predicted class's probability (or logit).

    Parameters
    ----------
    module : torch.nn.Module
        Maps points to logits. It is switched to evaluation while it is asked.

    Examples
    --------
    >>> import numpy as np, torch
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.eye(2))
    >>> gradient(layer, of="logit")(np.array([[3.0, 1.0], [0.0, 2.0]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return _explaining(module, of, _gradient)


def input_x_gradient(module: Module, *, of: Explained = "probability") -> Explain:
    """Each feature times its gradient."""

    def look(output: Output, points: Tensor, classes: Tensor) -> Tensor:
        return _captum().InputXGradient(output).attribute(points, additional_forward_args=classes)

    return _explaining(module, of, look)


def integrated_gradients(
    module: Module, *, baseline: float = 0.0, steps: int = 32, of: Explained = "probability"
) -> Explain:
    """Gradients averaged along the straight path from the baseline to the point, times the way.

    Contributions add up to the output at the point minus that at the baseline.

    Examples
    --------
    >>> import numpy as np, torch
    >>> _ = torch.manual_seed(0)
    >>> module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    >>> x = np.array([[1.0, -2.0, 0.5]])
    >>> chosen = predictions(module)(x)[0].argmax()
    >>> gap = predictions(module)(x)[0, chosen] - predictions(module)(0 * x)[0, chosen]
    >>> bool(abs(integrated_gradients(module)(x).sum() - gap) < 1e-3)
    True
    """
    _checks.whole("steps", steps)

    def look(output: Output, points: Tensor, classes: Tensor) -> Tensor:
        path = {"n_steps": steps, "method": "riemann_middle", "internal_batch_size": len(points)}
        return _captum().IntegratedGradients(output).attribute(points, baseline, additional_forward_args=classes, **path)

    return _explaining(module, of, look)


def smooth_gradient(
    module: Module, *, sigma: float = 0.15, samples: int = 50, of: Explained = "probability", seed: int = 0
) -> Explain:
    """The mean gradient at the point plus Gaussian noise."""
    _checks.whole("samples", samples)
    _checks.number("sigma", sigma, low=0.0, high=1e100)

    def look(output: Output, points: Tensor, classes: Tensor) -> Tensor:
        import torch

        tunnel = _captum().NoiseTunnel(_captum().Saliency(output))
        noise = {"nt_samples": samples, "nt_samples_batch_size": 1, "stdevs": sigma}
        with torch.random.fork_rng(devices=[points.device] if points.is_cuda else []):
            torch.manual_seed(seed)
            return tunnel.attribute(points, abs=False, additional_forward_args=classes, **noise)

    return _explaining(module, of, look)


def guided_backpropagation(module: Module, *, of: Explained = "probability") -> Explain:
    """Gradients that only let positive signals back through activation layers (``torch.nn.ReLU`` and its like)."""
    return _explaining(module, of, lambda *asked: _guided(module, lambda: _gradient(*asked)))


def layer_relevance(module: Module) -> Explain:
    """Layer-wise relevance propagation (epsilon rule) from the predicted class's logit; for a ``torch.nn.Sequential``."""
    return _explaining(module, "logit", lambda _, points, classes: _relevance(module, points, classes))


def captum(attribution: object, **options: object) -> Explain:
    """A captum attribution object, for the class that its model predicts.

    ``captum(captum.attr.Saliency(module), abs=False)``; options go to its ``attribute``, ``target=`` for another class among
    them. What is explained is what the module returns; the functions above explain probabilities unless told ``of="logit"``,
    take a single output for the logit of the second of two classes, and guide through activations of every kind.
    """
    module, attribute = getattr(attribution, "forward_func", None), getattr(attribution, "attribute", None)
    if not callable(attribute) or not callable(getattr(module, "parameters", None)):
        raise InvalidInput(
            f"attribution is {type(attribution).__name__}; give an attribution of captum.attr, made for a torch.nn.Module"
        )
    network = cast("Module", module)

    def look(points: Tensor) -> Tensor:
        import torch

        chosen = dict(options)
        if "target" not in chosen:
            with torch.no_grad():
                outputs = network(points)
            # One number per point: nothing to choose.
            chosen["target"] = outputs.argmax(dim=-1) if outputs.ndim > 1 else None
        answer = attribute(points.requires_grad_(True), **chosen)
        if not isinstance(answer, torch.Tensor):
            raise InvalidInput(
                f"{type(attribution).__name__} returned a {type(answer).__name__}; leave out options such as "
                "return_convergence_delta, so that it returns attributions alone"
            )
        return answer

    return lambda points: ask_module(network, look, points)


def lime(explainer: object, predict: Callable[..., object], *, width: int, **options: object) -> Explain:
    """A ``lime.lime_tabular.LimeTabularExplainer`` with its model's probabilities; weights of the predicted class."""
    ask = getattr(explainer, "explain_instance", None)
    if not callable(ask):
        raise InvalidInput(f"explainer is {type(explainer).__name__}; give a LimeTabularExplainer")
    options.setdefault("num_features", width)

    def look(points: object) -> Floats:
        rows = np.asarray(points, dtype=np.float64)
        vectors = np.zeros((len(rows), width))
        for vector, row in zip(vectors, rows, strict=True):
            (weights,) = ask(row, predict, top_labels=1, **options).as_map().values()
            for column, weight in weights:
                vector[column] = weight
        return vectors

    return look


def shap(explainer: Callable[..., object]) -> Explain:
    """A shap explainer; of several outputs, that which is largest in base value plus contributions.

    Examples
    --------
    >>> import numpy as np
    >>> class Answer:
    ...     values, base_values = np.array([[[1.0, 5.0], [2.0, 7.0]]]), np.array([[0.0, 0.1]])
    >>> shap(lambda points: Answer())(np.zeros((1, 2))).tolist()
    [[5.0, 7.0]]
    """

    def look(points: object) -> Floats:
        answer = explainer(points)
        values = np.asarray(getattr(answer, "values", answer), dtype=np.float64)
        if values.ndim == 3:
            outputs = values.sum(axis=1) + np.asarray(getattr(answer, "base_values", 0.0))
            values = values[np.arange(len(values)), :, outputs.argmax(axis=1)]
        return values

    return look


def vitrail(explainer: Callable[..., object], **options: object) -> Explain:
    """A Vitrail explainer (``vt.LocalLinear(...).fit(...)``, ``vt.Shapley``, a pane); options such as ``epsilon=`` go to it.

    Examples
    --------
    >>> import numpy as np
    >>> class Attribution:
    ...     values = np.ones((2, 3))
    >>> vitrail(lambda points, epsilon: Attribution(), epsilon=0.1)(np.zeros((2, 3))).shape
    (2, 3)
    """
    return shap(lambda points: explainer(points, **options))


# Backpropagation, by captum


def ask_module(module: Module, look: Callable[[Tensor], Tensor], points: object) -> Floats:
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


def _explaining(module: Module, of: Explained, look: Callable[[Output, Tensor, Tensor], Tensor]) -> Explain:
    """Explanations of the class that the module predicts at each point; ``look`` asks captum about its output."""
    _checks.choice("of", of, ("probability", "logit"))

    def output(points: Tensor, classes: Tensor) -> Tensor:
        logits = two_or_more(module(points))
        outputs = logits.softmax(dim=-1) if of == "probability" else logits
        # captum differentiates outputs one by one. Points do not touch each other, so their sum has the same gradients, at
        # a fifth of the time.
        return outputs.gather(-1, classes[:, None]).sum()[None]

    def explain(points: Tensor) -> Tensor:
        import torch

        with torch.no_grad():
            classes = two_or_more(module(points)).argmax(dim=-1)
        return look(output, points.detach().requires_grad_(True), classes)

    return lambda points: ask_module(module, explain, points)


def _captum() -> Any:
    try:
        from captum import attr
    except ImportError as error:
        raise InvalidInput("captum is not installed; install it with: pip install 'vitrail[torch]'") from error
    return attr


def _gradient(output: Output, points: Tensor, classes: Tensor) -> Tensor:
    return cast("Tensor", _captum().Saliency(output).attribute(points, abs=False, additional_forward_args=classes))


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
    relevance: Tensor = LRP(network).attribute(points, target=classes.clamp(max=outputs - 1))
    return relevance
