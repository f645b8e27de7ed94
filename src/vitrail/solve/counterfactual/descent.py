"""Minima of eq. 18 of Yang et al. in the latent space, for models with gradients (torch). Post-processing.

    minimise over d:  alpha miss(f(x), wanted) + beta |x - point| + gamma |d|,   x = decode(prototype + d)

``coefficients`` are alpha, beta and gamma; the paper's for tables are 1, 0.5, 0.1. Its cross-entropy is replaced by a
softplus of the margin, which does not push on beyond the border; alpha grows half-way for points that are not over it. The
prototype is a release and f is public, so this is post-processing. A minimum is one more candidate; the search settles it
on the schema and asks the model.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..._checks import number
from ..._types import Floats, Indices
from ...errors import InvalidInput
from ...model.feeds import feed_of
from ...model.predictors import TorchPredictor
from ...results.class_picture import ClassPicture
from ...schema import Schema
from .classes import Classes
from .codes import AnyCode, IdentityCode, NetworkCode
from .search import Search

Coefficients: TypeAlias = tuple[float, float, float]
"""Alpha, beta and gamma."""
COEFFICIENTS: Coefficients = (1.0, 0.5, 0.1)
"""The paper's, for tables."""
DESCENT_STEPS = 60
RATE = 0.05
# By how much alpha grows, half-way, for points that did not get to the wanted class.
PRESSED = 20.0


@dataclass(frozen=True, eq=False)
class Descent:
    """What goes down the gradient of eq. 18: the torch modules behind the models, and the coefficients."""

    modules: Sequence[Any]
    coefficients: Coefficients = COEFFICIENTS

    @classmethod
    def of(cls, classes: Classes, schema: Schema, given: Coefficients | None) -> Descent | None:
        """None for models without gradients, which have no use for coefficients."""
        modules = torch_modules(classes, schema)
        if given is None:
            return None if modules is None else cls(modules)
        if modules is None:
            raise InvalidInput(
                "coefficients weigh a descent that needs gradients: a torch model on features; leave them out"
            )
        values = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
        if len(values) != 3:
            raise InvalidInput(f"coefficients is {given!r}; give three numbers, (alpha, beta, gamma)")
        alpha, beta, gamma = (number("coefficients", value, low=0, high=1e6) for value in values)
        return cls(modules, (alpha, beta, gamma))


def torch_modules(classes: Classes, schema: Schema) -> list[Any] | None:
    """The modules behind the models; None unless all of them are torch modules on features."""
    for model in classes.models:
        predictor = model.predictor
        if not isinstance(predictor, TorchPredictor) or feed_of(schema, model.inputs, predictor).kind != "features":
            return None
    return [model.predictor.wrapped for model in classes.models]


def _margin(torch: Any, classes: Classes, modules: Sequence[Any], x: Any, wanted: Any) -> Any:
    """How far the outputs are on the wanted side: over the threshold, or over the other classes' outputs."""
    results = [modules[0](x)] * len(modules) if classes.is_one_predictor else [module(x) for module in modules]
    outputs = [
        result if result.ndim == 1 else result[:, model.column or 0]
        for result, model in zip(results, classes.models, strict=True)
    ]
    if len(outputs) == 1:
        above = outputs[0] - classes.threshold
        if classes.highest is not None:
            above = torch.minimum(above, classes.highest - outputs[0])
        return torch.where(wanted == 1, above, -above)
    stacked = torch.stack(outputs, dim=1)
    own = stacked.gather(1, wanted[:, None])[:, 0]
    return own - stacked.scatter(1, wanted[:, None], -torch.inf).amax(dim=1)


def latent_minima(search: Search, descent: Descent, picture: ClassPicture, points: Indices, start: Floats) -> Floats:
    """A minimum of eq. 18 for each of these points, by number, from these codes, as raw rows."""
    torch = importlib.import_module("torch")
    first, beta, gamma = descent.coefficients
    parameters = [weights for weights in descent.modules[0].parameters() if weights.is_floating_point()]
    dtype = parameters[0].dtype if parameters else torch.float32

    def tensor(array: Floats) -> Any:
        return torch.as_tensor(array, dtype=dtype)

    scale, decode = picture.scale, _decoder(torch, picture.code, picture.scale, tensor)
    features, prototypes = tensor(search.features(search.points[points])), tensor(start)
    moved = torch.zeros_like(prototypes, requires_grad=True)
    optimizer = torch.optim.Adam([moved], lr=RATE / scale * 4)
    wanted = torch.as_tensor(np.asarray(search.target[points], dtype=np.int64))
    alpha = torch.full((len(points),), first, dtype=dtype)
    best, reached = decode(prototypes).detach(), torch.zeros(len(points), dtype=torch.bool)
    for step in range(2 * DESCENT_STEPS):
        optimizer.zero_grad()
        x = decode(prototypes + moved)
        margin = _margin(torch, search.classes, descent.modules, x, wanted) - search.margin
        right = margin.detach() > 0
        # The last row on the right side is kept: later ones are nearer to the point.
        best, reached = torch.where(right[:, None], x.detach(), best), reached | right
        if step == DESCENT_STEPS:
            if bool(reached.all()):
                break
            alpha = torch.where(reached, alpha, PRESSED * alpha)
        distance = torch.sqrt(((x - features) ** 2).sum(dim=1) + 1e-12)
        near = torch.sqrt((moved**2).sum(dim=1) + 1e-12) * scale
        loss = (alpha * torch.nn.functional.softplus(-10 * margin) + beta * distance + gamma * near).sum()
        loss.backward()
        optimizer.step()
    return picture.schema.unfeature(best.double().numpy())


def _decoder(torch: Any, code: AnyCode, scale: float, tensor: Callable[[Floats], Any]) -> Callable[[Any], Any]:
    """What makes features in [0, 1] of codes, with gradients."""
    if isinstance(code, NetworkCode):
        weights, bias, root = tensor(code.output[:-1]), tensor(code.output[-1]), math.sqrt(code.size)
        return lambda codes: torch.sigmoid((codes * root).clamp(-1, 1) @ weights + bias)
    if isinstance(code, IdentityCode):
        return lambda codes: (codes * scale).clamp(0, 1)
    decoder, base = tensor(code.decoder), tensor(code.base)
    return lambda codes: ((base + codes @ decoder) * scale).clamp(0, 1)
