"""Whether a service lives, and whether it can answer: two questions that anybody may ask, so the answers tell little.

Each returns the fields of a JSON answer and an HTTP status. What fails is named by our words; an error's own stay here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ...accounting import JsonValue
from ...errors import VitrailError
from .migrate import head, revision

if TYPE_CHECKING:
    from ...ledger import SqlLedger


class Serving(Protocol):
    """What is asked of a service."""

    @property
    def ledger(self) -> SqlLedger:
        """Where the bill is kept."""
        ...

    @property
    def ready(self) -> bool:
        """Whether every lane works."""
        ...


def healthz() -> tuple[dict[str, JsonValue], int]:
    """The process lives, and answers.

    Examples
    --------
    >>> healthz()
    ({'status': 'ok'}, 200)
    """
    return {"status": "ok"}, 200


def readyz(service: Serving) -> tuple[dict[str, JsonValue], int]:
    """Questions would be answered: the ledger answers, its tables are this version's, every lane works.

    Returns
    -------
    fields, status
        ``checks`` is true or false for each; the status is 200 or 503, and a proxy sends requests elsewhere meanwhile.
    """
    checks: dict[str, JsonValue] = {"ledger": False, "tables": False, "lanes": service.ready}
    try:
        checks["tables"] = revision(service.ledger.database) == head()
        checks["ledger"] = True
    except VitrailError:
        pass  # the database is away: both stay false
    ready = all(checks.values())
    return {"status": "ready" if ready else "not ready", "checks": checks}, 200 if ready else 503
