"""A service that listens, people with tokens, and a wire that breaks: what the tests of the client share."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
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

    def __init__(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.lead_to(address)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        self.breaks, self.broken = 0, 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, address: str) -> None:
        """Lead there from now on."""
        self._to = ("127.0.0.1", int(address.rpartition(":")[2]))

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._carry, args=(self._door.accept()[0],), daemon=True).start()

    def _carry(self, plain: socket.socket) -> None:
        try:
            near = plain if self._tls is None else self._tls.wrap_socket(plain, server_side=True)
        except OSError:  # they did not trust the certificate
            return
        with near, socket.create_connection(self._to) as far, suppress(OSError):
            threading.Thread(target=_pass_on, args=(near, far), daemon=True).start()
            while answer := far.recv(1 << 20):
                if self.breaks:
                    self.breaks, self.broken = self.breaks - 1, self.broken + 1
                    near.shutdown(socket.SHUT_RDWR)
                    return
                near.sendall(answer)

    def close(self) -> None:
        """Listen no more."""
        self._door.close()


def _pass_on(near: socket.socket, far: socket.socket) -> None:
    with suppress(OSError):
        while asked := near.recv(1 << 20):
            far.sendall(asked)
        far.shutdown(socket.SHUT_RDWR)


@contextmanager
def certificate(folder: Path, place: Place) -> Iterator[tuple[str, Path]]:
    """The same service by TLS, with a certificate that nobody signed, and its file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    alone = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    alone = alone.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = alone.add_extension(here, critical=False).sign(key, hashes.SHA256())
    file, secret = folder / "certificate.pem", folder / "key.pem"
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, secret)
    wire = BreakingWire(place.address, context)
    try:
        yield wire.address.replace("http", "https"), file
    finally:
        wire.close()
