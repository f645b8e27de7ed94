"""What the benchmarks of the service share: houses of census rows, a server in a process of its own, clients.

The rows, their declaration and the model are those of ``vitrail serve --demo``. Servers are started by the command, as
people do, and are listened to on a port of this machine.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

DEMO = Path(str(files("vitrail"))) / "serve" / "demo"
COMMAND = [sys.executable, "-c", "from vitrail.cli import main; main()", "serve"]
START_SECONDS = 120.0


def write_house(
    folder: Path,
    names: Sequence[str],
    *,
    ledger: str = "ledger.db",
    epsilon: float = 3.0,
    rows: int = 15_000,
    slot: float = 0.0,
    people: Sequence[str] = ("alice",),
) -> Path:
    """Write a house of datasets with the first census rows each; returns the path of house.toml."""
    declared = (DEMO / "census.toml").read_text()
    table = pq.read_table(DEMO / "census.parquet").slice(0, rows)
    model = (DEMO / "income.onnx").read_bytes()
    (folder / "income.onnx").write_bytes(model)
    text = f'format = 1\n[service]\nname = "Census"\nslot_seconds = {slot}\nrequests_per_minute = 10000000\n'
    text += f'[models.income]\nfile = "income.onnx"\nsha256 = "{hashlib.sha256(model).hexdigest()}"\n'
    for name in names:
        pq.write_table(table, folder / f"{name}.parquet")
        own = declared.replace('name = "census"', f'name = "{name}"').replace('"census.parquet"', f'"{name}.parquet"')
        own = own.replace("rows = 15000", f"rows = {rows}").replace("epsilon = 3.0", f"epsilon = {epsilon!r}")
        (folder / f"{name}.toml").write_text(own.replace('"ledger.db"', json.dumps(ledger)))
        text += f'[datasets.{name}]\ndeclaration = "{name}.toml"\n'
    for person in people:
        text += f'[people.{person}]\nrole = "analyst"\n'
    path = folder / "house.toml"
    path.write_text(text)
    return path


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """``vitrail serve HOUSE``, in a process of its own."""

    def __init__(self, house: Path, port: int | None = None) -> None:
        self.house, self.port = house, port or free_port()
        self.log = house.with_suffix(".log")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*COMMAND, str(self.house), "--port", str(self.port)], stdout=log, stderr=log, env=environment
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.log.read_text()[-2000:]}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise TimeoutError("the server did not get ready")

    def kill(self) -> None:
        """As a machine that loses its power does it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """As an operator does it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()

    @property
    def memory_mib(self) -> float:
        """What it holds in memory now."""
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("the system does not say")


@contextmanager
def running(house: Path) -> Iterator[Server]:
    """A server, while the block runs."""
    server = Server(house)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def token_of(house: Path, person: str) -> str:
    """A token for somebody, made by the command."""
    said = subprocess.run([*COMMAND, "token", str(house), person], check=True, capture_output=True, text=True)
    return said.stdout.split()[-1]


class Client:
    """One connection, kept open."""

    def __init__(self, port: int, token: str, timeout: float = 120.0) -> None:
        self._port, self._token, self._timeout = port, token, timeout
        self._connection: http.client.HTTPConnection | None = None

    def call(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """Status and content of an answer; an ``OSError`` where the connection breaks."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout)
        content = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, content, {"Authorization": f"Bearer {self._token}"})
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = None
            raise OSError(str(error)) from error

    def ask(self, dataset: str, request: object) -> tuple[int, dict[str, Any]]:
        """Buy; the job or the problem, when it has ended."""
        status, content = self.call("POST", f"/v1/datasets/{dataset}/explanations", request)
        found: dict[str, Any] = json.loads(content)
        while status in (200, 202) and found["state"] in ("queued", "running"):
            status, content = self.call("GET", f"/v1/jobs/{found['id']}?wait=30")
            found = json.loads(content)
        if status == 200 and found["state"] in ("refused", "failed"):
            return int(found["problem"]["status"]), found["problem"]
        return status, found


COLUMNS = (
    "age", "workclass", "education", "education-num", "marital-status", "occupation", "relationship", "race", "sex",
    "capital-gain", "capital-loss", "hours-per-week",
)  # fmt: skip


def distinct_question(number: int, mu: float) -> dict[str, object]:
    """One of 4 095 different questions, all of one price: histograms of some of the columns."""
    chosen = [name for place, name in enumerate(COLUMNS) if (number + 1) >> place & 1]
    return {"explainer": "marginals", "options": {"columns": chosen, "bins": 4}, "mu": mu}
