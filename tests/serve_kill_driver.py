"""Kill a service at one step after the other, and look at what the next one finds; run by tests/serve/test_kills.py.

    python serve_kill_driver.py FOLDER

Every life is a fork of this process, which has imported everything and opened nothing. A line of JSON for each case.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from serve_setup import POINT, finished, person, serving, write_house
from vitrail.ledger import SqlLedger
from vitrail.serve.store import Store

STEPS: list[tuple[type, str, int]] = [
    (Store, "add", 1), (Store, "change", 1), (SqlLedger, "reserve", 1), (SqlLedger, "charge", 1), (SqlLedger, "store", 1),
    (SqlLedger, "charge", 2), (SqlLedger, "store", 2), (SqlLedger, "finish", 1), (Store, "finish", 1),
]  # fmt: skip
"""Everything durable that an answer takes, in its order: a method, and which call of it."""
ASKED = {"explainer": "shapley", "model": "score", "points": [POINT], "epsilon": 0.5, "options": {"clip": "auto"}}
"""Two questions, so that a kill may lie between them."""


def in_a_life(work: Callable[[], None]) -> int:
    """Run in a fork; how it ended."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(pid, 0)[1]


def killing(owner: type, name: str, call: int, after: bool) -> None:
    """Let the process be killed at a call of a method: before it does anything, or when it has done it."""
    real, calls = getattr(owner, name), 0

    def killed(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        made = real(*args, **options)
        if calls == call and after:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    setattr(owner, name, killed)


def first_life(path: Path, owner: type, name: str, call: int, after: bool) -> None:
    alice = person("alice")
    with serving(path) as service:
        killing(owner, name, call, after)
        finished(service, alice, service.submit(alice, "staff", ASKED).id)


def next_life(path: Path, case: dict[str, Any]) -> None:
    """Go on, and ask again as a client does; then look at answers and the bill."""
    alice, owner = person("alice"), person("owner")
    with serving(path) as service:
        known = service.jobs(alice)
        job = finished(service, alice, service.submit(alice, "staff", ASKED).id)
        again = finished(service, alice, service.submit(alice, "staff", ASKED).id)
        made = service.ledger.statement("staff")
        told = {"known": len(known), "state": job.state, "same": job.content_sha256 == again.content_sha256}
        told |= {"spent": made.spent.pico_mu_squared, "questions": made.n_questions, "open": len(made.reservations)}
        print(json.dumps({**case, **told, "verified": service.verify(owner)["ok"]}), flush=True)


def main(folder: Path) -> None:
    cases = [(owner, name, call, after) for owner, name, call in STEPS for after in (False, True)]
    for number, (owner, name, call, after) in enumerate([(Store, "never", 0, False), *cases]):
        home = folder / str(number)
        home.mkdir()
        path = write_house(home)
        if name != "never":
            status = in_a_life(lambda: first_life(path, owner, name, call, after))  # noqa: B023 - run at once
            was_killed = os.WIFSIGNALED(status)
        else:
            was_killed = False
        case = {"step": f"{owner.__name__}.{name}", "call": call, "after": after, "killed": was_killed}
        in_a_life(lambda: next_life(path, case))  # noqa: B023 - run at once


if __name__ == "__main__":
    main(Path(sys.argv[1]))
