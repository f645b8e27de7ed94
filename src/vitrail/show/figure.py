"""A figure that a notebook shows by itself.

matplotlib's own figures are shown by a hook that ``%matplotlib inline`` sets, and by windows. Ours belong to no window, so
they bring their picture along. Imported when something is first drawn, because matplotlib is.
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    r"""A matplotlib figure with its picture for notebooks.

    Examples
    --------
    >>> ShownFigure(figsize=(2, 1))._repr_png_()[:4]
    b'\x89PNG'
    """

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
