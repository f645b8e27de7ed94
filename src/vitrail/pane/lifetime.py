"""How long a pane is meant to be used, and what its owner calls it: facts of the manifest that are part of no question.

Version, day of expiry and the words of pages are declared by the owner. They are public, nothing is asked of rows for them,
and so changing them costs nothing. A pane that is past its day still opens: what it holds was paid for and is as true of its
rows as before. It warns, because the rows behind it may not be those of today.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Protocol, TypeAlias

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results.archive import json_bytes, parsed_json

DEFAULT_VERSION = "1"
MOST_VERSION = 100
MOST_PAGE_BYTES = 64_000
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class WritesJson(Protocol):
    """An object that writes itself as a JSON object."""

    def to_json(self) -> Mapping[str, JsonValue]:
        """Its fields."""


Words: TypeAlias = Mapping[str, JsonValue] | None
WordsGiven: TypeAlias = Mapping[str, JsonValue] | WritesJson | None


def today() -> date:
    """The day, in UTC. The one place where panes ask for it: tests set it here."""
    return datetime.now(UTC).date()


def checked_version(version: object) -> str:
    """The owner's name for a pane among others of the same data: one line of text."""
    if not isinstance(version, str) or not version.strip() or len(version) > MOST_VERSION or not version.isprintable():
        raise InvalidInput(
            f"version is {str(version)[:60]!r}; it must be one line of at most {MOST_VERSION} letters, such as '2026-Q4'"
        )
    return version


def checked_day(day: object) -> str:
    """A day that there is, as YYYY-MM-DD; given like that, or as a ``datetime.date``.

    Examples
    --------
    >>> checked_day(date(2027, 6, 30)), checked_day("2027-06-30")
    ('2027-06-30', '2027-06-30')
    >>> checked_day("2027-06-31")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: expires is '2027-06-31'; it must be a day, written as in 2027-06-30
    """
    if isinstance(day, date) and not isinstance(day, datetime):
        return day.isoformat()
    if isinstance(day, str) and _DAY.fullmatch(day):
        try:
            return date.fromisoformat(day).isoformat()
        except ValueError:
            pass
    raise InvalidInput(f"expires is {str(day)[:60]!r}; it must be a day, written as in 2027-06-30")


def checked_expiry(expires: object) -> str | None:
    """The last day that a new pane is meant to be used: today at the earliest, or None for no such day."""
    if expires is None:
        return None
    day = checked_day(expires)
    if is_over(day):
        raise InvalidInput(
            f"expires is {day}, and today is {today().isoformat()} (UTC); give a day that is still to come, or leave it out"
        )
    return day


def is_over(expires: str | None) -> bool:
    """Whether that day has passed."""
    return expires is not None and date.fromisoformat(expires) < today()


def in_words(day: str) -> str:
    """A day as people write it.

    Examples
    --------
    >>> in_words("2027-06-30")
    '30 June 2027'
    """
    when = date.fromisoformat(day)
    return f"{when.day} {_MONTHS[when.month - 1]} {when.year}"


# Not strftime: that follows the locale of whoever reads.
_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905


def expiry_sentence(expires: str | None, version: str) -> str:
    """What pages say first of a pane whose day has passed; empty before that day, and where there is none."""
    if expires is None or not is_over(expires):
        return ""
    return (
        f"This pane was meant to be used until {in_words(expires)}, and that day has passed. It is version {version}: ask "
        "its owner whether there is a newer one. What it says of the rows that it was made from holds as before."
    )


def checked_page(page: object) -> Words:
    """The owner's words as the manifest holds them: a mapping, or an object that writes itself as one (``to_json``)."""
    if page is None:
        return None
    to_json = getattr(page, "to_json", None)
    given = to_json() if callable(to_json) else page
    if not isinstance(given, Mapping):
        raise InvalidInput(f"page is {type(page).__name__}; it must be a mapping of words, or have to_json()")
    try:
        content = json_bytes(given)
        plain = parsed_json(content, "page")
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"page holds what JSON cannot: {str(error)[:200]}; give texts, numbers, lists and objects"
        ) from error
    if len(content) > MOST_PAGE_BYTES:
        raise InvalidInput(f"page has {len(content)} bytes as JSON, and a pane holds at most {MOST_PAGE_BYTES}; shorten it")
    assert isinstance(plain, dict)
    return MappingProxyType(plain)
