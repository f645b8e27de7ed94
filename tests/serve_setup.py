"""A small house for tests: rows, a declaration, an ONNX model, people; and the service of it, started."""

from __future__ import annotations

import functools
import hashlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.serve.house import House, read_house
from vitrail.serve.operation.migrate import upgrade
from vitrail.serve.principal import Principal, Role
from vitrail.serve.service import Service

N_ROWS = 400
POINT: dict[str, Any] = {"age": 30, "hours": 40.0, "sex": "Male"}
SHAPLEY: dict[str, Any] = {"explainer": "shapley", "model": "score", "points": [POINT], "epsilon": 0.5}
DECLARATION = """
format = 1
[dataset]
name = "{name}"
source = "{name}.csv"
rows = {rows}
target = "rich"
[budget]
epsilon = {epsilon}
ledger = "{ledger}"
[columns.age]
kind = "integer"
low = 18
high = 90
[columns.hours]
kind = "number"
low = 0
high = 80
[columns.sex]
levels = ["Female", "Male"]
[columns.rich]
levels = ["no", "yes"]
"""
HOUSE = """
format = 1
[service]
name = "A house for tests"
slot_seconds = {slot}
requests_per_minute = 100000
{more}
[people.alice]
role = "analyst"
[people.bob]
role = "analyst"
datasets = ["{first}"]
[people.rita]
role = "reader"
[people.audrey]
role = "auditor"
[models.score]
file = "score.onnx"
sha256 = "{sha}"
inputs = "features"
download = true
"""
PEOPLE: Mapping[str, Role] = {
    "owner": "owner", "alice": "analyst", "bob": "analyst", "rita": "reader", "audrey": "auditor"
}  # fmt: skip


def rows_csv(n: int = N_ROWS, seed: int = 0) -> str:
    """Rows of nobody's, as a CSV file holds them."""
    generator = np.random.default_rng(seed)
    age, hours = generator.integers(18, 91, n), generator.uniform(0, 80, n).round(1)
    sex = generator.choice(["Female", "Male"], n)
    rich = np.where((age - 18) / 72 + hours / 80 + 0.3 * generator.normal(size=n) > 1, "yes", "no")
    lines = (f"{a},{h},{s},{r}" for a, h, s, r in zip(age, hours, sex, rich, strict=True))
    return "age,hours,sex,rich\n" + "\n".join(lines) + "\n"


@functools.cache
def onnx_model(threshold: float = 1.1) -> bytes:
    """A small logistic model of encoded features."""
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    generator = np.random.default_rng(0)
    features = generator.uniform(size=(200, 4)).astype(np.float32)
    labels = features[:, 0] + features[:, 1] + 0.2 * features[:, 3] > threshold
    fitted = LogisticRegression().fit(features, labels)
    content: bytes = to_onnx(fitted, features[:1], options={"zipmap": False}).SerializeToString()
    return content


def write_house(
    folder: Path, *, names: tuple[str, ...] = ("staff",), ledger: str = "ledger.db", epsilon: float = 20.0,
    slot: float = 0.0, approve_above: float | None = None, rows: int = N_ROWS, more: str = "",
) -> Path:  # fmt: skip
    """Write all files of a house; returns the path of house.toml."""
    for number, name in enumerate(names):
        (folder / f"{name}.csv").write_text(rows_csv(rows, number))
        declared = DECLARATION.format(name=name, rows=rows, epsilon=epsilon, ledger=ledger)
        (folder / f"{name}.toml").write_text(declared)
    (folder / "score.onnx").write_bytes(onnx_model())
    sha = hashlib.sha256(onnx_model()).hexdigest()
    text = HOUSE.format(slot=slot, sha=sha, first=names[0], more=more)
    above = "" if approve_above is None else f"approve_above = {approve_above}\n"
    for name in names:
        text += f'[datasets.{name}]\ndeclaration = "{name}.toml"\n{above}'
    path = folder / "house.toml"
    path.write_text(text)
    return path


def person(name: str, house: House | None = None) -> Principal:
    """Somebody of the house, as a checked credential would say."""
    known = None if house is None else house.person(name)
    datasets = None if known is None or known.datasets is None else frozenset(known.datasets)
    return Principal(name, PEOPLE[name], datasets, may_buy=True, credential="test")


@contextmanager
def serving(path: Path, *, started: bool = True) -> Iterator[Service]:
    """The service of a house, without the web."""
    service = Service(read_house(path))
    upgrade(service.ledger.database)
    if started:
        service.start()
    try:
        yield service
    finally:
        service.stop()
        service.ledger.close()


def spent(service: Service, name: str = "staff") -> float:
    """What the account of a dataset has spent, as epsilon."""
    return float(str(service.statement(person("owner"), name)["spent_epsilon"]))


def finished(service: Service, who: Principal, job_id: str, seconds: float = 60.0) -> Any:
    """A job when it has ended, or waits."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        job = service.job(who, job_id)
        if job.state not in ("queued", "running"):
            return job
        time.sleep(0.01)
    raise TimeoutError(f"the job is {service.job(who, job_id).state} still")


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """The address of an application, while a real server listens there."""
    import uvicorn

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started and time.monotonic() < until and thread.is_alive():
        time.sleep(0.02)
    assert server.started
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)
