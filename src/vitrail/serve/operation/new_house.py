"""A house to begin with: the text of a ``house.toml`` for declarations and models, and the folder of the demo."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...desk.declaration import read_declaration
from ...errors import InvalidInput
from ..house import DEFAULT_PORT, House, read_house
from ..principal import OWNER, ROLES

DEMO = Path(__file__).parents[1] / "demo"
"""Rows, declaration and model of the demo, with their licence."""
DEMO_FILES = ("census.parquet", "census.toml", "income.onnx", "README.md")
DEMO_PEOPLE = {"alice": "analyst", "rita": "reader", "audrey": "auditor"}
DEMO_CAP, DEMO_APPROVE_ABOVE = 0.5, 0.3
HOUSE = "house.toml"
HEAD = """\
# A service of Vitrail: what is served, which models are approved, and who may ask. `vitrail serve {file} --check` reads it.
# Paths begin at this file. Nothing here is secret: tokens are made by `vitrail serve token {file} NAME`.
"""


@dataclass(frozen=True)
class NewHouse:
    """What a new house is written from.

    Attributes
    ----------
    name : str
        What the service is called.
    declarations : sequence of Path
        Datasets, as ``vitrail init`` writes them.
    models : sequence of Path
        ONNX files; writing a house approves them, by their hashes.
    people : mapping of str to str
        Roles by name; the owner is there anyway.
    caps : mapping of str to mapping
        What people may learn at most, as epsilon, by dataset.
    outputs : mapping of str to str
        Which output of a model is explained, by the model's name; its own choice if not given.
    approve_above : float, optional
        Dearer questions wait for the owner.
    port : int
        Where it listens.
    """

    name: str
    declarations: Sequence[Path]
    models: Sequence[Path] = ()
    people: Mapping[str, str] = field(default_factory=dict)
    caps: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    approve_above: float | None = None
    port: int = DEFAULT_PORT

    def text(self, file: Path) -> str:
        """The house, as it is written to ``file``: commented, and complete."""
        return HEAD.format(file=file.name) + "\n".join(self._lines(file.absolute().parent)) + "\n"

    def _lines(self, folder: Path) -> Iterator[str]:
        yield "format = 1"
        yield ""
        yield "[service]"
        yield f"name = {_quoted(self.name)}"
        yield 'host = "127.0.0.1"              # where it listens; a proxy in front of it does TLS'
        yield f"port = {self.port}"
        yield '# address = "https://vitrail.example"   # the public address; https makes cookies secure'
        yield 'trusted_proxies = ["127.0.0.1"]  # whose word about the client is taken'
        yield "slot_seconds = 1.0              # answers leave at whole slots, so that none tells by its time"
        yield "requests_per_minute = 600       # of each person"
        yield 'access_log = "access.jsonl"     # who asked for what, beside this file'
        yield "drain_seconds = 30              # how long questions at work may take when the service ends"
        for path in self.declarations:
            declared = read_declaration(path)
            yield ""
            yield f"[datasets.{_key(declared.name)}]"
            yield f"declaration = {_quoted(_relative(path, folder))}"
            above = "# approve_above = 0.5" if self.approve_above is None else f"approve_above = {self.approve_above!r}"
            yield f"{above:30} # epsilon; dearer questions wait for the owner"
        for path in self.models:
            yield ""
            yield f"[models.{_key(path.stem)}]"
            yield f"file = {_quoted(_relative(path, folder))}"
            yield f"sha256 = {_quoted(sha256_of(path))}  # the approval: another file is refused"
            output = self.outputs.get(path.stem)
            yield (
                '# output = "yes"               # which output is explained, by its class or its number'
                if output is None
                else f"output = {_quoted(output)}"
            )
            yield '# inputs = "values"             # or features: what the model takes, where it does not say so itself'
            yield "# range = [0, 1]                # of its output, where that is not plain"
            yield "# download = true              # let analysts have the file"
            yield "# datasets = [...]             # all, if not given"
        if not self.people:
            yield ""
            yield "# [people.alice]"
            yield '# role = "analyst"            # or reader, or auditor; the owner is there anyway'
            yield "# [people.alice.caps]"
            yield "# census = 0.5                # the most epsilon that she may learn of it"
        for name, role in self.people.items():
            yield ""
            yield f"[people.{_key(name)}]"
            yield f"role = {_quoted(role)}"
            if caps := self.caps.get(name):
                yield f"[people.{_key(name)}.caps]"
                yield from (f"{_key(dataset)} = {epsilon!r}" for dataset, epsilon in caps.items())

    def write(self, file: Path) -> House:
        """Write it, and read it again: what is wrong with it is said before anybody starts it."""
        for path in self.models:
            if path.suffix != ".onnx":
                raise InvalidInput(
                    f"--model is {str(path)!r}; the service takes ONNX files, which run no code: export it to .onnx"
                )
        for name, role in self.people.items():
            if role not in ROLES or (role == "owner") != (name == OWNER):
                raise InvalidInput(f"--person is {name}={role}; roles are analyst, reader and auditor, as in alice=analyst")
        names = [path.stem for path in self.models]
        if len({*names}) < len(names):
            raise InvalidInput(f"two models are called {max(names, key=names.count)!r}; rename one of the files")
        file.write_text(self.text(file), encoding="utf-8")
        return read_house(file)


def make_demo(folder: Path) -> tuple[Path, bool]:
    """A folder with a house to try: census rows, a model, an analyst, a reader and an auditor.

    Returns
    -------
    (Path, bool)
        The house, and whether it was there before: then it goes on where it stood, with what is left of its budget.
    """
    house = folder / HOUSE
    if house.exists():
        if not _is_demo(folder):
            raise InvalidInput(f"{str(folder)!r} holds a house that is not the demo; start it with `vitrail serve {house}`")
        return house, True
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput(f"{str(folder)!r} is not empty, and holds no demo; name another folder with --folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name in DEMO_FILES:
        shutil.copyfile(DEMO / name, folder / name)
    demo = NewHouse(
        "Vitrail demo",
        [folder / "census.toml"],
        [folder / "income.onnx"],
        DEMO_PEOPLE,
        {"alice": {"census": DEMO_CAP}},
        {"income": ">50K"},
        DEMO_APPROVE_ABOVE,
    )
    demo.write(house)
    return house, False


def _is_demo(folder: Path) -> bool:
    """Whether all that is served there is what the demo serves: its tokens are printed for everybody to see."""
    for name in DEMO_FILES[:3]:
        if not (folder / name).is_file() or (folder / name).read_bytes() != (DEMO / name).read_bytes():
            return False
    served = read_house(folder / HOUSE)
    return set(served.datasets) == {"census"} and served.ledger == str(read_declaration(folder / "census.toml").ledger)


def sha256_of(path: Path) -> str:
    """The hash by which a model is approved."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InvalidInput(f"the model {str(path)!r} cannot be read: {error.strerror}") from error


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.absolute(), folder)).as_posix()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
