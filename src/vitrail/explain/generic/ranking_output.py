"""What a ranking explainer may say, and how it becomes scores of the public items.

On public rows what does not fit is an error; in a private group the same error makes the group share all points.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from .curve_output import level_text

Floats = NDArray[np.float64]
MOST_ITEMS = 10_000


@dataclass(frozen=True)
class RankingReader:
    """Reads what a ranker said: a score for each item, of which only the order will count."""

    items: tuple[str, ...]

    def __call__(self, said: object) -> Floats:
        """Scores of the items, higher is better; items that an order leaves out share its last places."""
        said = getattr(said, "importances_mean", said)  # what sklearn's permutation_importance returns
        if isinstance(said, Mapping):
            return self._of_scores(said.keys(), said.values())
        if hasattr(said, "index") and hasattr(said, "to_numpy"):  # a Series
            return self._of_scores(said.index, said.to_numpy())
        listed = np.asarray(said if isinstance(said, np.ndarray) or not isinstance(said, Iterable) else list(said))
        if listed.ndim != 1:
            raise InvalidInput(
                f"the ranker returned an array of shape {listed.shape}; return items in order, or their scores"
            )
        if listed.dtype.kind in "biuf" and len(listed):
            if len(listed) != len(self.items):
                raise InvalidInput(f"the ranker returned {len(listed)} scores for {len(self.items)} items")
            return _finite(listed.astype(np.float64))
        scores = np.zeros(len(self.items))
        named = self._places(listed.tolist())
        scores[named] = np.arange(len(named), 0, -1)
        return scores

    def _of_scores(self, names: Iterable[object], values: Iterable[object]) -> Floats:
        places = self._places(names)
        if len(places) < len(self.items):
            missing = next(item for place, item in enumerate(self.items) if place not in places)
            raise InvalidInput(f"the ranker returned no score for item {missing!r}")
        scores = np.empty(len(self.items))
        try:
            scores[places] = np.asarray(list(values), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput("the ranker returned scores that are no numbers") from error
        return _finite(scores)

    def _places(self, names: Iterable[object]) -> list[int]:
        known = {item: place for place, item in enumerate(self.items)}
        found: list[int] = []
        for name in names:
            place = known.get(level_text(name))
            if place is None:
                raise InvalidInput(f"the ranker named {name!r}, which is not among the items: {', '.join(self.items[:20])}")
            if place in found:
                raise InvalidInput(f"the ranker named {name!r} twice")
            found.append(place)
        return found


def checked_items(items: object) -> tuple[str, ...]:
    """The items to rank, as texts."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise InvalidInput(f"items is {items!r}; give a list of what is ranked")
    listed = tuple(level_text(item) for item in items)
    if not 2 <= len(listed) <= MOST_ITEMS:
        raise InvalidInput(f"items has {len(listed)} entries; a ranking needs 2 to {MOST_ITEMS}")
    if len(set(listed)) < len(listed):
        twice = next(item for item in listed if listed.count(item) > 1)
        raise InvalidInput(f"items names {twice!r} twice; every item must be different")
    return listed


def _finite(numbers: Floats) -> Floats:
    if not np.isfinite(numbers).all():
        raise InvalidInput("the ranker returned NaN or infinity")
    return numbers
