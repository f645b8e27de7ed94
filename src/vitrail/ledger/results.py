"""What a ledger hands back: receipts for charges and reservations, replays, verifications. Plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..accounting import Cost
from .entries import Part


@dataclass(frozen=True, slots=True)
class Charge:
    """A receipt: the question is paid for, durably, and the data may now be read.

    ``cost`` was paid, and is never refunded. ``seq`` is the number of the ``charged`` entry, and ``digest`` its digest, by
    which the ledger knows its own receipts.
    """

    account: str
    seq: int
    cost: Cost
    digest: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """A receipt: the price of a recipe is set aside, and its questions are booked against it.

    ``cost`` was set aside of the account, ``counted`` of the cap of the ``analyst``, who alone may book against it, for
    questions to ``part`` (None: to all rows). ``recipe`` is the digest that names the recipe, None for one that cannot be
    resumed. ``seq`` and ``digest`` are those of the ``reserved`` entry; 0 and empty where nothing had to be set aside,
    because all was booked before.
    """

    account: str
    seq: int
    analyst: str
    recipe: str | None
    part: Part | None
    cost: Cost
    counted: Cost
    digest: str


@dataclass(frozen=True, slots=True)
class Replay:
    """A stored answer: the account paid for it before, and pays nothing now.

    ``seq`` is the number of the ``charged`` entry that paid for it, ``cost`` what was paid then. ``counted`` is what this
    replay counted against the asking analyst's cap: nothing if the analyst had seen it. ``release`` are the stored bytes.
    """

    account: str
    seq: int
    cost: Cost
    counted: Cost
    release: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class VerifiedAccount:
    """What the walk over one account's chain found.

    ``spent`` are its charges, added up afresh. ``head`` is the digest of its last entry: publish it, and this history can no
    longer be rewritten unseen. ``recorded`` is how many entries this user's own record, outside the ledger, knows of; None
    where there is no record.
    """

    account: str
    n_entries: int
    n_questions: int
    n_releases: int
    spent: Cost
    head: str
    recorded: int | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of walking every chain of a ledger.

    Parameters
    ----------
    problems : tuple of str
        What does not hold, in sentences. Empty when all is well.
    accounts : tuple of VerifiedAccount
        What was found, account by account.

    Examples
    --------
    >>> Verification((), ()).ok
    True
    """

    problems: tuple[str, ...]
    accounts: tuple[VerifiedAccount, ...]

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    @property
    def heads(self) -> dict[str, str]:
        """The digest of every account's last entry, to be published."""
        return {verified.account: verified.head for verified in self.accounts}
