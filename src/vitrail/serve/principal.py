"""Who asks: a name, a role, and what the credential that was shown is good for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Role: TypeAlias = Literal["owner", "analyst", "reader", "auditor"]
ROLES: tuple[Role, ...] = get_args(Role)
OWNER = "owner"
"""The name of the person who is always there."""


@dataclass(frozen=True)
class Principal:
    """Somebody whose credential was checked.

    Attributes
    ----------
    name : str
        The analyst's name in the ledger.
    role : {"owner", "analyst", "reader", "auditor"}
        What they may do: ``rules`` says what that is, route by route.
    datasets : frozenset of str, or None
        Those that they may hear of; None for all.
    may_buy : bool
        Whether this credential may spend.
    credential : str
        The public number of the token or session that was shown, for the access log; never the secret.

    Examples
    --------
    >>> alice = Principal("alice", "analyst", frozenset({"census"}), may_buy=True, credential="t1")
    >>> alice.knows("census"), alice.knows("visits")
    (True, False)
    """

    name: str
    role: Role
    datasets: frozenset[str] | None
    may_buy: bool
    credential: str

    def knows(self, dataset: str) -> bool:
        """Whether this dataset exists for them."""
        return self.datasets is None or dataset in self.datasets
