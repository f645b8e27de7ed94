"""What the owner declares about a service: one file, ``house.toml``, public but for what its paths lead to.

Datasets are declared in files of their own, as ``vitrail init`` writes them, with the budget and the ledger. A model is
approved by its hash: who changes the file changes no model of the service, but stops it from starting.
"""

from __future__ import annotations

import hashlib
import ipaddress
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from .. import _checks
from ..desk.declaration import Declaration, read_declaration
from ..errors import InvalidInput, ModelError, SchemaError
from ..model import Model
from ..schema import Schema
from .principal import OWNER, ROLES, Role

FORMAT = 1
DEFAULT_PORT = 8765
MOST_SECONDS = 3600.0
_TABLES = ("format", "service", "datasets", "models", "people", "oidc")
_ADDRESS = ("name", "ledger", "host", "port", "address", "access_log", "trusted_proxies")
_SERVICE = (*_ADDRESS, "slot_seconds", "requests_per_minute", "drain_seconds", "attempts")
_MODEL = ("file", "sha256", "datasets", "output", "range", "inputs", "download")
_OIDC = ("issuer", "audience", "claim", "jwks_file", "people")


@dataclass(frozen=True)
class HouseDataset:
    """A declared dataset, and above which price the owner is asked first."""

    name: str
    declaration: Declaration
    approve_above: float | None = None


@dataclass(frozen=True)
class HouseModel:
    """A model that the owner approved, by the hash of its ONNX file; for which datasets (None: all); who may have it."""

    name: str
    file: Path
    sha256: str
    datasets: tuple[str, ...] | None = None
    output: str | int | None = None
    bounds: tuple[float, float] | None = None
    inputs: Literal["auto", "features", "values", "frame", "category-frame"] = "auto"
    download: bool = False

    def open(self) -> Model:
        """The model, if the file is still the one that was approved."""
        content = self.content()
        with self._named():
            return Model(content, output=self.output, range=self.bounds, inputs=self.inputs, name=self.name)

    def check(self, model: Model, schema: Schema) -> None:
        """Refuse a model that does not take the columns of a dataset."""
        with self._named():
            model.check(schema)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the model, in the words of this file."""
        try:
            yield
        except (InvalidInput, SchemaError, ModelError) as error:
            said = str(error).replace("--inputs ", "inputs = ").replace("--range LOW HIGH", "range = [LOW, HIGH]")
            raise InvalidInput(
                f"[models.{self.name}], {self.file.name}: {said}. Options of a model go under that line"
            ) from error

    def content(self) -> bytes:
        """The file's bytes; an error if they are not those that were approved."""
        try:
            content = self.file.read_bytes()
        except OSError as error:
            raise InvalidInput(f"file of [models.{self.name}] cannot be read: {error.strerror}: {self.file.name}") from error
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise InvalidInput(
                f"the file of [models.{self.name}] is not the one that was approved: its SHA-256 is {found}, and the house "
                f"says {self.sha256 or 'nothing'}. If it is to be approved, write that hash there"
            )
        return content


@dataclass(frozen=True)
class HousePerson:
    """Somebody who may sign in: a role, datasets (None: all), and what they may learn of each at most, as epsilon."""

    name: str
    role: Role
    datasets: tuple[str, ...] | None = None
    caps: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class HouseOidc:
    """Whose signed tokens are taken, and which of their claims names whom."""

    issuer: str
    audience: str
    claim: str
    jwks_file: Path | None
    people: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class House:
    """A service as it is declared. ``slot_seconds`` is how often answers leave; 0 lets them leave when they are ready."""

    name: str
    folder: Path
    ledger: str
    datasets: Mapping[str, HouseDataset]
    models: Mapping[str, HouseModel] = field(default_factory=dict)
    people: Mapping[str, HousePerson] = field(default_factory=dict)
    oidc: HouseOidc | None = None
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    address: str | None = None
    slot_seconds: float = 1.0
    requests_per_minute: int = 600
    access_log: Path = Path("access.jsonl")
    drain_seconds: float = 30.0
    attempts: int = 3
    trusted_proxies: tuple[str, ...] = ("127.0.0.1",)

    def person(self, name: str) -> HousePerson | None:
        """Somebody by name; the owner is always there."""
        return self.people.get(name) or (HousePerson(OWNER, "owner") if name == OWNER else None)


