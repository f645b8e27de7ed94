"""The pictures of a trained model: its maps, and what it saw in one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..show import filters_figure, map_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .locally_linear import LocallyLinearClassifier


@dataclass(frozen=True, slots=True)
class MapPlots:
    """Reach it as ``clf.plot``."""

    model: LocallyLinearClassifier

    def filters(self, shape: tuple[int, int] | None = None, *, top: int = 6, X_public: object = None) -> Figure:
        """The maps of every class: as pictures of this shape, or as bars over the features.

        Parameters
        ----------
        shape : (int, int), optional
            Height and width of a picture.
        top : int
            How many maps of a class: the most used by ``X_public``, or the longest.
        X_public : rows, optional
            Public rows that weigh the maps.
        """
        bank = self.model.explain_global(X_public)
        shown = [(label, bank.order(label)[:top]) for label in bank.classes]
        maps = [[bank.maps[j, place] for j in order] for place, (_, order) in enumerate(shown)]
        weights = (
            None
            if bank.usage is None
            else [[float(bank.usage[j, place]) for j in order] for place, (_, order) in enumerate(shown)]
        )
        return filters_figure(
            maps,
            [str(label) for label, _ in shown],
            bank.features,
            shape=shape,
            weights=weights,
            footer=bank.guarantee.sentence,
        )

    def attribution(self, x: object, shape: tuple[int, int] | None = None, *, target: object = None, top: int = 3) -> Figure:
        """One input, its heaviest maps, their weighted average, and what each pixel or column contributed."""
        model = self.model
        told = model.explain_local(x, target=target)
        active = model.active_maps(x, target=target, top=top)[0]
        place = int(np.flatnonzero(model.classes_ == active[0].label)[0])
        if shape is None and model.filters is not None:
            shape = model.filters.shape
        return map_figure(
            told,
            [model.maps_[one.number, place] for one in active],
            [one.weight for one in active],
            str(active[0].label),
            shape=shape,
            footer=model.guarantee_.sentence,
        )
