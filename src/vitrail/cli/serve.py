"""`vitrail serve`: many analysts, one budget, and a page. `vitrail serve house.toml` starts it; --demo makes a house."""

from __future__ import annotations

import os
import threading
import webbrowser
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .._checks import did_you_mean
from ..errors import InvalidInput
from .inputs import existing
from .printing import check_writable, print_lines, print_note

if TYPE_CHECKING:
    from ..serve.access.tokens import Tokens
    from ..serve.house import House

HouseFile = Annotated[Path, typer.Argument(metavar="HOUSE.toml", help="What is served, as `vitrail serve init` writes it.")]
DEMO_FOLDER = Path("vitrail-demo")
DEMO_DAYS = 7


class _Serve(TyperGroup):
    """The commands; `vitrail serve house.toml` and `vitrail serve --demo` are `vitrail serve start ...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The words, with `start` before those that name no command."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            word = args[0]
            if not word.startswith("-") and "." not in word and not Path(word).exists():
                hint = did_you_mean(word, list(self.commands)) or f" Commands are {', '.join(self.commands)}."
                raise InvalidInput(f"{word!r} is neither a command nor a house.{hint}")
            args = ["start", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Serve,
    no_args_is_help=True,
    help="Serve explanations to many people, with one budget: `vitrail serve house.toml`, or `vitrail serve --demo`.",
)


@app.command("start")
def start(
    house: Annotated[
        Path | None, typer.Argument(metavar="HOUSE.toml", help="What is served, as `vitrail serve init` writes it.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Where to listen; the house says it if not given.")] = None,
    port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="The same.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read everything, say what would be served, and start nothing.")
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Make a house of bundled census rows and serve it.")] = False,
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="Where the demo's house is made.")] = DEMO_FOLDER,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="With --demo: open the page in a browser.")] = True,
) -> None:
    """Serve a house; the word `start` may be left out. Ctrl-C, or SIGTERM, ends it: questions at work are finished first."""
    from ..serve.operation.running import address_of, check_installed, checked, serve

    check_installed()
    if demo == (house is not None):
        raise InvalidInput("give a house, as in `vitrail serve house.toml`, or --demo, which makes one")
    if demo:
        house = _demo(folder)
    assert house is not None
    read = _read(house, host, port)
    if check:
        lines = checked(read)
        n_cares = sum(line.startswith("Care: ") for line in lines)
        found = "nothing is wrong with it" if not n_cares else f"{n_cares} of these lines ask{'s' * (n_cares == 1)} for care"
        print_lines(*lines, f"Nothing was started, and {found}.")
        return
    from ..serve.operation.logs import Log

    log = Log()
    log.take_over()
    address = address_of(read)

    def begin(tokens: Tokens) -> None:
        print_lines(f"{read.name}, at {address}")
        if demo:
            _print_demo_tokens(tokens, read)
        elif (secret := tokens.first_owner_token()) is not None:
            print_lines(
                f"The owner's token, shown this once: {secret}",
                f"Sign in with it at {address}; `vitrail serve token {house} NAME` makes tokens for others.",
            )
        if demo and browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        print_lines("Ctrl-C ends it, when questions at work are finished; a second Ctrl-C does not wait for them.")

    serve(read, log, begin=begin)
    print_lines("The service has ended. What was not finished is continued at the next start.")


@app.command("token")
def token(
    house: HouseFile,
    person: Annotated[str, typer.Argument(metavar="PERSON", help="Somebody of [people], or owner.")],
    days: Annotated[
        int | None, typer.Option("--days", min=1, help="How long it is good for; until revoked if not given.")
    ] = None,
    label: Annotated[str, typer.Option("--label", help="A note, such as where it is used.")] = "",
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", metavar="D", help="Only for this dataset; may be repeated.")
    ] = None,
    buy: Annotated[bool, typer.Option("--buy/--no-buy", help="Whether it may spend budget.")] = True,
) -> None:
    """Make a token for somebody. It is shown once; of it the service keeps a hash. Works while the service runs, too."""
    from ..serve.operation.running import check_installed, opened_tokens

    check_installed()
    with opened_tokens(_read(house)) as tokens:
        line, secret = tokens.issue(person, datasets=dataset, may_buy=buy, days=days, label=label)
    ends = "until it is revoked" if line.expires is None else f"until {line.expires[:10]}"
    print_note(f"Token {line.id} of {line.role} {person!r}, good {ends}. It is shown this once:")
    print_lines(secret)


@app.command("backup")
def backup(
    house: HouseFile,
    destination: Annotated[Path, typer.Argument(metavar="DEST", help="The folder to write to; made if it is not there.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier backup there.")] = False,
) -> None:
    """Copy the ledger, and the service's tables in it, also while it runs; verify the copy; write the heads to publish.

    A ledger in PostgreSQL is copied by pg_dump: then the heads alone are written.
    """
    from ..serve.operation.backup import back_up
    from ..serve.operation.running import existing_ledger

    with closing(existing_ledger(_read(house))) as ledger:
        made = back_up(ledger, destination, overwrite=overwrite)
    for account in made.accounts:
        print_lines(f"Account {account.account!r}: {account.n_entries} entries, head {account.head}")
    if made.copy is None:
        print_lines(
            "The ledger is in PostgreSQL: copy it with pg_dump --format=custom, all tables vitrail_*, and try pg_restore."
        )
    else:
        print_lines(f"The copy {made.copy} holds what the ledger held.")
    print_lines(
        f"{made.heads} is to be published, where you could not change it unseen. Whether history still passes through it:",
        made.verify_command,
    )


@app.command("init")
def init(
    declarations: Annotated[
        list[Path], typer.Argument(metavar="DATA.toml...", help="Declared datasets, as `vitrail init` writes them.")
    ],
    model: Annotated[
        list[Path] | None,
        typer.Option("--model", metavar="M.onnx", help="A model to approve, by its hash; may be repeated."),
    ] = None,
    person: Annotated[
        list[str] | None,
        typer.Option("--person", metavar="NAME=ROLE", help="Somebody: analyst, reader or auditor; may be repeated."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What the service is called; the dataset's name if not given.")
    ] = None,
    file: Annotated[Path, typer.Option("--output-file", "-o", metavar="HOUSE.toml", help="The file to write.")] = Path(
        "house.toml"
    ),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a house: what is served, approved and to whom, commented, to be changed by hand."""
    from ..serve.operation.new_house import NewHouse

    if file.exists() and not overwrite:
        raise InvalidInput(f"{str(file)!r} is there already; change it by hand, or give --overwrite or another -o")
    check_writable(file, "the house")
    people = dict(_person(text) for text in person or ())
    for path in declarations:
        existing(path, "declaration")
    models = [existing(path, "model") for path in model or ()]
    called = name or declarations[0].stem
    NewHouse(called, declarations, models, people).write(file)
    print_lines(
        f"{file} was written{f'; models approved by hash: {len(models)}' if models else ''}.",
        f"Next: vitrail serve {file} --check, then vitrail serve {file}",
    )


