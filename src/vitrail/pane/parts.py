"""What can be in a pane: for each part what it holds, and how accurate that is. No vault, no ledger.

A new kind of part is one :class:`Kind` here and one line in ``writer``. A part that a reader does not know is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DamagedFile, InvalidInput
from ..results.band_claim import TWO_SIDED_95, weakest
from ..results.base import Stored
from ..results.class_picture import ClassPicture
from ..results.private_rows import PrivateRows
from ..results.report import Report
from ..results.synopsis import Synopsis
from .manifest import Manifest


@dataclass(frozen=True)
class Kind:
    """A kind of part: its title, what it holds, and a sentence on how accurate that is."""

    title: str
    holds: type[Stored]
    accuracy: Callable[[Any], str]


def read_part(name: str, manifest: Manifest, files: Mapping[str, bytes], what: str) -> Any:
    """The part of a pane with this name, if it is about the pane's rows and columns."""
    described = f"the part {name!r} of {what}"
    inside = {file.removeprefix(f"{name}/"): files[file] for file in manifest.parts[name].files}
    part: Any = KINDS[name].holds.from_files(inside, described)
    try:
        if part.n_rows_public != manifest.n_rows_public:
            raise InvalidInput("it is about another number of rows than the pane")
        if isinstance(part, Report):
            for column in {*(part.pdp or ()), *(part.ale or ()), *(part.importance or ())}:
                manifest.feature_schema.column_index(column)
        elif part.schema.digest() != manifest.feature_schema.digest():
            raise InvalidInput("it is about other columns than the pane")
    except InvalidInput as error:
        raise DamagedFile(f"{described} cannot be read: {error}") from error
    return part


def _rows_accuracy(rows: PrivateRows) -> str:
    on_bin, on_cell = (100 * sigma / rows.n_rows_public for sigma in (rows.counts_sigma, rows.tables_sigma))
    return (
        f"{len(rows.columns)} columns, {len(rows.noisy_tables)} tables; noise (one std) of {on_bin:.2g} % of "
        f"all rows on a bin, {on_cell:.2g} % on a cell"
    )


def _synopsis_accuracy(synopsis: Synopsis) -> str:
    noise = synopsis.sigma / synopsis.scales["F1"] / synopsis.n_rows_public
    return f"{sum(part.size for part in synopsis.parts)} moments; noise of {noise:.2g} on a mean of outputs times a feature"


def _report_accuracy(report: Report) -> str:
    said = []
    for name, effects in (("partial dependence", report.pdp), ("accumulated effects", report.ale)):
        widths = [TWO_SIDED_95 * float(np.median(one.std)) for one in (effects or {}).values() if one.std is not None]
        if effects is not None and widths:
            mark = weakest(one.band_claim for one in effects.values()).mark
            said.append(f"{name} of {len(effects)} columns ± {float(np.median(widths)):.2g} ({mark})")
    if report.importance is not None:
        table = report.importance.frame()
        width = float(np.median(table["upper"].astype(float) - table["lower"].astype(float))) / 2
        said.append(f"importance of {len(report.importance)} columns ± {width:.2g} ({report.importance.band_claim.mark})")
    return "; ".join(said) + "; half-widths of bands, medians"


def _picture_accuracy(picture: ClassPicture) -> str:
    known = [str(label) for label, seen in zip(picture.labels, picture.known, strict=True) if seen]
    rows = "with" if picture.rows is not None else "without"
    return f"classes that stand out of the noise: {', '.join(known) or 'none'}; {rows} private rows to look near"


KINDS: Mapping[str, Kind] = {
    "rows": Kind("private rows", PrivateRows, _rows_accuracy),
    "local": Kind("local synopsis", Synopsis, _synopsis_accuracy),
    "global": Kind("global report", Report, _report_accuracy),
    "counterfactual": Kind("picture of the classes", ClassPicture, _picture_accuracy),
}
