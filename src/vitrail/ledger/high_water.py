"""How far an account is known to have come, written down outside its ledger, so that an older copy is noticed.

A ledger file vouches for its own history and cannot know whether there is a longer one: a backup put back, a copy, an empty
file in its place all verify, and all have budget that was spent. So after every charge (and opening, cap and replay that
counts) the chain's length, its head and what was spent are written to a small file in a folder of the user's:
``$VITRAIL_STATE``, or ``vitrail`` in ``$XDG_STATE_HOME``, or ``~/.local/state/vitrail``. Before anything is appended to an
account, its record is looked up, and the history must pass through the recorded head; otherwise the ledger refuses.

*The record never leads.* It is written after the commit and read before the chain, so a crash in between, or another process
that charges meanwhile, leaves a record that lags: the history then goes on from the recorded head, which is fine. Of two
records the longer holds (they are compared and replaced under a lock; where the file system has no locks, a race makes the
record lag, and the next charge mends it). A head is a hash of everything before it, so one comparison is enough.

*Which record.* An account's record has the digest of its first entry as its name, which a copy takes along wherever it goes.
An account that is not there has none, so it is also looked up by its name together with the ledger's place, or with the file
that the rows are in.

*What is refused.* Everything that would append, replays included: a replay counts against an analyst's cap, and an older
copy does not know what the analyst was told since. Reading the bill and verifying it stay possible.

*What it cannot notice.* A copy that is used where this folder is not: on another machine, by another user, in a container
without it. And an owner who deletes the record, which is how an owner decides that an older copy goes on.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..accounting import Cost, JsonValue, rounded_up
from ..errors import LedgerCorrupted, LedgerError, LedgerRolledBack, LedgerWarning
from .allowance import question_epsilon
from .entries import RawEntry, canonical_json, cost_from_json

if TYPE_CHECKING:
    from .book import Book

try:
    import fcntl
except ImportError:  # Windows: see "The record never leads"
    fcntl = None  # type: ignore[assignment]

FORMAT = "vitrail-high-water/1"
_TEXTS = ("format", "account", "opening", "head", "ledger")
_FIELDS: dict[str, type] = {**dict.fromkeys(_TEXTS, str), "seq": int, "spent": dict, "delta": float, "data": list}
_PACKAGE = str(Path(__file__).resolve().parents[1])
_SAID: set[str] = set()


@dataclass(frozen=True, slots=True)
class HighWater:
    """How far an account is known to have come: ``seq`` entries, the last with the digest ``head``, and what was spent.

    ``opening`` is the digest of its first entry, which is its own and of all its copies; ``ledger`` where it was seen last;
    ``data`` the files or folders of the rows that it pays for, where they are known. An epsilon is stated at ``delta``, the
    account's ``question_delta``.

    Examples
    --------
    >>> mark = HighWater("adult", "ab" * 32, 3, "cd" * 32, Cost(5), 1e-6, "ledger.db", ("adult.parquet",))
    >>> HighWater.from_json(mark.to_json()) == mark
    True
    """

    account: str
    opening: str
    seq: int
    head: str
    spent: Cost
    delta: float
    ledger: str
    data: tuple[str, ...] = ()

    @property
    def spent_epsilon(self) -> float:
        """Epsilon of all questions that were paid for."""
        return question_epsilon(self.spent, self.delta)

    def to_json(self) -> dict[str, JsonValue]:
        """The record as plain JSON values; a dataset's declaration may hold them as well as a file may."""
        return {"format": FORMAT, **asdict(self), "data": list(self.data)}

    @classmethod
    def from_json(cls, fields: JsonValue) -> HighWater:
        """The record that ``to_json`` wrote, or :class:`LedgerCorrupted`."""
        kinds = {name: type(value) for name, value in fields.items()} if isinstance(fields, dict) else {}
        if not isinstance(fields, dict) or kinds != _FIELDS or fields["format"] != FORMAT:
            raise LedgerCorrupted("it is no record of an account")
        values: dict[str, Any] = {name: value for name, value in fields.items() if name != "format"}
        return cls(**{**values, "spent": cost_from_json(fields["spent"]), "data": tuple(map(str, values["data"]))})