def read_house(path: Path) -> House:
    """The house that a file declares, or an error that says what is wrong with it, and where. No row is read."""
    try:
        with path.open("rb") as file:
            fields = tomllib.load(file)
    except OSError as error:
        hint = _checks.did_you_mean(path.name, [one.name for one in path.parent.glob("*")] if path.parent.is_dir() else [])
        raise InvalidInput(f"the house {str(path)!r} cannot be read: {error.strerror}.{hint}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} is no TOML file that can be read: {error}") from error
    try:
        return house_of(fields, path)
    except (InvalidInput, SchemaError) as error:
        raise type(error)(f"{path.name}: {error}") from error


def house_of(fields: Mapping[str, Any], path: Path) -> House:
    """The house that a file's tables are; ``path`` is where it lies, and other paths begin there."""
    _check_keys("the file", fields, _TABLES)
    if fields.get("format") != FORMAT or type(fields["format"]) is not int:
        raise InvalidInput(f"format is {fields.get('format')!r}; this version reads format = {FORMAT}, the first line")
    service = _table(fields, "service", "the file")
    _check_keys("[service]", service, _SERVICE)
    datasets = {name: _dataset(name, facts, path) for name, facts in _table(fields, "datasets", "the file").items()}
    if not datasets:
        raise InvalidInput('there is no [datasets.NAME]; declare one: declaration = "census.toml"')
    models = {name: _model(name, facts, path, datasets) for name, facts in _table(fields, "models", "the file").items()}
    people = {name: _person(name, facts, datasets) for name, facts in _table(fields, "people", "the file").items()}
    folder = path.absolute().parent
    number: dict[str, float] = {
        name: _checks.number(name, service[name], low=0, high=MOST_SECONDS, of="[service]")
        for name in ("slot_seconds", "drain_seconds")
        if name in service
    }
    whole: dict[str, int] = {
        name: _checks.whole(name, service[name], most=most, of="[service]")
        for name, most in (("port", 65535), ("requests_per_minute", 10**7), ("attempts", 100))
        if name in service
    }
    texts = {name: _text(name, service[name], "[service]") for name in ("host", "address") if name in service}
    if "address" in texts:
        _check_address(texts["address"])
    proxies: dict[str, tuple[str, ...]] = (
        {"trusted_proxies": _texts("trusted_proxies", service["trusted_proxies"], "[service]")}
        if "trusted_proxies" in service
        else {}
    )
    for proxy in proxies.get("trusted_proxies", ()):
        _check_network(proxy)
    return House(
        name=_text("name", service.get("name", path.stem), "[service]"),
        folder=folder,
        ledger=_ledger(service.get("ledger"), datasets, folder),
        datasets=datasets,
        models=models,
        people=people,
        oidc=_oidc(fields, people, folder),
        access_log=folder / _text("access_log", service.get("access_log", "access.jsonl"), "[service]"),
        **texts,  # type: ignore[arg-type]
        **number,  # type: ignore[arg-type]
        **whole,  # type: ignore[arg-type]
        **proxies,  # type: ignore[arg-type]
    )


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
        raise InvalidInput(
            f'address of [service] is {address!r}; write how people reach the service, such as "https://vitrail.example"'
        )


def _check_network(text: str) -> None:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise InvalidInput(
            f'trusted_proxies of [service] has {text!r}; write addresses or networks, such as "127.0.0.1" or "10.0.0.0/8"'
        ) from error


def _dataset(name: str, facts: object, path: Path) -> HouseDataset:
    where = f"[datasets.{name}]"
    given = _checked_table(where, facts, ("declaration", "approve_above"))
    file = path.parent / _text("declaration", given.get("declaration", f"{name}.toml"), where)
    above = given.get("approve_above")
    limit = None if above is None else _checks.number("approve_above", above, low=0, high=1e6, of=where)
    declared = read_declaration(file)
    if declared.name != name:
        raise InvalidInput(
            f"{where} names {file.name}, whose dataset is called {declared.name!r}; call it [datasets.{declared.name}]"
        )
    return HouseDataset(name, declared, limit)


def _model(name: str, facts: object, path: Path, datasets: Mapping[str, HouseDataset]) -> HouseModel:
    where = f"[models.{name}]"
    given = _checked_table(where, facts, _MODEL)
    bounds = given.get("range")
    if bounds is not None and (
        not isinstance(bounds, list) or len(bounds) != 2 or not all(isinstance(end, int | float) for end in bounds)
    ):
        raise InvalidInput(f"range of {where} is {bounds!r}; give two numbers, such as [0, 100]")
    file = _text("file", given.get("file", f"{name}.onnx"), where)
    if not file.endswith(".onnx"):
        raise InvalidInput(
            f"file of {where} is {file!r}; the service takes ONNX files, which run no code: export it to .onnx"
        )
    inputs = _checks.choice(
        "inputs", given.get("inputs", "auto"), ("auto", "features", "values", "frame", "category-frame"), of=where
    )
    return HouseModel(
        name,
        path.absolute().parent / file,
        _text("sha256", given.get("sha256", ""), where, empty=True).lower(),
        _known("datasets", given.get("datasets"), datasets, where),
        given.get("output"),
        None if bounds is None else (float(bounds[0]), float(bounds[1])),
        cast("Any", inputs),
        _checks.flag("download", given.get("download", False), of=where),
    )


