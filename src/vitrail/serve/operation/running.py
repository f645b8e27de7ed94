"""From a house to a process that serves it, and to its end: what `vitrail serve` does after it has read its words.

Ends are signals. SIGTERM and SIGINT close the door, let requests and questions at work end for ``drain_seconds``; what is
cut then is continued at the next start: its price was reserved, and its answers so far are stored.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...accounting import rounded_down, rounded_up
from ...errors import InvalidInput, LedgerError, VitrailError
from ...ledger import SqlLedger, open_ledger
from ..access.tokens import Tokens
from ..house import House
from ..principal import OWNER
from .logs import Log
from .migrate import check_known, revision, upgrade

if TYPE_CHECKING:
    from types import FrameType

    from ...vault import PrivateData
    from ..service import Service

EXTRA = "pip install 'vitrail[serve]'"
_M_ARENA_MAX = -8  # of glibc's malloc.h
NEEDED = ("fastapi", "uvicorn", "alembic", "prometheus_client", "python_multipart", "joserfc", "onnxruntime")


def check_installed() -> None:
    """Refuse where the extra is not installed, in a sentence."""
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            raise VitrailError(f"the service needs {name.replace('_', '-')}, which is not installed: {EXTRA}")


def address_of(house: House) -> str:
    """Where people go."""
    if house.address:
        return house.address.rstrip("/")
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(house.host, house.host)  # noqa: S104 - compared, not bound
    return f"http://{f'[{name}]' if ':' in name and not name.startswith('[') else name}:{house.port}"


def checked(house: House) -> list[str]:
    """What would be served, line by line, after everything was read that a start reads. Nothing is started or written."""
    lines = [f"{house.name!r} would be served at {address_of(house)}"]
    opened = {
        name: replace(one.declaration, caps={}).open(analyst=OWNER, ledger="memory") for name, one in house.datasets.items()
    }
    for name, data in opened.items():
        budget, above = house.datasets[name].declaration.budget, house.datasets[name].approve_above
        asked = "" if above is None else f"; the owner is asked above epsilon {rounded_down(above)}"
        lines.append(
            f"dataset {name!r}: {data.schema.n_columns} columns, {data.n_rows_public} rows declared, budget epsilon "
            f"{rounded_up(budget.epsilon)} at delta {rounded_up(budget.delta)}{asked}"
        )
    for name, declared in house.models.items():
        model, about = declared.open(), declared.datasets or tuple(house.datasets)
        for dataset in about:
            declared.check(model, opened[dataset].feature_schema)
        lines.append(f"model {name!r}: SHA-256 {declared.sha256[:16]}..., for {', '.join(map(repr, about))}")
    for name, person in {OWNER: house.person(OWNER), **house.people}.items():
        assert person is not None
        caps = ", ".join(f"{dataset} up to epsilon {rounded_up(epsilon)}" for dataset, epsilon in person.caps.items())
        known = "all datasets" if person.datasets is None else ", ".join(map(repr, person.datasets))
        lines.append(f"{person.role} {name!r}: {known}{f'; caps: {caps}' if caps else ''}")
    if not house.access_log.parent.is_dir():
        raise InvalidInput(f"access_log of [service] is {house.access_log}, and there is no such folder; make it first")
    return [*lines, *_plain_http(house), *_ledger_lines(house, opened)]


def _plain_http(house: House) -> list[str]:
    local = house.host in ("127.0.0.1", "::1", "localhost")
    if local or (house.address or "").startswith("https://"):
        return []
    return [
        f"Care: host is {house.host!r} and address says no https: tokens would travel in the clear. Put a proxy with TLS in "
        "front, and write its https address"
    ]


def _ledger_lines(house: House, opened: Mapping[str, PrivateData]) -> list[str]:
    """What the ledger of a house says, where there is one: budgets and caps are its own by now."""
    try:
        ledger = existing_ledger(house)
    except LedgerError as error:
        if not any(said in str(error) for said in ("holds no ledger", "There is no ledger at")):
            raise  # a ledger that cannot be reached, or is damaged, would stop a start
        return ["ledger: none there yet; it is made at the first start"]
    with closing(ledger):
        check_known(ledger.database)
        step = revision(ledger.database)
        stands = "has served nobody yet" if step is None else f"tables at step {step}"
        care = [line for name in opened for line in _other_caps(house, name, ledger, opened[name].budget.account)]
        return [f"ledger {ledger.database.where}: {stands}", *care]


def _other_caps(house: House, name: str, ledger: SqlLedger, account: str) -> Iterator[str]:
    """Caps that the house states and the ledger has otherwise; a budget that differs would stop the start."""
    if account not in ledger.accounts():
        return
    declared, statement = house.datasets[name].declaration, ledger.statement(account)
    if statement.budget != declared.budget:
        raise InvalidInput(
            f"the budget of {name!r} is {declared.budget} in its declaration and {statement.budget} in the ledger: a budget "
            "never changes once it is set. Write the ledger's there, or, if these are other rows, another account"
        )
    held = {line.analyst: line.cap.epsilon for line in statement.analysts if line.cap is not None}
    for person in house.people.values():
        stated, holds = person.caps.get(name), held.get(person.name)
        if stated is not None and holds is not None and not math.isclose(stated, holds):
            yield (
                f"Care: the cap of {person.name!r} on {name!r} is {stated:g} in the house and {holds:g} in the ledger, and "
                "that counts; the owner changes it on the page"
            )


def existing_ledger(house: House) -> SqlLedger:
    """The ledger of a house, if it is there already: looking must not create one."""
    return SqlLedger(house.ledger if "://" in house.ledger else Path(house.ledger), must_exist=True)


@contextmanager
def opened_tokens(house: House) -> Iterator[Tokens]:
    """The tokens of a house, with the ledger open and its tables this version's; also while a service runs."""
    with closing(open_ledger(house.ledger)) as ledger:
        upgrade(ledger.database)
        yield Tokens(ledger.database, house)