def state_folder() -> Path | None:
    """Where this user's records are; None where the user has no home."""
    if given := os.environ.get("VITRAIL_STATE"):
        return Path(given).absolute()
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base).absolute() / "vitrail"
    try:
        return Path.home() / ".local" / "state" / "vitrail"
    except RuntimeError:
        return None


class HighWaterMarks:
    """The records in a folder, one file for each account.

    Parameters
    ----------
    folder : Path or None
        It is made with the first record. None keeps no records, and warns.
    wanted : bool
        Whether a record is wanted at all; of a ledger that ends with its process there is none to keep.
    """

    def __init__(self, folder: Path | None, *, wanted: bool = True) -> None:
        self._folder, self._wanted = folder if wanted else None, wanted

    def file(self, opening: str) -> Path | None:
        """The file of the record of the account that was opened so."""
        return None if self._folder is None else self._folder / f"{opening}.json"

    def of(self, opening: str) -> HighWater | None:
        """The record of the account that was opened so."""
        file = self.file(opening)
        return None if file is None else _read(file)

    def all(self) -> tuple[HighWater, ...]:
        """Every record."""
        if self._folder is None:
            return ()
        try:
            files = sorted(self._folder.glob("*.json"))
        except OSError:
            return ()
        return tuple(mark for mark in map(_read, files) if mark is not None)

    def known(self, account: str, ledger: str | None, data: str | None) -> tuple[HighWater, ...]:
        """The records of accounts of this name that were in this ledger, or paid for these rows."""
        return tuple(
            mark
            for mark in self.all()
            if mark.account == account and (mark.ledger == ledger or (data is not None and data in mark.data))
        )

    def keep(self, mark: HighWater) -> None:
        """Write the record, unless it is behind the one that is there.

        It is called after a commit, so it must not fail: an error here would take an answer from somebody who has paid.
        """
        file = self.file(mark.opening)
        if file is None:
            if self._wanted:
                _warn_unwatched(None, "this user has no home")
            return
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(file.parent):
                before = _read(file)
                after = mark if before is None else _longer(before, mark)
                if after != before:
                    _write(file, after)
        except (OSError, LedgerError) as error:
            _warn_unwatched(file.parent, str(getattr(error, "strerror", None) or error))


def refuse_older_copy(book: Book, mark: HighWater, ledger: str, file: Path | None) -> None:
    """Refuse a book whose account is not the recorded one, and none that went on from it."""
    row = book.account(mark.account)
    if row is None:
        differs = f"The ledger {ledger} has no account {mark.account!r}"
    elif row.seq < mark.seq:
        spent = question_epsilon(row.spent, row.budget.question_delta)
        differs = (
            f"The ledger {ledger} has account {mark.account!r} with {row.seq} entries (epsilon {rounded_up(spent)} spent)"
        )
    else:
        # Of the last entry the row's head is compared, whose own entry is checked with every operation (``Book.locked``).
        last = None if row.seq == mark.seq else book.get(RawEntry, account=mark.account, seq=mark.seq)
        if mark.head == (row.head if row.seq == mark.seq else None if last is None else last.digest):
            return
        differs = f"The ledger {ledger} has account {mark.account!r} with another history"
    rows = f", for the rows in {', '.join(mark.data)}" if mark.data else ""
    raise LedgerRolledBack(
        f"{differs}; the record {file} says that it had {mark.seq} entries (epsilon {rounded_up(mark.spent_epsilon)} spent) "
        f"in the ledger {mark.ledger}{rows}. So this is an older copy, or another ledger in its place, and has budget that "
        "was spent already. Use the ledger that holds all entries. If that is lost, the owner may decide to go on with this "
        "one by deleting the record: what was charged since can then be spent a second time."
    )


