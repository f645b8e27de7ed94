"""What can be attacked, behind one small protocol: ``explain(points) -> array (points, width)``.

Any function of that shape is a target. The adapters below make one of torch modules (gradients and their relatives, computed
by captum), of captum, lime and shap explainers, and of everything in Vitrail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from ..errors import InvalidInput
from .attributions import Explained, Settings, ask_module, attributions, two_or_more
from .signals import FloatArray

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


class Explain(Protocol):
    """The protocol: explanations of public points, one row each."""

    def __call__(self, points: object, /) -> FloatArray:
        """Explanations (points, width)."""
        ...


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
    return _method(module, "gradient", Settings(of=of))


def input_x_gradient(module: Module, *, of: Explained = "probability") -> Explain:
    """Each feature times its gradient."""
    return _method(module, "input x gradient", Settings(of=of))


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
    return _method(module, "integrated gradients", Settings(of=of, baseline=baseline, steps=steps))


def smooth_gradient(
    module: Module, *, sigma: float = 0.15, samples: int = 50, of: Explained = "probability", seed: int = 0
) -> Explain:
    """The mean gradient at the point plus Gaussian noise."""
    return _method(module, "smooth gradient", Settings(of=of, sigma=sigma, samples=samples, seed=seed))


def guided_backpropagation(module: Module, *, of: Explained = "probability") -> Explain:
    """Gradients that only let positive signals back through activation layers (``torch.nn.ReLU`` and its like)."""
    return _method(module, "guided backpropagation", Settings(of=of))


def layer_relevance(module: Module) -> Explain:
    """Layer-wise relevance propagation (epsilon rule) from the predicted class's logit; for a ``torch.nn.Sequential``."""
    return _method(module, "layer relevance", Settings())


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

    def look(points: object, /) -> FloatArray:
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

    def look(points: object, /) -> FloatArray:
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

    def look(points: object, /) -> FloatArray:
        return np.asarray(getattr(explainer(points, **options), "values"), dtype=np.float64)  # noqa: B009

    return look


def _method(module: Module, method: str, settings: Settings) -> Explain:
    return lambda points: attributions(module, method, settings, points)
