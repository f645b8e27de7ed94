"""What can be in a pane: for each kind of part how it becomes files, and how files become it again. No vault, no ledger.

A new kind of part is one :class:`Kind` here and one line in ``writer``. A part that a reader does not know is kept and
named.
Releases that have a zip format of their own lie in a pane file by file, not as zips inside a zip: one set of bounds then
holds for everything (``archive``).
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np

from ..errors import InvalidInput
from ..explain.linear.synopsis_file import HEADER as SYNOPSIS_HEADER
from ..explain.linear.synopsis_file import read_synopsis, write_synopsis
from ..explain.rows.storage import HEADER as ROWS_HEADER
from ..explain.rows.storage import read_rows, write_rows
from ..results.band_claim import TWO_SIDED_95, weakest
from ..results.class_picture import ClassPicture
from ..results.class_picture_file import HEADER as PICTURE_HEADER
from ..results.class_picture_file import read_picture, write_picture
from ..results.private_rows import PrivateRows
from ..results.report import GlobalExplanation
from ..results.synopsis import Synopsis
from ..schema import Schema
from .archive import DamagedPane, json_bytes, parsed_json

MOST_CELLS = 10**6
"""Of the joint distribution of a column and those that it hangs on; ours have at most 160 000."""
SCALES = {"M0", "F0", "H0", "G0", "h", "fh", "hh", "E", "M1", "F1", "H1", "G1", "M2", "F2", "H2", "T"}
"""The kinds of products in a synopsis (``linear.moments``)."""
_REPORT = "report.json"


@dataclass(frozen=True)
class Kind:
    """A kind of part.

    Attributes
    ----------
    name : str
        Of the part, and of its folder in the pane.
    title : str
        In words.
    to_files : callable
        From the release to its files, by name within the folder.
    from_files : callable
        Back, given the columns that the model reads.
    accuracy : callable
        A sentence on how accurate it is, from what was released.
    """

    name: str
    title: str
    to_files: Callable[[Any], dict[str, bytes]]
    from_files: Callable[[Mapping[str, bytes], Schema], Any]
    accuracy: Callable[[Any], str]

    def write(self, part: object) -> dict[str, bytes]:
        """The files of a part, by their names in the pane."""
        return {f"{self.name}/{file}": content for file, content in self.to_files(part).items()}

    def read(self, files: Mapping[str, bytes], schema: Schema, n_rows_public: int, what: str) -> Any:
        """The part in these files; whatever is wrong with them is one kind of error."""
        inside = {name.removeprefix(f"{self.name}/"): content for name, content in files.items()}
        try:
            with np.errstate(all="ignore"):  # numbers out of all bounds are refused, or harmless: no warnings
                part = self.from_files(inside, schema)
            if part.n_rows_public != n_rows_public:
                raise ValueError("it is about another number of rows than the pane")
            if part.cost.pico_mu_squared < 0:
                raise ValueError("its cost is negative")
        except Exception as error:  # the files may be anybody's: no content may raise anything else
            cause = error.__cause__ if isinstance(error, InvalidInput) and error.__cause__ is not None else error
            said = f"{type(cause).__name__}: {str(cause)[:200]}"
            raise DamagedPane(f"the part {self.name!r} of {what} cannot be read: {said}") from error
        return part


def _zipped(write: Callable[[Any, Any], None], part: object) -> dict[str, bytes]:
    """The members of what ``write`` writes as a zip; arrays in C order."""
    buffer = io.BytesIO()
    write(part, buffer)
    with zipfile.ZipFile(buffer) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return {name: _in_c_order(content) if name.endswith(".npy") else content for name, content in members.items()}


def _in_c_order(content: bytes) -> bytes:
    buffer = io.BytesIO()
    array = np.load(io.BytesIO(content), allow_pickle=False)
    np.save(buffer, np.ascontiguousarray(array, dtype="<f8").reshape(array.shape), allow_pickle=False)
    return buffer.getvalue()


def _stream(files: Mapping[str, bytes], header: str, schema: Schema) -> IO[bytes]:
    """The files as the zip that a reader takes, once their header is known to be about these columns."""
    said = parsed_json(files[header], header)
    if not isinstance(said, dict) or said.get("schema") != parsed_json(json_bytes(schema.to_json()), "the schema"):
        raise ValueError("it is about other columns than the pane")
    if said.get("cells"):  # a pane has none, and their number is a product
        raise ValueError("it has cells")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    buffer.seek(0)
    return buffer


# --- the kinds -------------------------------------------------------------------------------------------------------


def _rows_of(files: Mapping[str, bytes], schema: Schema) -> PrivateRows:
    rows = read_rows(_stream(files, ROWS_HEADER, schema))  # type: ignore[arg-type]  # zipfile takes both
    sizes = [int(group.max()) + 1 for group in rows.groups]
    if any(math.prod(sizes[place] for place in (link.child, *link.parents)) > MOST_CELLS for link in rows.links):
        raise ValueError("too many columns hang on each other")
    _check_noise(rows.counts_sigma, rows.tables_sigma)
    if not np.isfinite(rows.raw(1, seed=0)).all():  # tables that no row can be drawn from; what is made here is used later
        raise ValueError("no row can be drawn from its tables")
    return rows


def _rows_accuracy(rows: PrivateRows) -> str:
    on_bin, on_cell = (100 * sigma / rows.n_rows_public for sigma in (rows.counts_sigma, rows.tables_sigma))
    return (
        f"{len(rows.columns)} columns, {len(rows.noisy_tables)} tables; noise (one std) of {on_bin:.2g} % of "
        f"all rows on a bin, {on_cell:.2g} % on a cell"
    )


def _synopsis_of(files: Mapping[str, bytes], schema: Schema) -> Synopsis:
    synopsis = Synopsis(**read_synopsis(_stream(files, SYNOPSIS_HEADER, schema)))  # type: ignore[arg-type]
    if set(synopsis.scales) != SCALES:
        raise ValueError("it lacks scales")
    _check_noise(synopsis.sigma, *synopsis.scales.values())
    return synopsis


def _synopsis_accuracy(synopsis: Synopsis) -> str:
    noise = synopsis.sigma / synopsis.scales["F1"] / synopsis.n_rows_public
    return f"{sum(part.size for part in synopsis.parts)} moments; noise of {noise:.2g} on a mean of outputs times a feature"


def _global_of(files: Mapping[str, bytes], schema: Schema) -> GlobalExplanation:
    found = GlobalExplanation.from_json(parsed_json(files[_REPORT], _REPORT))  # type: ignore[arg-type]
    curves = [name for effects in (found.pdp, found.ale) if effects is not None for name in effects]
    ranked = () if found.importance is None else found.importance.order
    for name in (*curves, *ranked):
        schema.column_index(name)
    if found.marginals.cost.pico_mu_squared < 0:
        raise ValueError("the cost of its histograms is negative")
    return found


def _global_accuracy(found: GlobalExplanation) -> str:
    said = []
    for name, effects in (("partial dependence", found.pdp), ("accumulated effects", found.ale)):
        widths = (
            []
            if effects is None
            else [TWO_SIDED_95 * float(np.median(one.std)) for one in effects.values() if one.std is not None]
        )
        if effects is not None and widths:
            mark = weakest(one.band_claim for one in effects.values()).mark
            said.append(f"{name} of {len(effects)} columns ± {float(np.median(widths)):.2g} ({mark})")
    if found.importance is not None:
        table = found.importance.frame()
        width = float(np.median(table["upper"].astype(float) - table["lower"].astype(float))) / 2
        said.append(f"importance of {len(found.importance)} columns ± {width:.2g} ({found.importance.band_claim.mark})")
    return "; ".join(said) + "; half-widths of bands, medians"


def _picture_of(files: Mapping[str, bytes], schema: Schema) -> ClassPicture:
    if "rows.zip" in files:
        raise ValueError("it holds rows of its own")
    picture = read_picture(_stream(files, PICTURE_HEADER, schema))  # type: ignore[arg-type]
    _check_noise(picture.sums_sigma, picture.scale)
    return picture


def _picture_accuracy(picture: ClassPicture) -> str:
    known = [str(label) for label, seen in zip(picture.labels, picture.known, strict=True) if seen]
    rows = "with" if picture.rows is not None else "without"
    return f"classes that stand out of the noise: {', '.join(known) or 'none'}; {rows} private rows to look near"


def _check_noise(*amounts: float) -> None:
    if not all(0 < amount < math.inf for amount in amounts):
        raise ValueError("its noise is no positive number")


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("rows", "private rows", lambda rows: _zipped(write_rows, rows), _rows_of, _rows_accuracy),
        Kind("local", "local synopsis", lambda made: _zipped(write_synopsis, made), _synopsis_of, _synopsis_accuracy),
        Kind("global", "global report", lambda made: {_REPORT: json_bytes(made.to_json())}, _global_of, _global_accuracy),
        Kind(
            "counterfactual",
            "picture of the classes",
            # Rows that the pane holds anyhow are not written twice; a reader gives them back (``Pane.picture``).
            lambda picture: _zipped(write_picture, replace(picture, rows=None)),
            _picture_of,
            _picture_accuracy,
        ),
    )
}
