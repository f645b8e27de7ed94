"""A view: public columns made from a row, by which an explanation speaks while the model sees the whole row.

A model of pictures needs every pixel; people understand patches. A view turns the features of a row into fewer, or shorter,
features of its own, each in [0, 1], and states a bound on their length. Whatever it does is public and fixed before any
private row is seen, and it depends on its row alone, bit for bit: elementwise operations only, no matrix products. The vault
clips what exceeds the stated bound, so a view that broke it would cost accuracy and never privacy.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from .layout import FloatArray
from .schema import Schema


@runtime_checkable
class View(Protocol):
    """What an explainer needs to know of a view; :class:`Picture` and :class:`BagOfWords` are views."""

    def schema(self) -> Schema:
        """The columns of the rows it looks at; all of them are numbers."""
        ...

    def view_schema(self) -> Schema:
        """The columns that it shows, all of them numbers; an explanation names these."""
        ...

    @property
    def largest_norm(self) -> float:
        """Bound on the length of a row of shown features."""
        ...

    def look(self, features: FloatArray) -> FloatArray:
        """Shown features in [0, 1], (rows, view columns), of features (rows, columns)."""
        ...

    @property
    def note(self) -> str:
        """A sentence for the reader of an explanation."""
        ...

    def digest(self) -> str:
        """A hash of everything that decides what it shows."""
        ...
