"""Letters to many people from one pane: a page each, an index, and the reasons for a decision system. Free. No vault."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _checks
from ..errors import InvalidInput
from ..progress import progress
from ..results.archive import json_bytes, write_bytes
from ..schema.frames import eager_frame
from ..show.letter import Letter, decision_record
from ..show.pages import page
from ..show.style import render, write_page
from ..solve.counterfactual.classes import OPPOSITE
from .person import Person, explained_all, letter_of

if TYPE_CHECKING:
    from ..model import Model
    from .pane import Pane

AT_ONCE = 32
"""People that the model is asked about together."""
MOST_PEOPLE = 100_000
INDEX, RECORDS, TABLE = "index.html", "reasons.json", "reasons.csv"
FORMAT = "vitrail-letters/1"
HEADER = ("page", "outcome", "output", "rank", "column", "contribution", "favourable", "certain", "code", "sentence")
"""Of the table of reasons."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class WrittenLetters:
    """What was written.

    Attributes
    ----------
    folder : Path
        Where: a page for each person, ``index.html``, ``reasons.json`` and ``reasons.csv``.
    pages : tuple of Path
        The pages, in the order of the people.
    """

    folder: Path
    pages: tuple[Path, ...]


def write_letters(
    pane: Pane,
    people: object,
    folder: str | Path,
    *,
    name_by: str | None = None,
    model: Model | str | None = None,
    bands: bool = True,
    **how: Any,
) -> WrittenLetters:
    """Write a page for every person, an index of them, and their reasons as JSON and CSV for a decision system. Free.

    Parameters
    ----------
    pane : Pane
        With a model.
    people : object
        A data frame, a table, a list of dictionaries, or a dictionary of columns.
    folder : path
        Made if it is not there; files of an earlier run are replaced, others are left alone.
    name_by : str, optional
        A column of ``people``, none of the model's, whose values name the pages; otherwise they are numbered.
    model, bands, desired_class, desired, total_CFs, method
        As for ``Pane.explain``.

    Examples
    --------
    >>> import tempfile, numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "height": vt.Numeric(0, 200)})
    >>> rows = {"age": np.linspace(0, 100, 9000), "height": np.tile(np.linspace(150, 190, 9), 1000)}
    >>> data = vt.PrivateData(rows, schema, name="people", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
    >>> pane = vt.release(data, vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk"), epsilon=1.0, parts=["rows"])
    >>> people = [{"customer": "k1", "age": 80, "height": 170}, {"customer": "k2", "age": 20, "height": 180}]
    >>> written = vt.pane.write_letters(pane, people, tempfile.mkdtemp(), name_by="customer")
    >>> [path.name for path in written.pages]
    ['k1.html', 'k2.html']
    """
    columns = _columns(people)
    names = _names(columns, name_by)
    pane_of_one, asked = pane._asked(model)
    # Whatever is wrong with anybody is said before a page is written.
    raw = pane_of_one.schema.read_points({name: values for name, values in columns.items() if name != name_by})
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the folder {str(target)!r} cannot be made: {error.strerror}") from error
    usual: dict[str, Any] = {"desired_class": OPPOSITE, "desired": None, "total_CFs": 3, "method": "auto"}
    pages: list[Path] = []
    letters: list[Letter] = []
    with progress("letters", len(names)) as advance:
        for start in range(0, len(names), AT_ONCE):
            some = pane_of_one.schema.frame(raw[start : start + AT_ONCE])
            for person in explained_all(pane_of_one, asked, some, bands=bands, **{**usual, **how}):
                pages.append(_write(person, target / f"{names[len(pages)]}.html"))
                letters.append(letter_of(person))
                advance(1)
    _write_index(target, pages, letters)
    return WrittenLetters(target, tuple(pages))


def _write(person: Person, path: Path) -> Path:
    return write_page(page(person), path)


def _columns(people: object) -> dict[str, list[object]]:
    """The values of a table by column, whatever holds it."""
    if isinstance(people, Mapping):
        return {str(name): list(values) if _is_column(values) else [values] for name, values in people.items()}
    if isinstance(people, Sequence) and not isinstance(people, str):
        if not all(isinstance(one, Mapping) for one in people):
            raise InvalidInput("people is a list; it must hold a dictionary for each person")
        keys = dict.fromkeys(str(name) for one in people for name in one)
        return {name: [one.get(name) for one in people] for name in keys}
    frame = eager_frame(people)
    return {name: frame[name].to_list() for name in frame.columns}


def _is_column(values: object) -> bool:
    """Whether it holds several values, rather than being one."""
    return not isinstance(values, str | bytes) and hasattr(values, "__len__")


def _names(columns: Mapping[str, Sequence[object]], name_by: str | None) -> list[str]:
    """What pages are called: distinct, and safe as the names of files."""
    if not columns:
        raise InvalidInput("people has no columns; give a table with a row for each person")
    n_people = len(next(iter(columns.values())))
    _checks.whole("people", n_people, most=MOST_PEOPLE)
    if name_by is None:
        return [f"{number:0{len(str(n_people))}}" for number in range(1, n_people + 1)]
    if name_by not in columns:
        raise InvalidInput(f"name_by is {name_by!r}: {_checks.not_among(name_by, columns, 'among the people')}")
    made = [_NOT_IN_NAMES.sub("-", str(value)).strip("-.") for value in columns[name_by]]
    for number, name in enumerate(made):
        if not name or name.lower() == "index":
            raise InvalidInput(f"row {number} of {name_by!r} gives no name for a file; it needs letters or digits")
    if len({name.lower() for name in made}) < len(made):
        raise InvalidInput(f"two people have the same {name_by!r}; every page needs a name of its own")
    return made


def _write_index(folder: Path, pages: Sequence[Path], letters: Sequence[Letter]) -> None:
    records = [{"page": path.name, **decision_record(letter)} for path, letter in zip(pages, letters, strict=True)]
    write_bytes(folder / RECORDS, json_bytes({"format": FORMAT, "people": records}))  # type: ignore[dict-item]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for path, letter in zip(pages, letters, strict=True):
        for rank, reason in enumerate(letter.told, 1):
            side = "" if reason.good is None else str(reason.good).lower()
            sure = str(reason.certain).lower()
            numbers = (rank, reason.column, float(f"{reason.value:.6g}"), side, sure, reason.code, reason.sentence)
            writer.writerow([_plain(cell) for cell in (path.name, letter.outcome, letter.output, *numbers)])
    write_bytes(folder / TABLE, text.getvalue().encode())
    lines = [
        (path.name, path.stem, letter.title, letter.told[0].sentence if letter.told else letter.too_little)
        for path, letter in zip(pages, letters, strict=True)
    ]
    first = letters[0]
    given = {"language": first.catalogue.language, "direction": first.catalogue.direction, "say": first.say, "bill": None}
    write_page(render("letters.html", lines=lines, title=first.say("Letters"), **given), folder / INDEX)


def _plain(cell: object) -> object:
    """A spreadsheet takes a text that begins like a formula for one."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
