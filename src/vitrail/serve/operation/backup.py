"""A copy of the ledger for the day that it is lost, and the heads to publish for the day that somebody is doubted.

The service's tables are in the ledger's database, so one copy holds tokens, jobs, answers and the bill. Whoever has an
account's head can tell later whether history was rewritten (``vitrail ledger verify --head``): publish ``heads.json`` where
you cannot change it unseen.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...accounting import JsonValue
from ...errors import InvalidInput, LedgerError
from ...results.archive import json_bytes, write_bytes

if TYPE_CHECKING:
    from ...ledger import SqlLedger, VerifiedAccount

FORMAT = "vitrail-heads/1"
COPY = "ledger.db"
HEADS = "heads.json"


@dataclass(frozen=True)
class Backup:
    """What was written.

    Attributes
    ----------
    heads : Path
        Every account's head, number of entries and the time, as JSON.
    copy : Path or None
        The copy of the ledger; None where its database has tools of its own for that.
    accounts : tuple of VerifiedAccount
        What the walk over every chain found.
    where : str
        The ledger, for commands.
    """

    heads: Path
    copy: Path | None
    accounts: tuple[VerifiedAccount, ...]
    where: str

    @property
    def verify_command(self) -> str:
        """The command that checks later that history still passes through these heads."""
        ledger = shlex.quote(self.where)
        published = (f"--head {shlex.quote(f'{account.account}={account.head}')}" for account in self.accounts)
        return " ".join(["vitrail ledger verify", ledger, *published])


def back_up(ledger: SqlLedger, folder: Path, *, overwrite: bool = False) -> Backup:
    """Copy a ledger into a folder, verified, with its heads beside it; of PostgreSQL write the heads alone.

    Parameters
    ----------
    ledger : SqlLedger
        It may be in use.
    folder : Path
        Made if it is not there.
    overwrite : bool
        Whether files of an earlier backup are replaced.

    Raises
    ------
    LedgerError
        If the ledger does not hold, or a file is there already. Then no heads are written.
    """
    heads, copy = folder / HEADS, folder / COPY if ledger.database.is_file else None
    if heads.exists() and not overwrite:
        raise InvalidInput(f"{str(heads)!r} is there already; name another folder, or give --overwrite")
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{str(folder)!r} is no folder; name one for the backup")
    folder.mkdir(parents=True, exist_ok=True)
    walked = ledger.verify() if copy is None else ledger.backup(copy, overwrite=overwrite)
    if not walked.ok:
        raise LedgerError(
            f"The ledger {ledger.database.where} does not hold, so no heads were written: {walked.problems[0]} Run `vitrail "
            "ledger verify` for the full list."
        )
    # Cut to the minute, as everywhere: how long after a question a head moved is nobody's business.
    now = datetime.now(UTC).isoformat(timespec="minutes")
    accounts: dict[str, JsonValue] = {
        one.account: {"head": one.head, "entries": one.n_entries, "time": now} for one in walked.accounts
    }
    write_bytes(heads, json_bytes({"format": FORMAT, "accounts": accounts}))
    return Backup(heads, copy, walked.accounts, ledger.database.where)


def read_heads(path: Path) -> dict[str, str]:
    """The published heads of a file, by account, as ``ledger.verify`` takes them."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields["format"] == FORMAT:
            return {str(account): str(facts["head"]) for account, facts in fields["accounts"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{str(path)!r} holds no heads that can be read; give a {HEADS} of `vitrail serve backup`"
        ) from error
    raise InvalidInput(f"{str(path)!r} has another format than {FORMAT!r}; give a {HEADS} of `vitrail serve backup`")