def _person(name: str, facts: object, datasets: Mapping[str, HouseDataset]) -> HousePerson:
    where = f"[people.{name}]"
    given = _checked_table(where, facts, ("role", "datasets", "caps"))
    role = _checks.choice("role", given.get("role", "analyst"), ROLES, of=where)
    if (name == OWNER) != (role == "owner"):
        raise InvalidInput(f"role of {where} is {role!r}; the person called 'owner', and nobody else, is the owner")
    caps = _checked_table(f"[people.{name}.caps]", given.get("caps", {}), tuple(datasets))
    declared = {
        one: _checks.number(one, epsilon, low=0, high=datasets[one].declaration.budget.epsilon, of=f"[people.{name}.caps]")
        for one, epsilon in caps.items()
    }
    return HousePerson(name, role, _known("datasets", given.get("datasets"), datasets, where), declared)


def _oidc(fields: Mapping[str, Any], people: Mapping[str, HousePerson], folder: Path) -> HouseOidc | None:
    if "oidc" not in fields:
        return None
    given = _checked_table("[oidc]", fields["oidc"], _OIDC)
    for wanted in ("issuer", "audience"):
        if wanted not in given:
            raise InvalidInput(f"[oidc] has no {wanted}; name it, as the identity provider does")
    mapped = _table(given, "people", "[oidc]")
    for who, name in mapped.items():
        if name not in (*people, OWNER):
            raise InvalidInput(
                f"{who!r} of [oidc.people] is {name!r}: nobody of [people] is called so.{_checks.did_you_mean(name, people)}"
            )
    file = given.get("jwks_file")
    return HouseOidc(
        _text("issuer", given["issuer"], "[oidc]"),
        _text("audience", given["audience"], "[oidc]"),
        _text("claim", given.get("claim", "email"), "[oidc]"),
        None if file is None else folder / _text("jwks_file", file, "[oidc]"),
        {str(who): str(name) for who, name in mapped.items()},
    )


def _ledger(given: object, datasets: Mapping[str, HouseDataset], folder: Path) -> str:
    """The one ledger: the declarations' own. Two would be two budgets."""
    from ..ledger.database import parse

    def place(text: str) -> object:
        return parse(text if "://" in text else Path(text))

    named = {place(one.declaration.ledger): one.declaration.ledger for one in datasets.values()}
    if len(named) > 1:
        raise InvalidInput(
            f"the datasets name {len(named)} ledgers, and a service keeps one bill; let all declarations name the same"
        )
    if given is not None:
        text = _text("ledger", given, "[service]")
        relative = text.removeprefix("sqlite:///")
        if place(text if "://" in relative else str(folder / relative)) not in named:
            raise InvalidInput(
                "ledger of [service] is another than the declarations'; two ledgers are two budgets for the same rows. "
                "Name the same in [budget] of every declaration, or leave it out here"
            )
    return next(iter(named.values()))


def _check_keys(where: str, given: Mapping[str, Any], known: tuple[str, ...] | list[str]) -> None:
    for name in given:
        if name not in known:
            hint = _checks.did_you_mean(name, known)
            raise InvalidInput(f"{where} has {name!r}, which is not known there; known are {', '.join(known)}.{hint}")


def _table(fields: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    given = fields.get(name, {})
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{name} of {where} is {given!r}; it must be a table")
    return given


def _checked_table(where: str, given: object, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{where} is {given!r}; it must be a table")
    _check_keys(where, given, keys)
    return given


def _text(name: str, given: object, where: str, *, empty: bool = False) -> str:
    return "" if empty and given == "" else _checks.text(name, given, of=where)


def _texts(name: str, given: object, where: str) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise InvalidInput(f"{name} of {where} is {given!r}; give a list of texts")
    return tuple(_text(name, one, where) for one in given)


def _known(name: str, given: object, datasets: Mapping[str, HouseDataset], where: str) -> tuple[str, ...] | None:
    if given is None:
        return None
    named = _texts(name, given, where)
    for one in named:
        if one not in datasets:
            raise InvalidInput(
                f"{name} of {where} names {one!r}, and there is no such dataset.{_checks.did_you_mean(one, datasets)}"
            )
    return named
