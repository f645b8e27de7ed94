"""Asking an example-based explainer: what to ask next, and what was shown so far."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import InvalidInput
from .signals import FloatArray

SMALLEST_NEW_DIRECTION = 1e-8


class Asker:
    """Asks, and remembers what was shown."""

    def __init__(self, explainer: Callable[..., object], dimension: int) -> None:
        self._explainer, self._dimension = explainer, dimension
        self.found: dict[bytes, FloatArray] = {}
        self.counts: list[int] = []
        self.shown = 0

    def ask(self, point: FloatArray) -> list[FloatArray]:
        """Ask about one point; the rows that were not seen before."""
        answer = np.asarray(self._explainer(point[None, :]), dtype=np.float64)
        if answer.ndim == 2:
            answer = answer[:, None, :]
        if answer.ndim != 3 or len(answer) != 1 or answer.shape[2] != self._dimension:
            raise InvalidInput(
                f"example_explainer returned shape {answer.shape} for one point; it must return (points, k, "
                f"{self._dimension})"
            )
        if not np.isfinite(answer).all():
            raise InvalidInput("example_explainer returned NaN or infinity; it must return training rows")
        self.shown = answer.shape[1]
        new = []
        for row in answer[0]:
            key = (row + 0.0).tobytes()  # + 0.0: one zero, not two
            if key not in self.found:
                self.found[key] = row
                new.append(row)
        self.counts.append(len(self.found))
        return new


class Span:
    """An orthonormal basis of what was seen, grown row by row."""

    def __init__(self, dimension: int, most: int) -> None:
        self._basis = np.zeros((min(dimension, most), dimension))
        self.size = 0

    def outside(self, vector: FloatArray) -> FloatArray:
        """The part of a vector outside the span; projected twice, against rounding."""
        basis = self._basis[: self.size]
        for _ in range(2):
            vector = vector - (basis @ vector) @ basis
        return vector

    def add(self, vector: FloatArray) -> None:
        """Make the span hold one more vector."""
        rest = self.outside(vector)
        length = float(np.linalg.norm(rest))
        if length > SMALLEST_NEW_DIRECTION * max(float(np.linalg.norm(vector)), 1e-300) and self.size < len(self._basis):
            self._basis[self.size] = rest / length
            self.size += 1


def ask_by(
    strategy: str,
    asker: Asker,
    queries: int,
    metric: FloatArray | None,
    domain: tuple[FloatArray, FloatArray],
    generator: np.random.Generator,
    advance: Callable[[int], None],
) -> None:
    """Ask by one strategy until its queries are used up, or nothing is left to ask."""
    dimension = len(domain[0])
    if strategy in ("random", "walk"):
        waiting: list[FloatArray] = []
        for _ in range(queries):
            point = waiting.pop(0) if waiting else generator.uniform(*domain)
            new = asker.ask(point)
            if strategy == "walk":
                waiting += new
            advance(1)
        return
    span = Span(dimension, dimension)
    scale = float(np.linalg.norm(domain[1] - domain[0])) / 2
    for _ in range(queries):
        point = span.outside(generator.normal(size=dimension))
        length = float(np.linalg.norm(point))
        if span.size >= dimension or length < SMALLEST_NEW_DIRECTION:
            return  # everything that can be asked about was seen
        new = asker.ask(point * (scale / length))
        for row in new:
            span.add(row if strategy == "orthogonal" or metric is None else metric @ row)
        advance(1)
        if not new and strategy == "H-orthogonal":
            return  # what is left has no influence outside the span: nothing more can be shown
