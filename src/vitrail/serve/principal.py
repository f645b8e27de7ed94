"""Who asks: a name, a role, and what the credential that was shown is good for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from .problems import Problem

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
        Whether this credential may spend, and change anything at all; otherwise it reads.
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

    def check_may_change(self) -> None:
        """Refuse a credential that reads only."""
        if not self.may_buy:
            raise Problem("forbidden", "this token reads, and changes and buys nothing; ask the owner for one that may")

    def check_whole_house(self) -> None:
        """Refuse who may hear of some datasets only: for what is about all of them."""
        if self.datasets is not None:
            raise Problem(
                "forbidden", "this is about the whole house, and you, or this token, may hear of some datasets only"
            )
