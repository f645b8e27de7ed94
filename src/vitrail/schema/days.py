"""Dates and times as numbers: days since 1970-01-01, in UTC, with a fraction for the time of day.

A date means the same number however it is held: a dtype of dates (NumPy, pandas, Polars, Arrow), an object of Python's, a
text (:func:`of_text`). An instant is a whole number of *ticks* since 1970, so many to a day, and

    days = floor(ticks / per_day) + remainder / per_day:

the floor is exact, the remainder is a whole number below 2^53, and its quotient, rounded once, is the same for every unit in
which the instant can be written. So all forms agree in every bit. Times without a zone are taken as UTC.
"""

from __future__ import annotations

import datetime
import math
import re

import numpy as np
from numpy.typing import NDArray

from .._types import Floats
from ..nothing_escapes import FAILURES

TICKS_A_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6, "ns": 86400 * 10**9}
"""By NumPy's names of units. Finer ones have more than 2^53 ticks to a day, and coarser ones no day."""

_EPOCH = datetime.datetime(1970, 1, 1)
NOT_A_TIME = np.iinfo(np.int64).min


def of_ticks(ticks: int, per_day: int) -> float:
    """The days of one instant.

    Examples
    --------
    >>> of_ticks(36, TICKS_A_DAY["h"]), of_ticks(-1, TICKS_A_DAY["h"])
    (1.5, -0.04166666666666663)
    """
    whole, rest = divmod(ticks, per_day)
    return math.nan if ticks == NOT_A_TIME else float(whole) + rest / per_day


def of_all_ticks(ticks: NDArray[np.int64], per_day: int) -> Floats:
    """The days of many instants, NaN where NumPy has no time."""
    whole, rest = np.divmod(ticks, per_day)
    return np.where(ticks == NOT_A_TIME, np.nan, whole.astype(np.float64) + rest / per_day)


def of_dates(vector: NDArray[np.datetime64]) -> Floats | None:
    """The days of a NumPy array of dates; None for a unit without a whole number of ticks to a day."""
    per_day = _per_day(vector.dtype)
    return None if per_day is None else of_all_ticks(np.ascontiguousarray(vector).view(np.int64), per_day)


def of_object(value: object) -> float:
    """The days of a date or time of Python's, NumPy's or pandas'; NaN for anything else. May raise for an odd one.

    Examples
    --------
    >>> of_object(datetime.date(1970, 1, 2)), of_object(np.datetime64("1970-01-02T12")), of_object("1970-01-02")
    (1.0, 1.5, nan)
    """
    if isinstance(value, np.datetime64):
        per_day = _per_day(value.dtype)
        return math.nan if per_day is None else of_ticks(int(value.astype(np.int64)), per_day)
    if isinstance(value, datetime.datetime):
        if hasattr(value, "asm8"):  # a time of pandas' may have nanoseconds
            return of_object(value.asm8)
        since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or datetime.timedelta())
        return of_ticks(since // datetime.timedelta(microseconds=1), TICKS_A_DAY["us"])
    if isinstance(value, datetime.date):
        return float(value.toordinal() - _EPOCH.toordinal())
    return math.nan


def _per_day(dtype: np.dtype[np.datetime64]) -> int | None:
    unit, step = np.datetime_data(dtype)
    return TICKS_A_DAY.get(unit) if step == 1 else None


_ISO_DATE = re.compile(
    r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})?)?\s*"
)


def of_text(text: str) -> float:
    """The days since 1970-01-01 of a date or time in ISO 8601, in UTC where no zone is given; NaN when the text is none.

    The same bits as for the same instant in a column of dates .

    Examples
    --------
    >>> of_text("1970-01-02"), of_text("1970-01-02T12:00:00Z"), of_text("1970-01-02 12:00+12:00"), of_text("2024-02-30")
    (1.0, 1.5, 1.0, nan)
    """
    found = _ISO_DATE.fullmatch(text)
    if found is None:
        return math.nan
    date, minutes, seconds, fraction, zone = found.groups()
    if fraction is not None and seconds is None:
        return math.nan
    try:
        whole = datetime.datetime.fromisoformat(f"{date}T{minutes or '00:00'}{seconds or ':00'}{zone or 'Z'}")
        offset = whole.utcoffset() or datetime.timedelta()
    except ValueError:
        return math.nan
    since = whole.replace(tzinfo=None) - _EPOCH - offset
    nanoseconds = since // datetime.timedelta(seconds=1) * 10**9 + int((fraction or "0").ljust(9, "0"))
    return of_ticks(nanoseconds, TICKS_A_DAY["ns"])


def days_of(value: object) -> float:
    """The days of a date, a time, or a text that writes one; NaN for anything else. It never raises.

    Examples
    --------
    >>> days_of("1970-01-02"), days_of(b"1970-01-02"), days_of(datetime.date(1970, 1, 3)), days_of("soon"), days_of(7)
    (1.0, 1.0, 2.0, nan, nan)
    """
    try:
        text = value.decode() if isinstance(value, bytes) else value
        return of_text(text) if isinstance(text, str) else of_object(value)
    except FAILURES:
        return math.nan


def date_text(days: float) -> str:
    """The date that so many days after 1970-01-01 is; the number itself where the calendar ends."""
    try:
        return (_EPOCH + datetime.timedelta(days=round(days))).date().isoformat()
    except OverflowError:
        return f"{days:g}"
