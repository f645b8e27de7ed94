"""A service that listens, people with tokens, and a wire that breaks: what the tests of the client share."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vitrail as vt
from serve_setup import listening, serving
from vitrail.serve.access.gate import Gate
from vitrail.serve.service import Service
from vitrail.serve.web.app import create_app


@dataclass(frozen=True)
class Place:
    """A service at an address."""

    service: Service
    address: str
    gate: Gate

    def token(self, name: str) -> str:
        """A new token of somebody's."""
        return self.gate.tokens.issue(name)[1]

    def connect(self, name: str = "alice", **options: Any) -> vt.RemoteHouse:
        """A connection of somebody's."""
        return vt.connect(options.pop("address", self.address), self.token(name), **options)

    def rows_of(self, name: str = "alice", dataset: str = "staff") -> vt.PrivateData:
        """The same data without a service between, as this person asks it: with the same ledger."""
        return self.service._data[dataset].for_analyst(name)


@contextmanager
def listening_house(path: Path) -> Iterator[Place]:
    """The service of a house file, at a real socket."""
    with serving(path) as service:
        gate = Gate(service.house, service.ledger.database)
        with listening(create_app(service, gate=gate)) as address:
            yield Place(service, address, gate)


class BreakingWire:
    """A wire to a service that breaks: of the first so many requests, the answer is cut off after the service gave it."""

    def __init__(self, address: str) -> None:
        self._to = ("127.0.0.1", int(address.rpartition(":")[2]))
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        self.breaks, self.broken = 0, 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._carry, args=(self._door.accept()[0],), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._to) as far, suppress(OSError):
            while asked := near.recv(1 << 20):
                far.sendall(asked)
                answer = far.recv(1 << 20)
                if self.breaks:
                    self.breaks, self.broken = self.breaks - 1, self.broken + 1
                    return
                near.sendall(answer)
                far.settimeout(0.05)
                with suppress(TimeoutError):
                    while more := far.recv(1 << 20):
                        near.sendall(more)
                far.settimeout(60)

    def close(self) -> None:
        """Listen no more."""
        self._door.close()
