"""Which role may call which route: one table, that the application is checked against when it is made.

A route without a rule makes no application, so nobody adds a door and forgets the lock. Roles open routes; whose answer it
is, is asked again where it is fetched (``service``): an analyst's role opens "a job", never another analyst's job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import VitrailError
from .principal import ROLES

NOBODY = "nobody"
"""Who shows no credential."""
PUBLIC = frozenset({NOBODY, *ROLES})
"""Open to everybody, also without a credential."""
EVERYBODY = frozenset(ROLES)
OWNERS = frozenset({"owner"})
ASKERS = frozenset({"owner", "analyst"})
"""Who asks questions of rows."""
READERS = frozenset({"owner", "analyst", "reader"})
"""Who reads panes."""
AUDITORS = frozenset({"owner", "auditor"})
"""Who reads the ledger."""


class Rules:
    """The roles that every route is open to.

    Examples
    --------
    >>> rules = Rules()
    >>> rules.allow("GET", "/v1/jobs", ASKERS)
    >>> rules.of("GET", "/v1/jobs") == ASKERS, rules.of("GET", "/elsewhere")
    (True, frozenset())
    """

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str], frozenset[str]] = {}

    def allow(self, method: str, path: str, roles: Iterable[str]) -> None:
        """Open a route, by its path as it is declared (``/v1/jobs/{job_id}``), to these roles."""
        self._roles[method.upper(), path] = frozenset(roles)

    def of(self, method: str, path: str) -> frozenset[str]:
        """Who may call it; nobody, where no rule says so. Asking for the head of a page is asking for the page."""
        return self._roles.get(("GET" if method == "HEAD" else method, path), frozenset())

    def __iter__(self) -> Iterator[tuple[str, str, frozenset[str]]]:
        return ((method, path, roles) for (method, path), roles in sorted(self._roles.items()))

    def check(self, routes: Iterable[tuple[str, str]]) -> None:
        """Refuse routes without a rule, and rules without a route."""
        declared = {(method, path) for method, path in routes if method not in ("HEAD", "OPTIONS")}
        if missing := sorted(declared - set(self._roles)):
            raise VitrailError(f"no rule says who may call {' '.join(missing[0])}; state it where the route is made")
        if spare := sorted(set(self._roles) - declared):
            raise VitrailError(f"there is a rule for {' '.join(spare[0])}, and no such route")
