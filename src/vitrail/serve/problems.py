"""What a request is refused with: a status, a code for programs, and a sentence of ours for people.

Sentences of the library are about public facts (``nothing_escapes``) and are passed on. Anything else that is raised is
told as "something unexpected went wrong", without its words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..accounting import JsonValue
from ..errors import BudgetExceeded, InvalidInput, LedgerError, Unanswered, VitrailError

UNEXPECTED = "something unexpected went wrong, and is in the service's log by its kind. What was charged stays charged"
NO_LEDGER = (
    "the ledger cannot be used now, so nothing can be charged or looked up; the owner finds of what kind it is in the "
    "service's log. What was charged stays charged, and is not charged again"
)
TITLES: Mapping[str, tuple[int, str]] = {
    "not-signed-in": (401, "Show a token"),
    "budget-exceeded": (402, "Too little is left"),
    "forbidden": (403, "This role may not do that"),
    "not-found": (404, "There is no such thing here"),
    "not-ready": (409, "Not in this state"),
    "too-large": (413, "Too much at once"),
    "invalid": (422, "The request cannot be understood"),
    "too-many-requests": (429, "Too many requests"),
    "unanswered": (500, "The question was not answered"),
    "unexpected": (500, "Something went wrong"),
    "ledger": (503, "The ledger cannot be used"),
    "closing": (503, "The service is ending"),
}
"""Every code, with its status and a title."""


class Problem(VitrailError):
    """A request that is refused.

    Parameters
    ----------
    code : str
        One of ``TITLES``.
    detail : str
        A sentence for people.
    facts : JSON values
        Numbers for programs, such as ``remaining_epsilon``.

    Examples
    --------
    >>> Problem("not-found", "there is no job 'x7'").to_json()["status"]
    404
    """

    def __init__(self, code: str, detail: str, **facts: JsonValue) -> None:
        super().__init__(detail)
        self.code, self.detail, self.facts = code, detail, facts

    @property
    def status(self) -> int:
        """The HTTP status."""
        return TITLES[self.code][0]

    def to_json(self) -> dict[str, JsonValue]:
        """As ``application/problem+json`` writes it."""
        status, title = TITLES[self.code]
        return {"type": f"urn:vitrail:{self.code}", "title": title, "status": status, "detail": self.detail, **self.facts}

    @classmethod
    def of(cls, error: Exception) -> Problem:
        """The problem that an error is: ours with its sentence, others without a word of theirs."""
        if isinstance(error, cls):
            return error
        if isinstance(error, BudgetExceeded):
            numbers = {name: getattr(error, name) for name in ("requested_epsilon", "remaining_epsilon", "cap")}
            finite = {
                name: None if isinstance(one, float) and not math.isfinite(one) else one for name, one in numbers.items()
            }
            return cls("budget-exceeded", str(error), **finite)  # a price may be beyond any epsilon
        if isinstance(error, LedgerError):  # its sentences name files and databases of the owner's
            return cls("ledger", NO_LEDGER)
        for kind, code in ((InvalidInput, "invalid"), (Unanswered, "unanswered")):
            if isinstance(error, kind):
                return cls(code, str(error))
        return cls("unexpected", UNEXPECTED)

    @classmethod
    def from_json(cls, fields: Mapping[str, JsonValue]) -> Problem:
        """What ``to_json`` wrote."""
        code = str(fields["type"]).rpartition(":")[2]
        facts = {name: fields[name] for name in fields if name not in ("type", "title", "status", "detail")}
        return cls(code, str(fields["detail"]), **facts)
