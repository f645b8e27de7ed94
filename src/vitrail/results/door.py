"""The one door from results to ``show``: opened when something is first drawn, so that reading a result draws nothing.

No other module of this room imports ``show``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .. import show as show
    from ..guarantee import Bill, Guarantee
else:

    class _Door:
        def __getattr__(self, name: str) -> object:
            return getattr(import_module("vitrail.show"), name)

    show = _Door()


class Drawn:
    """What every result can do with ``show``: a page, and what a notebook shows."""

    if TYPE_CHECKING:

        @property
        def guarantee(self) -> Guarantee:
            """The promise; every result has one."""
            ...

    def to_html(self, path: str | Path | None = None, bill: Bill | None = None, *, title: str | None = None) -> str:
        """One page that stands alone; written to ``path`` if one is given.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it.
        bill : Bill, optional
            ``data.budget.bill()``: the label then states the promise for all that the account has released.
        title : str, optional
            What stands on top.
        """
        html = show.page(self, bill=bill, title=title)
        if path is not None:
            show.write_page(html, path)
        return html

    def _repr_html_(self) -> str:
        return show.fragment(self)
