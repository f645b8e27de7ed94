"""Numbers and names as texts, and tables of them: what pictures, pages and terminals share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Table:
    """Texts in rows under a header.

    Parameters
    ----------
    header : tuple of str
        Names of the columns.
    rows : tuple of tuple of str
        The cells.
    numeric : tuple of int
        Indices of columns set to the right.
    marked : frozenset of (int, int)
        Row and column indices of cells that stand out.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()
    marked: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise InvalidInput(f"a row of the table has {len(row)} cells; its header has {len(self.header)}")


def shortened(text: str, most: int) -> str:
    """The text, cut in the middle where it is too long: ends of level names tell them apart as often as beginnings do.

    Examples
    --------
    >>> shortened("Married, spouse absent", 12)
    'Married…sent'
    """
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


def aligned_numbers(numbers: Iterable[float], sign: str = "") -> list[str]:
    """Numbers that stand beside each other, all with as many decimals as the largest needs for three digits.

    Examples
    --------
    >>> aligned_numbers([0.24, -0.00117, 0.0188]), aligned_numbers([15234.2, 3.0])
    (['0.240', '-0.001', '0.019'], ['15,234', '3'])
    """
    numbers = [float(number) for number in numbers]
    largest = max((abs(number) for number in numbers), default=0.0)
    if largest and not 1e-4 <= largest < 1e7:
        return [number_text(number, sign) for number in numbers]
    decimals = min(6, max(0, 2 - math.floor(math.log10(largest)))) if largest else 0
    # Adding zero turns what was rounded to minus zero into zero.
    return [f"{round(number, decimals) + 0.0:{sign},.{decimals}f}" for number in numbers]


def number_text(value: float, sign: str = "") -> str:
    """A number in about three digits; ``sign="+"`` writes the plus.

    Examples
    --------
    >>> number_text(0.12345), number_text(999.9), number_text(51234.5), number_text(2e-9), number_text(0.5, "+")
    ('0.123', '1,000', '51,234', '2.00e-09', '+0.5')
    """
    size = abs(value)
    if size and not 1e-4 <= size < 1e7:
        return f"{value:{sign}.2e}"
    return f"{value:{sign},.0f}" if size >= 999.5 else f"{value:{sign}.3g}"


def tick_text(value: float) -> str:
    """A tick label that stays short: 1500, 12k, 2.5M.

    Examples
    --------
    >>> tick_text(1500), tick_text(12000), tick_text(2500000), tick_text(0.25), tick_text(0)
    ('1500', '12k', '2.5M', '0.25', '0')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / min(size, 1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{value:.4g}"


def half_widths(lower: Iterable[float], upper: Iterable[float]) -> list[str]:
    """Half the width of each band, behind a plus-minus sign."""
    return [f"± {(high - low) / 2:.2g}" for low, high in zip(lower, upper, strict=True)]


def per_cent(probability: float) -> str:
    """A probability as a whole per cent that does not claim certainty.

    Examples
    --------
    >>> per_cent(0.53), per_cent(0.9999)
    ('53 %', '>99 %')
    """
    return ">99 %" if probability > 0.995 else f"{100 * probability:.0f} %"