def bound(house: House) -> socket.socket:
    """The socket that the service listens on; that it is taken is said before anything is opened."""
    family = socket.AF_INET6 if ":" in house.host else socket.AF_INET
    try:
        made = socket.create_server((house.host, house.port), family=family, backlog=256)
        # asyncio sets this on sockets that it made itself only; without, every small answer waits 40 ms for the client.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    except OSError as error:
        raise InvalidInput(
            f"{house.host}:{house.port} cannot be listened on: {error.strerror}. Give another --port, or --host"
        ) from error


def serve(house: House, log: Log, *, begin: Callable[[Tokens], None]) -> None:
    """Serve a house until a signal ends it.

    Parameters
    ----------
    house : House
        As it is declared.
    log : Log
        Made before any row was opened.
    begin : callable
        Is called once with the tokens, when the port is ours and rows and models are open: for what is printed.
    """
    from ..service import Service
    from ..web.app import create_app

    _no_core_dumps()
    _few_arenas()
    listening = bound(house)
    with closing(listening), closing(open_ledger(house.ledger)) as ledger, _signals_only_end_the_server():
        taken = upgrade(ledger.database)
        service = Service(
            house, ledger=ledger, report=lambda where, kind: log.write("failed", level="error", where=where, kind=kind)
        )
        service.open()
        begin(Tokens(ledger.database, house))  # before the lanes: while they have rows in hand nothing can be printed
        service.start()
        try:
            server = _server(create_app(service), house, partial(_told_to_end, service, log))
            log.write("started", name=house.name, address=address_of(house), steps=" ".join(taken))
            server.run(sockets=[listening])
        finally:
            service.stop()  # again, if the application did: who hurries does not wait
            log.write("ended", name=house.name)


def _told_to_end(service: Service, log: Log, again: bool) -> None:
    """A signal came: who listens is let go at once, and a second signal waits for no question."""
    service.stopping, service.hurried = True, again
    log.at_once("cutting" if again else "ending")


def _server(app: Any, house: House, told_to_end: Callable[[bool], None]) -> Any:
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=True,
            forwarded_allow_ips=list(house.trusted_proxies),
            timeout_graceful_shutdown=max(1, round(house.drain_seconds)),
        )
    )
    obey = server.handle_exit

    def handle_exit(number: int, frame: FrameType | None) -> None:
        """The first signal drains, the second cuts."""
        told_to_end(server.should_exit)
        obey(number, frame)

    server.handle_exit = handle_exit
    return server


@contextmanager
def _signals_only_end_the_server() -> Iterator[None]:
    """Uvicorn sends a signal that it obeyed again, to whoever had it before: that would end us before the draining."""

    def ignored(number: int, frame: FrameType | None) -> None:
        """The server has obeyed it."""

    before = {number: signal.signal(number, ignored) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _no_core_dumps() -> None:
    """A core file would hold rows."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _few_arenas() -> None:
    """Let glibc's threads share a few heaps: one each would hold on to memory that the others lack."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)
