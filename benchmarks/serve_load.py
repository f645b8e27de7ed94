"""Many clients at once: a cap that holds, servers that are killed, requests a second, memory."""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from running import Row
from serve_house import Client, Server, distinct_question, running, token_of, write_house
from vitrail.accounting import GaussianSum
from vitrail.accounting.cost import PICO
from vitrail.accounting.guarantee import Budget
from vitrail.ledger import open_ledger

ROOT = Path(__file__).resolve().parent.parent
N_CLIENTS, N_ATTEMPTS, N_FITTING = 32, 1000, 500
N_KILLS = 20
QUESTION_ROWS = 500
DATASETS = ("north", "south")


@contextmanager
def ledger_in(kind: str, folder: Path) -> Any:
    """The address of a fresh ledger: a file of SQLite, or a PostgreSQL server of our own."""
    if kind == "sqlite":
        yield "ledger.db"
        return
    sys.path.insert(0, str(ROOT / "tests"))
    import postgresql_server

    with postgresql_server.running(durable=True) as address:
        yield address


def price_of(epsilon: float, fitting: int) -> tuple[float, int]:
    """A price of which exactly so many fit a budget: as mu, and in whole units of the ledger."""
    capacity = Budget(epsilon, 1e-6).capacity().pico_mu_squared
    units = capacity // fitting
    mu = math.sqrt((units + 0.5) / PICO)
    assert math.floor(Fraction(mu) ** 2 * PICO) == units
    assert fitting * units <= capacity < (fitting + 1) * units
    return mu, units


