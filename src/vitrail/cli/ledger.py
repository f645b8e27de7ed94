"""`vitrail budget` and `vitrail ledger`: what was spent, by whom, and whether the history holds."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..accounting import JsonValue, rounded_down, rounded_up
from ..errors import InvalidInput
from ..ledger import FILE_ENDINGS
from . import declarations as told
from .inputs import chosen_accounts, one_account, open_existing_ledger
from .printing import print_json, print_line, print_table

if TYPE_CHECKING:
    from ..ledger import Statement, VerifiedAccount


def budget(ledger: told.LedgerToRead, account: told.OnlyAccount = None, as_json: told.Json = False) -> None:
    """Show what was spent, what is left, and the bill."""
    statements = _statements(ledger, account)
    if as_json:
        print_json([_statement_json(statement) for statement in statements])
        return
    if not statements:
        print_line("This ledger has no account yet; the first question about a dataset opens one.")
    for number, statement in enumerate(statements):
        if number:
            print_line()
        _print_statement(statement)


def _statements(ledger: str, account: str | None) -> list[Statement]:
    with closing(open_existing_ledger(ledger)) as opened:
        return [opened.statement(name) for name in chosen_accounts(opened, account)]


def _statement_json(statement: Statement) -> JsonValue:
    lines: list[JsonValue] = [
        {
            "entry": line.seq,
            "time_utc": line.time_utc,
            "analyst": line.analyst,
            "question": line.what,
            "paid": line.paid,
            "epsilon": line.epsilon,
            "epsilon_so_far": line.so_far,
            "share_of_budget": line.share,
            "part": line.part or None,
        }
        for line in statement.bill().lines
    ]
    return {**statement.to_json(), "bill": lines}


def _print_statement(statement: Statement) -> None:
    from ..show import bill_table

    bill = statement.bill()
    print_line(f"Account {statement.account!r}, neighbours {statement.neighbours}")
    print_line(f"  budget     epsilon {rounded_up(bill.budget_epsilon)}, delta {rounded_up(bill.budget_delta)}")
    print_line(
        f"  spent      epsilon {rounded_up(statement.spent_epsilon)} on {_counted(statement.n_questions, 'question')}"
    )
    print_line(f"  remaining  a question of up to epsilon {rounded_down(bill.remaining_epsilon)}")
    if statement.capacity.pico_epsilon:
        spent, left = statement.training_spent, statement.training_remaining
        print_line(
            f"  training   epsilon {rounded_up(spent[0])} spent, {rounded_down(left[0])} left; "
            f"delta {rounded_up(spent[1])} spent, {rounded_down(left[1])} left"
        )
    for line in statement.analysts:
        if line.cap is not None and line.remaining_epsilon is not None:
            print_line(
                f"  analyst    {line.analyst}: epsilon {rounded_up(line.spent_epsilon)} of {rounded_up(line.cap.epsilon)}, "
                f"up to {rounded_down(line.remaining_epsilon)} still fits"
            )
    for part in statement.parts:
        print_line(
            f"  part       {str(part.part).removeprefix('part ')}: epsilon {rounded_up(part.spent_epsilon)}, "
            f"up to {rounded_down(part.remaining_epsilon)} still fits"
        )
    for held in statement.reservations:
        print_line(
            f"  reserved   {held.label} ({held.analyst}, entry {held.seq}): epsilon {rounded_up(held.reserved_epsilon)}, of "
            f"which {rounded_up(held.booked_epsilon)} is booked"
        )
    if bill.lines:
        table = bill_table(bill)
        print_line()
        print_table(table.header, table.rows, numeric=table.numeric)


def verify(
    ledger: told.LedgerToRead,
    published: Annotated[
        list[str] | None,
        typer.Option("--head", metavar="ACCOUNT=DIGEST", help="A head that was published earlier; may be repeated."),
    ] = None,
    as_json: told.Json = False,
) -> None:
    """Walk every chain, price every charge afresh, compare with the records outside; what does not hold is exit code 1."""
    heads = dict(_head(text) for text in published or ())
    with closing(open_existing_ledger(ledger)) as opened:
        verdict = opened.verify(heads or None)
    if as_json:
        accounts: list[JsonValue] = [
            {
                "account": walked.account,
                "n_entries": walked.n_entries,
                "n_questions": walked.n_questions,
                "n_releases": walked.n_releases,
                "pico_mu_squared": walked.spent.pico_mu_squared,
                "head": walked.head,
                "recorded_entries": walked.recorded,
            }
            for walked in verdict.accounts
        ]
        print_json({"ok": verdict.ok, "problems": list(verdict.problems), "accounts": accounts})
    else:
        for problem in verdict.problems:
            print_line(problem)
        for walked in verdict.accounts:
            _print_verified(walked)
        problems = _counted(len(verdict.problems), "problem")
        print_line("The ledger holds." if verdict.ok else f"The ledger does not hold: {problems}.")
    if not verdict.ok:
        raise typer.Exit(1)


def _print_verified(walked: VerifiedAccount) -> None:
    counted = f"{_counted(walked.n_entries, 'entry', 'entries')}, {_counted(walked.n_questions, 'question')}"
    print_line(f"Account {walked.account!r}: {counted}, {_counted(walked.n_releases, 'release')}, head {walked.head}")
    print_line(
        "  This user has no record of it outside the ledger: an older copy in its place would not be noticed."
        if walked.recorded is None
        else f"  This user's record outside the ledger knows {_counted(walked.recorded, 'entry', 'entries')} of it."
    )


def backup(
    ledger: told.LedgerToRead,
    destination: Annotated[Path, typer.Argument(metavar="COPY.db", help="The file to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
) -> None:
    """Copy a ledger, also while it is used, and verify the copy.

    A copy is for the day that the ledger is lost. As long as the ledger goes on, the copy is refused for spending: what was
    charged since is not in it.
    """
    if destination.suffix not in FILE_ENDINGS:
        raise InvalidInput(f"the copy is {str(destination)!r}; its name must end in {' or '.join(FILE_ENDINGS)}")
    with closing(open_existing_ledger(ledger)) as opened:
        copied = opened.backup(destination, overwrite=overwrite)
    for account in copied.accounts:
        print_line(f"Account {account.account!r}: {_counted(account.n_entries, 'entry', 'entries')}, head {account.head}")
    print_line(f"The copy {destination} holds what the ledger held.")


def entries(ledger: told.LedgerToRead, account: told.OnlyAccount = None, as_json: told.Json = False) -> None:
    """List every entry: openings, caps, charges, releases, replays, reservations, and what analysts keep."""
    statements = _statements(ledger, account)
    every = [entry for statement in statements for entry in statement.entries]
    if as_json:
        shown = ("account", "seq", "time_utc", "kind", "previous", "digest")
        print_json([{name: getattr(entry, name) for name in shown} | {"body": dict(entry.body)} for entry in every])
        return
    rows = [
        (
            entry.account,
            str(entry.seq),
            entry.time_utc[:19].replace("T", " "),
            entry.kind,
            entry.analyst or "",
            str(entry.cost.pico_mu_squared or ""),
            str(entry.part or ""),
            entry.digest[:12],
        )
        for entry in every
    ]
    header = ("account", "entry", "time (UTC)", "kind", "analyst", "mu² × 10¹²", "part", "digest")
    split = any(entry.part is not None for entry in every)
    kept = [i for i, name in enumerate(header) if split or name != "part"]
    print_table([header[i] for i in kept], [[row[i] for i in kept] for row in rows], numeric=(1, 5))


def reservations(ledger: told.LedgerToRead, account: told.OnlyAccount = None, as_json: told.Json = False) -> None:
    """List what recipes have reserved and not finished: whose, for what, and how much was booked against it."""
    statements = _statements(ledger, account)
    lines = [(statement.account, line) for statement in statements for line in statement.reservations]
    if as_json:
        print_json([{"account": name, **line.to_json()} for name, line in lines])
        return
    if not lines:
        print_line("No reservation is open.")
        return
    header = ("account", "entry", "time (UTC)", "analyst", "question", "ε reserved", "ε booked", "part", "recipe")
    rows = [
        (
            name,
            str(line.seq),
            line.time_utc[:19].replace("T", " "),
            line.analyst,
            line.label,
            rounded_up(line.reserved_epsilon),
            rounded_up(line.booked_epsilon),
            str(line.part or ""),
            (line.recipe or "")[:12],
        )
        for name, line in lines
    ]
    print_table(header, rows, numeric=(1, 5, 6))


def free(
    ledger: told.LedgerToRead,
    entry: Annotated[int, typer.Argument(metavar="ENTRY", help="Its number, as `vitrail ledger reservations` lists it.")],
    account: told.OnlyAccount = None,
) -> None:
    """Give back what a reservation has not booked, when its recipe died and will not be resumed.

    What was booked stays on the bill. A recipe that is still at work is refused its next question.
    """
    with closing(open_existing_ledger(ledger)) as opened:
        name = one_account(opened, account)
        given_back = opened.free(name, entry)
        left = opened.statement(name)
    print_line(
        f"Reservation {entry} of account {name!r} was freed; a question of up to epsilon "
        f"{rounded_down(left.remaining_epsilon)} fits now."
        if given_back.pico_mu_squared
        else f"Reservation {entry} of account {name!r} was freed; all that it held of the questions' budget was booked."
    )


def _head(text: str) -> tuple[str, str]:
    account, equals, digest = text.rpartition("=")
    if not equals or not account or not digest:
        raise InvalidInput(f"--head is {text!r}; write it as ACCOUNT=DIGEST, as `vitrail ledger verify` prints them")
    return account, digest


def _counted(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
