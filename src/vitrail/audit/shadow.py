"""Many small networks of one architecture, trained at once: shadow models for the price of a few.

Weights of all networks lie in one array (models, inputs, outputs), so that a step is one batched matrix product per layer
instead of one small product per network and layer. Losses are summed over networks, and no weight touches two of them: every
network gets the gradient that it would get alone, and optimisers that work weight by weight (SGD, Adagrad, Adam) take the
same steps. What is saved is overhead, which is nearly everything for small networks on small batches, and the idle width of
a GPU.

Explanations and predictions are computed in double precision: a saturated network's gradients are differences of numbers
close to 1, and an attacker would see rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..progress import progress
from .backpropagation import METHODS, Layer, Settings, explain
from .batched_training import Descent, Weights, descend
from .signals import FloatArray, LabelArray, class_labels

if TYPE_CHECKING:
    from torch import Tensor

IndexArray = NDArray[np.int64]
Optimizer = Literal["adam", "adagrad", "sgd"]

ELEMENTS_AT_ONCE = 2**23
"""Points are explained in pieces of about so many numbers over all networks."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model under attack: what it explains, and what it predicts (class probabilities)."""

    explain: Callable[[object], object]
    predict: Callable[[object], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """How to train fully connected networks, any number at once.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    activation : {"tanh", "relu"}
    epochs, batch_size : int
        Passes over each network's rows, and rows per step.
    optimizer : {"adam", "adagrad", "sgd"}
    learning_rate, learning_rate_decay, weight_decay : float
        ``learning_rate_decay`` is Adagrad's.
    explain : str
        The explanation that ``model(i)`` offers; one of ``vitrail.audit.backpropagation.METHODS``.
    settings : Settings
        Its numbers.
    n_classes : int, optional
        Public; by default read off the labels.
    device : str
        Where torch computes: ``"cpu"``, ``"cuda"``.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> points = generator.normal(size=(200, 5))
    >>> labels = (points[:, 0] > 0).astype(int)
    >>> halves = [generator.permutation(200)[:100] for _ in range(8)]
    >>> trained = Networks(hidden=(8,), epochs=5).fit(points, labels, halves)
    >>> trained.predict(points).shape, trained.explain(points, "gradient").shape
    ((8, 200, 2), (8, 200, 5))
    """

    hidden: tuple[int, ...] = (64,)
    activation: Literal["tanh", "relu"] = "tanh"
    epochs: int = 20
    batch_size: int = 32
    optimizer: Optimizer = "adam"
    learning_rate: float = 1e-3
    learning_rate_decay: float = 0.0
    weight_decay: float = 0.0
    explain: str = "gradient"
    settings: Settings = field(default_factory=Settings)
    n_classes: int | None = None
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.activation not in ("tanh", "relu"):
            raise InvalidInput(f"activation is {self.activation!r}; choose 'tanh' or 'relu'")
        if self.optimizer not in ("adam", "adagrad", "sgd"):
            raise InvalidInput(f"optimizer is {self.optimizer!r}; choose 'adam', 'adagrad' or 'sgd'")
        if self.explain not in METHODS:
            raise InvalidInput(f"explain is {self.explain!r}; choose one of {', '.join(map(repr, METHODS))}")
        if min((*self.hidden, self.epochs, self.batch_size), default=1) < 1:
            raise InvalidInput("widths, epochs and batch_size must be at least 1")

    def fit(self, points: object, labels: object, chosen: Sequence[IndexArray], *, weights: object = None) -> Trained:
        """Train one network on each choice of rows; choices must be equally large.

        Parameters
        ----------
        points : array (rows, features)
        labels : array (rows,) of class numbers
        chosen : sequence of index arrays
            Which rows each network is trained on.
        weights : array (rows,), optional
            How much each row counts.
        """
        import torch

        x = np.asarray(points, dtype=np.float32).reshape(len(np.asarray(points)), -1)
        y = class_labels(labels, len(x), "the shadow models' rows")
        sizes = {len(rows) for rows in chosen}
        if len(sizes) != 1 or sizes == {0}:
            raise InvalidInput(
                f"the networks' rows are {len(chosen)} sets of {min(sizes, default=0)} to {max(sizes, default=0)} rows; "
                "they must "
                "be equally large, so that all networks take the same steps"
            )
        index = torch.as_tensor(np.stack([np.asarray(rows, dtype=np.int64) for rows in chosen]), device=self.device)
        n_classes = self.n_classes or int(y.max()) + 1
        generator = torch.Generator(device=self.device).manual_seed(self.seed)
        weighted = Weights.glorot(len(chosen), (x.shape[1], *self.hidden, n_classes), self.device, generator)
        places, classes = torch.as_tensor(x, device=self.device), torch.as_tensor(y, device=self.device)
        counts = None if weights is None else torch.as_tensor(np.asarray(weights, dtype=np.float32), device=self.device)
        with progress("training shadow models", self.epochs) as advance:
            descend(weighted, places, classes, counts, index, self._descent(), generator, advance)
        return Trained(tuple(one.double() for one in weighted.matrices), self)

    def train_many(self, points: object, labels: object, chosen: Sequence[IndexArray]) -> list[Target]:
        """What ``vitrail.audit.membership`` asks of its ``shadow=``."""
        trained = self.fit(points, labels, chosen)
        return [trained.model(place) for place in range(len(chosen))]

    def explaining(self, method: str) -> Networks:
        """The same networks with another explanation."""
        return replace(self, explain=method)

    def _descent(self) -> Descent:
        return Descent(
            self.optimizer,
            self.activation,
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.learning_rate_decay,
            self.weight_decay,
        )


@dataclass(frozen=True, slots=True)
class Trained:
    """Networks that ``Networks.fit`` trained: ``matrices`` are W1, b1, W2, b2, ..., each (models, ., .), in doubles."""

    matrices: tuple[Tensor, ...]
    recipe: Networks

    def __len__(self) -> int:
        return int(self.matrices[0].shape[0])

    def layers(self) -> list[Layer]:
        """The steps of all networks at once, for points (models, people, features)."""
        import torch

        activate = torch.tanh if self.recipe.activation == "tanh" else torch.relu
        found = []
        for place in range(0, len(self.matrices), 2):
            weight, bias = self.matrices[place], self.matrices[place + 1]
            found.append(Layer(_affine(weight, bias), linear=True))
            if place + 2 < len(self.matrices):
                found.append(Layer(activate, linear=False))
        return found

    def forward(self, points: Tensor) -> Tensor:
        """Logits (models, people, classes) of points (models, people, features)."""
        value = points
        for layer in self.layers():
            value = layer.apply(value)
        return value

    def predict(self, points: object) -> FloatArray:
        """Class probabilities (models, people, classes)."""
        import torch

        def probabilities(some: Tensor) -> Tensor:
            with torch.no_grad():
                return torch.softmax(self.forward(some), dim=-1)

        return self._in_pieces(points, probabilities)

    def explain(self, points: object, method: str | None = None) -> FloatArray:
        """Explanations (models, people, features)."""
        chosen = self.recipe.explain if method is None else method
        return self._in_pieces(points, lambda some: explain(chosen, self.forward, some, self.recipe.settings, self.layers))

    def accuracy(self, points: object, labels: object) -> FloatArray:
        """The share of rows that each network classifies rightly."""
        found = self.predict(points).argmax(axis=2) == np.asarray(labels)[None, :]
        return np.asarray(found.mean(axis=1), dtype=np.float64)

    def only(self, place: int) -> Trained:
        """One of the networks."""
        return Trained(tuple(one[place : place + 1] for one in self.matrices), self.recipe)

    def model(self, place: int) -> Target:
        """One of the networks as a target of attacks."""
        one = self.only(place)
        return Target(lambda points: one.explain(points)[0], lambda points: one.predict(points)[0])

    def _in_pieces(self, points: object, look: Callable[[Tensor], Tensor]) -> FloatArray:
        import torch

        rows = np.asarray(points, dtype=np.float64).reshape(len(np.asarray(points)), -1)
        piece = max(1, ELEMENTS_AT_ONCE // max(1, len(self) * rows.shape[1]))
        found = []
        for start in range(0, len(rows), piece):
            some = torch.as_tensor(rows[start : start + piece], device=self.recipe.device)
            found.append(look(some.expand(len(self), *some.shape)).cpu().numpy())
        return np.concatenate(found, axis=1)


def _affine(weight: Tensor, bias: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda value: value @ weight + bias


def halves(models: int, rows: int, size: int, seed: int) -> tuple[list[IndexArray], NDArray[np.bool_]]:
    """Random choices of ``size`` rows, paired so that every row is in as many as it is out of; and who is in which.

    With ``size`` half of the rows, models come in pairs that take complementary halves.
    """
    generator = np.random.default_rng(seed)
    chosen: list[IndexArray] = []
    while len(chosen) < models:
        order = generator.permutation(rows)
        chosen.append(np.sort(order[:size]))
        if 2 * size <= rows and len(chosen) < models:
            chosen.append(np.sort(order[-size:]))
    inside = np.zeros((models, rows), dtype=np.bool_)
    for place, some in enumerate(chosen):
        inside[place, some] = True
    return chosen, inside


def as_targets(shadow: object, points: FloatArray, labels: LabelArray, chosen: Sequence[IndexArray]) -> list[Target]:
    """Shadow models by whatever ``shadow=`` is: something that trains many at once, or a function that trains one."""
    many = getattr(shadow, "train_many", None)
    if many is not None:
        found: list[Target] = list(many(points, labels, chosen))
        return found
    if not callable(shadow):
        raise InvalidInput(
            f"shadow is {type(shadow).__name__}; give a function train(points, labels) -> (explain, predict), or "
            "vitrail.audit.shadow.Networks(...)"
        )
    found = []
    with progress("training shadow models", len(chosen)) as advance:
        for rows in chosen:
            found.append(_target(shadow(points[rows], labels[rows])))
            advance(1)
    return found


def _target(made: object) -> Target:
    if isinstance(made, tuple | list) and len(made) == 2:
        explain_one, predict_one = made
    else:
        explain_one, predict_one = getattr(made, "explain", None), getattr(made, "predict", None)
    if not (callable(explain_one) and callable(predict_one)):
        raise InvalidInput(
            f"shadow returned {type(made).__name__}; it must return a pair (explain, predict) of functions of points, or an "
            "object that has both"
        )
    return Target(explain_one, predict_one)
