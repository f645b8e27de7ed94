"""Eq. 18 of Yang et al. for models with gradients: from the prototype, in the latent space, with torch.

    minimise over d:  alpha miss(f(x), wanted) + beta |x - point| + gamma |d|,   x = decode(prototype + d)

The paper's coefficients for tables: alpha 1, beta 0.5, gamma 0.1. Its cross-entropy is replaced by a softplus of the margin,
which does not push on beyond the border; alpha grows half-way for points that are not over it. The prototype is a release
and f is public, so this is post-processing. A minimum is one more candidate; the search settles it on the schema and asks
the model.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Floats, Indices
from ...model.feeding import feed_of
from ...model.predictors import TorchPredictor
from ...results.class_picture import ClassPicture
from ...schema import Schema
from .autoencoder import AnyCode, NetworkCode
from .classes import Classes
from .codes import IdentityCode

ALPHA, BETA, GAMMA = 1.0, 0.5, 0.1
DESCENT_STEPS = 60
RATE = 0.05
PRESSED = 20.0
"""By how much alpha grows, half-way, for points that did not get to the wanted class."""


@dataclass(frozen=True, eq=False)
class TorchClasses:
    """Classes of torch modules on features."""

    classes: Classes
    modules: tuple[Any, ...]

    @classmethod
    def of(cls, classes: Classes, schema: Schema) -> TorchClasses | None:
        """The modules behind the models; None unless all of them are torch modules on features."""
        modules: list[Any] = []
        for model in classes.models:
            predictor = model.predictor
            if not isinstance(predictor, TorchPredictor) or feed_of(schema, model.inputs, predictor).kind != "features":
                return None
            modules.append(predictor.module)
        return cls(classes, tuple(modules))

    def margin(self, torch: Any, x: Any, wanted: Any) -> Any:
        """How far the outputs are on the wanted side: over the threshold, or over the other classes' outputs."""
        models, is_shared = self.classes.models, self.classes.is_one_predictor
        results = [self.modules[0](x)] * len(models) if is_shared else [module(x) for module in self.modules]
        outputs = [
            result if result.ndim == 1 else result[:, model.column or 0]
            for result, model in zip(results, models, strict=True)
        ]
        if len(outputs) == 1:
            above = outputs[0] - self.classes.threshold
            return torch.where(wanted == 1, above, -above)
        stacked = torch.stack(outputs, dim=1)
        own = stacked.gather(1, wanted[:, None])[:, 0]
        return own - stacked.scatter(1, wanted[:, None], -torch.inf).amax(dim=1)


def latent_minima(classes: TorchClasses, picture: ClassPicture, points: Floats, target: Indices) -> Floats:
    """A minimum of eq. 18 for each point, as raw rows."""
    torch = importlib.import_module("torch")
    parameters = [weights for weights in classes.modules[0].parameters() if weights.is_floating_point()]
    dtype = parameters[0].dtype if parameters else torch.float32

    def tensor(array: Floats) -> Any:
        return torch.as_tensor(array, dtype=dtype)

    scale, decode = picture.scale, _decoder(torch, picture.code, picture.scale, tensor)
    features, prototypes = tensor(picture.schema.features(points)[0]), tensor(picture.prototypes[target])
    moved = torch.zeros_like(prototypes, requires_grad=True)
    optimizer = torch.optim.Adam([moved], lr=RATE / scale * 4)
    wanted = torch.as_tensor(np.asarray(target, dtype=np.int64))
    alpha = torch.full((len(points),), ALPHA, dtype=dtype)
    best, reached = decode(prototypes).detach(), torch.zeros(len(points), dtype=torch.bool)
    for step in range(2 * DESCENT_STEPS):
        optimizer.zero_grad()
        x = decode(prototypes + moved)
        margin = classes.margin(torch, x, wanted)
        right = margin.detach() > 0
        # The last row on the right side is kept: later ones are nearer to the point.
        best, reached = torch.where(right[:, None], x.detach(), best), reached | right
        if step == DESCENT_STEPS:
            if bool(reached.all()):
                break
            alpha = torch.where(reached, alpha, PRESSED * alpha)
        distance = torch.sqrt(((x - features) ** 2).sum(dim=1) + 1e-12)
        near = torch.sqrt((moved**2).sum(dim=1) + 1e-12) * scale
        loss = (alpha * torch.nn.functional.softplus(-10 * margin) + BETA * distance + GAMMA * near).sum()
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