def _read(house: Path, host: str | None = None, port: int | None = None) -> House:
    from ..serve.house import read_house

    read = read_house(house)
    return replace(read, host=host or read.host, port=port or read.port)


def _person(text: str) -> tuple[str, str]:
    name, _, role = text.partition("=")
    if not name:
        raise InvalidInput(f"--person is {text!r}; write a name and a role, as in alice=analyst")
    return name, role or "analyst"


def _demo(folder: Path) -> Path:
    """The demo's house. How far its ledger has come is written down in its own folder: deleting that is a new demo."""
    from ..serve.operation.new_house import make_demo

    house, before = make_demo(folder)
    os.environ["VITRAIL_STATE"] = str(folder.absolute() / "state")
    if before:
        print_lines(f"The demo in {folder} goes on, with what is left of its budget; delete the folder to begin anew.")
    return house


def _print_demo_tokens(tokens: Tokens, house: House) -> None:
    from ..serve.principal import OWNER

    says = {
        "owner": "sees and approves everything",
        "analyst": "asks, up to a cap",
        "reader": "reads published panes",
        "auditor": "reads the ledger, no answers",
    }
    print_lines(f"Sign in as one of these; the tokens are good for {DEMO_DAYS} days:")
    for name in (OWNER, *house.people):
        line, secret = tokens.issue(name, days=DEMO_DAYS, label="demo")
        print_lines(f"  {name:8} {says[line.role]:30} {secret}")