def at_once(work: Callable[[int], None], clients: int) -> float:
    """Run ``work`` in so many threads, each with its number; the seconds until all have ended."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def overspend(kind: str, folder: Path, attempts: int = N_ATTEMPTS) -> Row:
    """So many attempts by 32 clients on two datasets, of which half fit: how many were granted, and what was charged."""
    fitting = attempts // 2 // len(DATASETS)
    mu, units = price_of(1.0, fitting)
    people = [f"analyst{number}" for number in range(4)]
    with ledger_in(kind, folder) as address:
        house = write_house(folder, DATASETS, ledger=address, epsilon=1.0, rows=QUESTION_ROWS, people=people)
        with running(house) as server:
            tokens = [token_of(house, person) for person in people]
            statuses: Counter[int] = Counter()
            lock = threading.Lock()

            def client(number: int) -> None:
                mine = Client(server.port, tokens[number % len(tokens)])
                for attempt in range(number, attempts, N_CLIENTS):
                    status, _ = mine.ask(DATASETS[attempt % 2], distinct_question(attempt, mu))
                    with lock:
                        statuses[status] += 1

            seconds = at_once(client, N_CLIENTS)
        ledger = open_ledger(address if "://" in address else folder / address)
        spent = [ledger.statement(name).spent.pico_mu_squared for name in DATASETS]
        capacity = [ledger.statement(name).capacity.pico_mu_squared for name in DATASETS]
        verified = ledger.verify().ok
        ledger.close()
    granted = statuses[200]
    return {
        "ledger": kind,
        "attempts": attempts,
        "granted": granted,
        "refused": statuses[402],
        "other": attempts - granted - statuses[402],
        "charged_questions": sum(spent) / units,
        "overspend": abs(granted - fitting * len(DATASETS))
        + sum(map(int, (s > c for s, c in zip(spent, capacity, strict=True)))),
        "verified": verified,
        "seconds": round(seconds, 1),
    }


def killed(kind: str, folder: Path, kills: int = N_KILLS, seed: int = 0) -> Row:
    """Kill the server at random moments under load and start it again; then look for what was lost, paid twice or free."""
    mu, units = price_of(3.0, 4000)
    draw = random.Random(seed)
    answered: dict[tuple[str, int], str] = {}
    acknowledged: dict[tuple[str, int], str] = {}
    changed, ends = [], threading.Event()
    with ledger_in(kind, folder) as address:
        house = write_house(folder, DATASETS, ledger=address, epsilon=3.0, rows=QUESTION_ROWS)
        server = Server(house)
        server.start()
        token = token_of(house, "alice")
        numbers, lock = iter(range(10**6)), threading.Lock()

        def client(number: int) -> None:
            mine = Client(server.port, token)
            while not ends.is_set():
                with lock:
                    asked = next(numbers)
                one = DATASETS[asked % 2], asked // 2
                while True:
                    try:
                        status, job = mine.ask(one[0], distinct_question(one[1], mu))
                    except OSError:  # it was killed: the same again, as a client does
                        if ends.is_set():
                            return
                        time.sleep(0.1)
                        continue
                    if status == 200:
                        acknowledged[one] = job["id"]
                        if answered.setdefault(one, job["sha256"]) != job["sha256"]:
                            changed.append(one)
                    break

        threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for _ in range(kills):
            time.sleep(draw.uniform(0.2, 2.5))
            server.kill()
            server.start()
        time.sleep(2)
        ends.set()
        for thread in threads:
            thread.join()
        mine = Client(server.port, token)
        lost = 0
        for one, name in acknowledged.items():
            status, _ = mine.call("GET", f"/v1/jobs/{name}/result")
            lost += status != 200
            status, job = mine.ask(one[0], distinct_question(one[1], mu))
            lost += status != 200 or job["sha256"] != answered[one]
        everything = json.loads(mine.call("GET", "/v1/jobs")[1])
        unfinished = [job for job in everything if job["state"] not in ("done",)]
        server.stop()
        ledger = open_ledger(address if "://" in address else folder / address)
        statements = [ledger.statement(name) for name in DATASETS]
        questions = sum(statement.n_questions for statement in statements)
        spent = sum(statement.spent.pico_mu_squared for statement in statements)
        held = sum(len(statement.reservations) for statement in statements)
        verified = ledger.verify().ok
        done = done_jobs(ledger)
        ledger.close()
    return {
        "ledger": kind,
        "kills": kills,
        "answers": len(answered),
        "jobs_done": done,
        "unfinished": len(unfinished),
        "lost": lost + len(changed),
        "double_charged": max(0, questions - done, math.ceil(spent / units) - done),
        "free_answers": max(0, done - spent // units),
        "reservations_left": held,
        "verified": verified,
    }


def done_jobs(ledger: Any) -> int:
    """How many jobs have an answer."""
    from sqlalchemy import text

    with ledger.database.transaction(read_only=True) as connection:
        return int(connection.execute(text("SELECT count(*) FROM vitrail_serve_jobs WHERE state = 'done'")).scalar())


def people_of(count: int) -> list[dict[str, Any]]:
    """Public points that are all different: draws from the schema."""
    from serve_house import DEMO
    from vitrail.desk.declaration import read_declaration
    from vitrail.serve.kinds import points_of

    schema = read_declaration(DEMO / "census.toml").schema.without("income")
    return points_of(schema, schema.frame(schema.probe_rows(count + 3)[3:]))


def pane_and_stored(
    folder: Path, explained: int = 600, stored: int = 4000, clients: int = 8
) -> tuple[dict[str, float], list[Row]]:
    """Explanations from a pane, each of somebody new; then the same and pages again, which are stored."""
    house = write_house(folder, ["census"])
    with running(house) as server:
        token = token_of(house, "alice")
        first = Client(server.port, token)
        status, job = first.ask("census", {"explainer": "pane", "model": "income", "epsilon": 1.0})
        assert status == 200, job
        path, points = f"/v1/panes/{job['pane']}/explanations", people_of(explained + 1)
        bodies = [{"point": point, "n_rows": 256, "bands": False} for point in points]
        assert first.call("POST", path, bodies[-1])[0] == 200
        failures = Counter[int]()

        def explain(number: int) -> None:
            mine = Client(server.port, token)
            for body in bodies[number:explained:clients]:
                failures[mine.call("POST", path, body)[0]] += 1

        fresh = explained / at_once(explain, clients)
        page = f"/v1/panes/{job['pane']}/page"
        first = Client(server.port, token)  # servers close what was idle
        assert first.call("GET", page)[0] == 200

        def again(number: int) -> None:
            mine = Client(server.port, token)
            for turn in range(number, stored, clients):
                found = mine.call("GET", page) if turn % 2 else mine.call("POST", path, bodies[turn % explained])
                failures[found[0]] += 1

        known = stored / at_once(again, clients)
        size = len(Client(server.port, token).call("GET", page)[1])
        rows: list[Row] = [
            {"what": "explanations from a pane, everybody new", "per_second": round(fresh, 1), "clients": clients},
            {"what": f"the same again and the pane's page ({size >> 10} KiB), by turns", "per_second": round(known, 1),
             "clients": clients},
        ]  # fmt: skip
        assert set(failures) == {200}, failures
        headline = {"explain_per_second": fresh, "stored_per_second": known}
        return {name: round(value, 1) for name, value in headline.items()}, rows


def memory(folder: Path, requests: int = 10_000, clients: int = 8) -> tuple[dict[str, float], list[Row]]:
    """What the server holds while so many requests of all kinds are made."""
    mu, _ = price_of(3.0, 4000)
    house = write_house(folder, ["census"], rows=QUESTION_ROWS)
    with running(house) as server:
        token = token_of(house, "alice")
        first = Client(server.port, token)
        _, job = first.ask("census", {"explainer": "pane", "model": "income", "epsilon": 1.0})
        points, seen = people_of(400), []
        path = f"/v1/panes/{job['pane']}/explanations"

        def one(mine: Client, turn: int) -> None:
            kind = turn % 10
            if kind == 0:
                mine.ask("census", distinct_question(turn // 10 % 1500, mu))
            elif kind == 1:
                mine.call("POST", "/v1/datasets/census/quotes", distinct_question(turn % 4000, mu))
            elif kind == 2:
                mine.call("POST", path, {"point": points[turn % 400], "n_rows": 64, "bands": False})
            elif kind == 3:
                mine.call("POST", path, {"point": {"age": "none"}, "n_rows": 64})
            elif kind == 4:
                mine.call("GET", f"/v1/panes/{job['pane']}/page")
            else:
                mine.call("GET", ("/v1/datasets", "/v1/jobs", "/v1/me", "/v1/datasets/census/bill", "/nothing")[kind - 5])

        steps = 10
        for step in range(steps):

            def work(number: int, step: int = step) -> None:
                mine = Client(server.port, token)
                for turn in range(number, requests // steps, clients):
                    one(mine, step * requests // steps + turn)

            at_once(work, clients)
            seen.append(server.memory_mib)
        rows: list[Row] = [
            {"requests": (step + 1) * requests // steps, "mib": round(mib, 1)} for step, mib in enumerate(seen)
        ]
        half = statistics.mean(seen[-2:]) / statistics.mean(seen[steps // 2 - 2 : steps // 2])
        return {"memory_growth": round(half, 3), "memory_mib": round(seen[-1], 1)}, rows


def charges(folder: Path, seconds: float = 10.0, accounts: int = 32) -> tuple[dict[str, float], list[Row]]:
    """Charges a second: of a ledger in PostgreSQL that 32 threads of one process charge, each an account of its own."""
    with ledger_in("postgresql", folder) as address:
        ledger = open_ledger(address)
        for number in range(accounts):
            ledger.open_account(f"account {number}", Budget(10.0, 1e-6), "add-remove")
        counts, event = [0] * accounts, GaussianSum(1.0, 5000.0)
        until = time.perf_counter() + seconds

        def work(number: int) -> None:
            while time.perf_counter() < until:
                asked = {"question": "sum", "number": counts[number]}
                ledger.charge(f"account {number}", analyst="alice", event=event, question=asked, key=None)
                counts[number] += 1

        taken = at_once(work, accounts)
        verified = ledger.verify().ok
        ledger.close()
    assert verified
    rate = sum(counts) / taken
    return {"charges_per_second": round(rate, 1)}, [
        {"accounts": accounts, "charges": sum(counts), "seconds": round(taken, 2)}
    ]
