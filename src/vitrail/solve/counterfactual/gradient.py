"""Eq. 18 of Yang et al. for models with gradients: from the prototype, in the latent space, with torch.

    minimise over d:  alpha miss(f(x), wanted) + beta |x - query| + gamma |d|,   x = decode(prototype + d)

The paper's coefficients for tables: alpha 1, beta 0.5, gamma 0.1. Its cross-entropy is replaced by a softplus of the margin,
which does not push on beyond the border; who is not over it half-way is pressed harder. The prototype is a release and f is
public, so this is post-processing. What is found is one more candidate; the search settles it on the schema and asks the
model.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...explain.counterfactual.classes import Classes, Indices
from ...model.feeding import feed_of
from ...model.predictors import TorchPredictor
from ...results.class_picture import ClassPicture
from ...schema import FloatArray, Schema
from .codes import Code, NetworkCode

ALPHA, BETA, GAMMA = 1.0, 0.5, 0.1
STEPS = 60
RATE = 0.05
PRESSED = 20.0
"""By how much alpha grows, half-way, for queries that did not get to the wanted class."""


@dataclass(frozen=True)
class Gradients:
    """Torch modules, and which column of each output belongs to the class."""

    modules: tuple[Any, ...]
    columns: tuple[int | None, ...]
    threshold: float
    is_one: bool


def gradients_of(classes: Classes, schema: Schema) -> Gradients | None:
    """The modules behind the models, if all of them are torch modules on features."""
    modules, columns = [], []
    for model in classes.models:
        predictor = model.predictor
        if not isinstance(predictor, TorchPredictor) or feed_of(schema, model.inputs, predictor).kind != "features":
            return None
        modules.append(predictor.module)
        columns.append(model.column)
    return Gradients(tuple(modules), tuple(columns), classes.threshold, classes.is_one_predictor)


def eq18(gradients: Gradients | None, picture: ClassPicture, queries: FloatArray, target: Indices) -> FloatArray | None:
    """A minimum for each query, as raw rows; None for models without gradients."""
    if gradients is None:
        return None
    torch = importlib.import_module("torch")
    parameters = [one for one in gradients.modules[0].parameters() if one.is_floating_point()]
    dtype = parameters[0].dtype if parameters else torch.float32

    def tensor(array: object) -> Any:
        return torch.as_tensor(np.asarray(array), dtype=dtype)

    code, scale = picture.code, picture.scale
    features = tensor(picture.schema.features(queries)[0])
    prototypes = tensor(picture.prototypes[target])
    if isinstance(code, NetworkCode):
        decoder, base, root = tensor(code.output[:-1]), tensor(code.output[-1]), math.sqrt(code.size)
    elif isinstance(code, Code):
        decoder, base, root = tensor(code.decoder), tensor(code.base), 1.0
    wanted = torch.as_tensor(np.asarray(target, dtype=np.int64))
    moved = torch.zeros_like(prototypes, requires_grad=True)
    optimizer = torch.optim.Adam([moved], lr=RATE / scale * 4)

    def decoded() -> Any:
        codes = prototypes + moved
        if isinstance(code, NetworkCode):
            return torch.sigmoid((codes * root).clamp(-1, 1) @ decoder + base)
        return ((base + codes @ decoder if isinstance(code, Code) else codes) * scale).clamp(0, 1)

    alpha = torch.full((len(queries),), ALPHA, dtype=dtype)
    best, found = decoded().detach(), torch.zeros(len(queries), dtype=torch.bool)
    for step in range(2 * STEPS):
        optimizer.zero_grad()
        x = decoded()
        margin = _margin(torch, gradients, x, wanted)
        right = margin.detach() > 0
        # The last point on the right side is kept: later ones are nearer to the query.
        best, found = torch.where(right[:, None], x.detach(), best), found | right
        if step == STEPS:
            if bool(found.all()):
                break
            alpha = torch.where(found, alpha, PRESSED * alpha)
        distance = torch.sqrt(((x - features) ** 2).sum(dim=1) + 1e-12)
        near = torch.sqrt((moved**2).sum(dim=1) + 1e-12) * scale
        loss = (alpha * torch.nn.functional.softplus(-10 * margin) + BETA * distance + GAMMA * near).sum()
        loss.backward()
        optimizer.step()
    return picture.schema.unfeature(best.double().numpy())


def _margin(torch: Any, gradients: Gradients, x: Any, wanted: Any) -> Any:
    """How far the outputs are on the wanted side: over the threshold, or over the other classes' outputs."""
    outputs: list[Any] = []
    once: Any = gradients.modules[0](x) if gradients.is_one else None
    for module, column in zip(gradients.modules, gradients.columns, strict=True):
        result = once if gradients.is_one else module(x)
        outputs.append(result if result.ndim == 1 else result[:, 0 if column is None else column])
    if len(outputs) == 1:
        above = outputs[0] - gradients.threshold
        return torch.where(wanted == 1, above, -above)
    stacked = torch.stack(outputs, dim=1)
    own = stacked.gather(1, wanted[:, None])[:, 0]
    return own - stacked.scatter(1, wanted[:, None], -torch.inf).amax(dim=1)