def _longer(before: HighWater, mark: HighWater) -> HighWater:
    """The longer of two records of one account, with the rows that either knows and the ledger that is used now."""
    longer = mark if mark.seq > before.seq else before
    return replace(longer, ledger=mark.ledger, data=tuple(sorted({*before.data, *mark.data})))


def _read(file: Path) -> HighWater | None:
    try:
        return HighWater.from_json(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn_unwatched(file.parent, str(error.strerror))
        return None
    except (ValueError, LedgerCorrupted) as error:
        raise LedgerError(
            f"The record {file} of how far an account has come cannot be read. Delete it if you know that this ledger is "
            "the newest there is; it is then written anew."
        ) from error


def _write(file: Path, mark: HighWater) -> None:
    """Replace the file as a whole. It is on the disk before it gets its name: no power cut leaves half a record."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(canonical_json(mark.to_json()))
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks: see "The record never leads"
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _warn_unwatched(folder: Path | None, reason: str) -> None:
    where = "" if folder is None else f" in {folder}"
    warn_once(
        "unwatched",
        f"No record of how far accounts have come can be kept{where} ({reason}), so an older copy of a ledger would not be "
        "noticed. Name a folder that can be written in the environment variable VITRAIL_STATE.",
    )


def check_other_budgets(ledger: object, account: str | None, dataset: str, data: str | None) -> None:
    """Refuse, or warn of, a budget for rows that have one already, or that is forgotten.

    Whoever writes ``ledger="memory"`` has decided it and is not asked.
    """
    if ledger is None:
        _check_forgetful(account or dataset, data)
    elif ledger != "memory":
        _check_second_budget(account, dataset, data)


def _check_forgetful(account: str, data: str | None) -> None:
    """Say, once, that data without ``ledger=`` has a new budget in every process; refuse rows that are known to have one."""
    for mark in HighWaterMarks(state_folder()).known(account, None, data):
        raise LedgerError(
            f"The rows in {data} have an account {account!r} in the ledger {mark.ledger}, and no ledger was named; without "
            "one they would have a second budget. Give that one as ledger=, or ledger='memory' for a budget that is "
            "forgotten when this process ends. Nothing was charged."
        )
    warn_once(
        "forgetful",
        "This data has no ledger, so what is spent is forgotten when this process ends, and the next one has the whole "
        "budget again. Keep it in a file: ledger='sqlite:///ledger.db'. If it may be forgotten, say so: ledger='memory'.",
    )


def _check_second_budget(account: str | None, dataset: str, data: str | None) -> None:
    """Refuse rows that another account pays for, unless the owner names this one: two budgets for the same rows add up.

    A dataset that was given another name would otherwise have its whole budget again.
    """
    others = [] if data is None else [mark for mark in HighWaterMarks(state_folder()).all() if data in mark.data]
    if not others or any(mark.account == (account or dataset) for mark in others):
        return
    mark = others[0]
    known = f"The rows in {data} have an account {mark.account!r} in the ledger {mark.ledger}"
    if account is None:
        raise LedgerError(
            f"{known}, and {dataset!r} would be a second budget for them. Go on with the first: account={mark.account!r}; "
            f"or say that there shall be two, whose epsilons add up for everybody in the rows: account={dataset!r}. "
            "Nothing was charged."
        )
    warn_once(
        f"second {mark.opening} {account}",
        f"{known}, and now one called {account!r}: for everybody in these rows what the two spend adds up.",
    )


def warn_once(what: str, text: str) -> None:
    """Warn, if this process was not warned of ``what`` before.

    Python's own register of warnings counts by line, so that a loop over three scripts would say it three times, and one
    over ``exec`` never stop.
    """
    if what in _SAID:
        return
    _SAID.add(what)
    warnings.warn(text, LedgerWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """How far up the caller of this package is, counted from ``warn_once``: the package's own frames have others between."""
    level, outside, frame = 1, 1, sys._getframe(1)
    while frame.f_back is not None:
        outside = level if frame.f_code.co_filename.startswith(_PACKAGE) else outside
        level, frame = level + 1, frame.f_back
    return outside + 1
