"""One column's part in one explanation."""

from __future__ import annotations

from typing import NamedTuple


class Contribution(NamedTuple):
    """What one column contributed to one prediction.

    Attributes
    ----------
    column : str
        Which.
    value : float
        How much, in units of the model's output.
    lower, upper : float or None
        Ends of its noise band, where there is one.
    shown : str
        What the explained point has there, as text.

    Examples
    --------
    >>> Contribution("age", 0.2, 0.1, 0.3, "39").certain
    True
    """

    column: str
    value: float
    lower: float | None
    upper: float | None
    shown: str

    @property
    def certain(self) -> bool:
        """Whether the noise band excludes zero; without a band nobody knows, and it is False."""
        return self.lower is not None and self.upper is not None and (self.lower > 0 or self.upper < 0)
