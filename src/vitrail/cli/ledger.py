"""`vitrail budget` and `vitrail ledger`: what was spent, by whom, and whether the history holds."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._checks import choice
from ..accounting import rounded_down, rounded_up
from ..errors import InvalidInput
from ..ledger import FILE_ENDINGS
from ..ledger.statement import SHOWN_LINES
from ..results.archive import json_bytes, write_bytes
from ..results.codec import to_json
from . import declarations as options
from .inputs import one_account, open_existing_ledger
from .printing import check_writable, print_json, print_lines, print_table, write_file

if TYPE_CHECKING:
    from ..ledger import Entry, ReservationLine, Statement


def budget(
    ledger: options.LedgerToRead,
    account: options.OnlyAccount = None,
    newest: Annotated[
        int | None,
        typer.Option(
            "--lines", min=0, metavar="N", help="Of the bill the newest N lines; 50 if not given, with --json all."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what was spent, what is left, and the bill."""
    with _statements(ledger, account) as statements:
        if as_json:
            bills = [to_json(statement.bill(newest))["lines"] for statement in statements]
            print_json([statement.to_json() | {"bill": bill} for statement, bill in zip(statements, bills, strict=True)])
            return
        bills_shown = [statement.bill(SHOWN_LINES if newest is None else newest) for statement in statements]
    if not statements:
        print_lines("This ledger has no account yet; the first question about a dataset opens one.")
    for number, (statement, bill) in enumerate(zip(statements, bills_shown, strict=True)):
        print_lines(*([""] if number else []), *_statement_lines(statement))
        if bill.lines:
            from ..show import bill_table

            table = bill_table(bill)
            print_lines("")
            print_table(table.header, table.rows, numeric=table.numeric)
        if bill.omission:
            print_lines("", f"{bill.omission} More of them: --lines N.")


@contextmanager
def _statements(ledger: str, account: str | None) -> Iterator[list[Statement]]:
    """The statements of one account or all, while the ledger is open, from which they read their entries."""
    with closing(open_existing_ledger(ledger)) as opened:
        yield [opened.statement(name) for name in (opened.accounts() if account is None else (account,))]


def _statement_lines(statement: Statement) -> Iterator[str]:
    budget = statement.budget
    yield f"Account {statement.account!r}, neighbours {statement.neighbours}"
    yield f"  budget     epsilon {rounded_up(budget.epsilon)}, delta {rounded_up(budget.delta)}"
    yield f"  spent      epsilon {rounded_up(statement.spent_epsilon)} on {_counted(statement.n_questions, 'question')}"
    yield f"  remaining  a question of up to epsilon {rounded_down(statement.remaining_epsilon)}"
    if statement.capacity.pico_epsilon:
        spent, left = statement.training_spent, statement.training_remaining
        yield (
            f"  training   epsilon {rounded_up(spent[0])} spent, {rounded_down(left[0])} left; "
            f"delta {rounded_up(spent[1])} spent, {rounded_down(left[1])} left"
        )
    for line in statement.analysts:
        if line.cap is not None and (fits := line.remaining_epsilon) is not None:
            spent_of_cap = f"{rounded_up(line.spent_epsilon)} of {rounded_up(line.cap.epsilon)}"
            yield f"  analyst    {line.analyst}: epsilon {spent_of_cap}, up to {rounded_down(fits)} still fits"
    for part in statement.parts:
        name, spent_on = str(part.part).removeprefix("part "), rounded_up(part.spent_epsilon)
        yield f"  part       {name}: epsilon {spent_on}, up to {rounded_down(part.remaining_epsilon)} still fits"
    for held in statement.reservations:
        yield (
            f"  reserved   {held.label} ({held.analyst}, entry {held.seq}): epsilon {rounded_up(held.reserved_epsilon)}, of "
            f"which {rounded_up(held.booked_epsilon)} is booked"
        )


def verify(
    ledger: options.LedgerToRead,
    published: Annotated[
        list[str] | None,
        typer.Option("--head", metavar="ACCOUNT=DIGEST", help="A head that was published earlier; may be repeated."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Walk every chain, price every charge afresh, compare with the records outside; what does not hold is exit code 1."""
    heads = dict(_head(text) for text in published or ())
    with closing(open_existing_ledger(ledger)) as opened:
        verdict = opened.verify(heads or None)
    if as_json:
        print_json({"ok": verdict.ok, **to_json(verdict)})
    else:
        print_lines(*verdict.problems)
        for walked in verdict.accounts:
            counted = f"{_counted(walked.n_entries, 'entry')}, {_counted(walked.n_questions, 'question')}"
            print_lines(
                f"Account {walked.account!r}: {counted}, {_counted(walked.n_releases, 'release')}, head {walked.head}",
                "  This user has no record of it outside the ledger: an older copy in its place would not be noticed."
                if walked.recorded is None
                else f"  This user's record outside the ledger knows {_counted(walked.recorded, 'entry')} of it.",
            )
        problems = _counted(len(verdict.problems), "problem")
        print_lines("The ledger holds." if verdict.ok else f"The ledger does not hold: {problems}.")
    if not verdict.ok:
        raise typer.Exit(1)


def backup(
    ledger: options.LedgerToRead,
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
        print_lines(f"Account {account.account!r}: {_counted(account.n_entries, 'entry')}, head {account.head}")
    print_lines(f"The copy {destination} holds what the ledger held.")


ENTRY_COLUMNS: dict[str, Callable[[Entry], object]] = {
    "account": lambda entry: entry.account,
    "entry": lambda entry: entry.seq,
    "time (UTC)": lambda entry: _time(entry.time_utc),
    "kind": lambda entry: entry.kind,
    "analyst": lambda entry: entry.analyst or "",
    "mu² × 10¹²": lambda entry: entry.cost.pico_mu_squared or "",
    "part": lambda entry: entry.part or "",
    "digest": lambda entry: entry.digest[:12],
}


def entries(ledger: options.LedgerToRead, account: options.OnlyAccount = None, as_json: options.Json = False) -> None:
    """List every entry: openings, caps, charges, releases, replays, reservations, and what analysts keep."""
    with _statements(ledger, account) as statements:
        every = [entry for statement in statements for entry in statement.entries]
    if as_json:
        shown = ("account", "seq", "time_utc", "kind", "previous", "digest")
        print_json([{name: getattr(entry, name) for name in shown} | {"body": dict(entry.body)} for entry in every])
        return
    split = any(entry.part is not None for entry in every)
    columns = {name: cell for name, cell in ENTRY_COLUMNS.items() if split or name != "part"}
    print_table([*columns], [[str(cell(entry)) for cell in columns.values()] for entry in every], numeric=(1, 5))


RESERVATION_COLUMNS: dict[str, Callable[[ReservationLine], object]] = {
    "entry": lambda line: line.seq,
    "time (UTC)": lambda line: _time(line.time_utc),
    "analyst": lambda line: line.analyst,
    "question": lambda line: line.label,
    "ε reserved": lambda line: rounded_up(line.reserved_epsilon),
    "ε booked": lambda line: rounded_up(line.booked_epsilon),
    "part": lambda line: line.part or "",
    "recipe": lambda line: (line.recipe or "")[:12],
}


def reservations(ledger: options.LedgerToRead, account: options.OnlyAccount = None, as_json: options.Json = False) -> None:
    """List what recipes have reserved and not finished: whose, for what, and how much was booked against it."""
    with _statements(ledger, account) as statements:
        lines = [(statement.account, line) for statement in statements for line in statement.reservations]
    if as_json:
        print_json([{"account": name, **line.to_json()} for name, line in lines])
    elif not lines:
        print_lines("No reservation is open.")
    else:
        rows = [[name, *(str(cell(line)) for cell in RESERVATION_COLUMNS.values())] for name, line in lines]
        print_table(["account", *RESERVATION_COLUMNS], rows, numeric=(1, 5, 6))


def free(
    ledger: options.LedgerToRead,
    entry: Annotated[int, typer.Argument(metavar="ENTRY", help="Its number, as `vitrail ledger reservations` lists it.")],
    account: options.OnlyAccount = None,
) -> None:
    """Give back what a reservation has not booked, when its recipe died and will not be resumed.

    What was booked stays on the bill. A recipe that is still at work is refused its next question.
    """
    with closing(open_existing_ledger(ledger)) as opened:
        name = one_account(opened, account)
        given_back = opened.free(name, entry)
        left = opened.statement(name).remaining_epsilon
    print_lines(
        f"Reservation {entry} of account {name!r} was freed; a question of up to epsilon {rounded_down(left)} fits now."
        if given_back.pico_mu_squared
        else f"Reservation {entry} of account {name!r} was freed; all that it held of the questions' budget was booked."
    )


EXPORT_FORMATS = ("dp-accounting", "json", "csv")


def export(
    ledger: options.LedgerToRead,
    account: options.OnlyAccount = None,
    as_format: Annotated[
        str,
        typer.Option("--format", help="dp-accounting: one composed event; json: with every charge; csv: a line a charge."),
    ] = EXPORT_FORMATS[0],
    file: Annotated[
        Path | None, typer.Option("--output-file", "-o", metavar="FILE", help="Where to write it; the screen if not given.")
    ] = None,
) -> None:
    """Write what an account was charged for another accountant to check: events as dp-accounting knows them.

    Of the parts of a partition the dearest counts, replays cost nothing, and what is reserved and not booked is left out.
    """
    chosen = choice("--format", as_format, EXPORT_FORMATS)
    if file is not None:
        check_writable(file, "the export")
    with closing(open_existing_ledger(ledger)) as opened:
        events = opened.statement(one_account(opened, account)).to_dp_events()
    content = events.to_json()
    if chosen == "csv":
        written = io.StringIO(newline="")
        csv.writer(written).writerows(events.table())
        text = written.getvalue().encode()
    else:
        if chosen == "dp-accounting":
            del content["charges"]
        text = json_bytes(content)
    if file is None:
        typer.echo(text.decode(), nl=False)
        return
    write_file(file, lambda path: write_bytes(path, text), "the export")
    charged = f"{_counted(len(events.charges), 'charge')}, epsilon {rounded_up(events.epsilon)}"
    print_lines(f"Account {events.account!r}: {charged} at delta {rounded_up(events.delta)}. Written: {file}")


def _head(text: str) -> tuple[str, str]:
    account, equals, digest = text.rpartition("=")
    if not equals or not account or not digest:
        raise InvalidInput(f"--head is {text!r}; write it as ACCOUNT=DIGEST, as `vitrail ledger verify` prints them")
    return account, digest


def _time(time_utc: str) -> str:
    return time_utc[:19].replace("T", " ")


def _counted(number: int, what: str) -> str:
    several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else several}"
