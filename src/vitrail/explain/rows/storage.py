"""The file of private rows: a zip of ``rows.json`` and one plain .npy array per release. Nothing in it is executed."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...accounting import Cost
from ...errors import InvalidInput, SchemaError
from ...guarantee import Guarantee
from ...results.private_rows import PrivateRows
from ...schema import Schema
from ...schema.bins import Bins
from ...solve.rows.structure import Link

FORMAT = "vitrail-private-rows/1"
HEADER = "rows.json"
MOST_BYTES = 2**31
"""A file that claims to hold more is refused before it is unpacked."""
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def write_rows(rows: PrivateRows, path: str | Path) -> None:
    """Write the file; the same rows give the same bytes."""
    cost = rows.cost
    pairs = sorted(rows.noisy_tables)
    header: dict[str, object] = {
        "format": FORMAT,
        "dataset": rows.dataset,
        "schema": rows.schema.to_json(),
        "target": rows.target,
        "bins": [one.to_json() for one in rows.bins],
        "links": [[link.child, list(link.parents)] for link in rows.links],
        "pairs": [list(pair) for pair in pairs],
        "counts_sigma": rows.counts_sigma,
        "tables_sigma": rows.tables_sigma,
        "n_rows_public": rows.n_rows_public,
        "guarantee": rows.guarantee.to_json(),
        "cost": [cost.pico_mu_squared, cost.pico_epsilon, str(cost.quecto_delta)],
    }
    arrays = {f"counts_{j}": counts for j, counts in enumerate(rows.counts)}
    arrays |= {f"groups_{j}": groups.astype(np.float64) for j, groups in enumerate(rows.groups)}
    arrays |= {f"table_{number}": rows.noisy_tables[pair] for number, pair in enumerate(pairs)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, _FIXED_DATE), json.dumps(header, indent=1, allow_nan=False))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, np.ascontiguousarray(array, dtype=np.float64), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _FIXED_DATE), buffer.getvalue())


def read_rows(path: str | Path) -> PrivateRows:
    """The private rows in a file, or an error that says why there are none."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
                raise InvalidInput(f"{str(path)!r} claims to hold more than {MOST_BYTES} bytes; private rows never do")
            header: dict[str, Any] = json.loads(archive.read(HEADER))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise InvalidInput(f"{str(path)!r} holds no private rows of the format {FORMAT!r}")
            return _rows_of(header, archive)
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidInput) and not isinstance(error, SchemaError):
            raise
        raise InvalidInput(f"{str(path)!r} cannot be read as private rows: {type(error).__name__}: {error}") from error


def _rows_of(header: dict[str, Any], archive: zipfile.ZipFile) -> PrivateRows:
    schema = Schema.from_json(header["schema"])
    bins = tuple(_bins_of(fields) for fields in header["bins"])
    if tuple(one.name for one in bins) != schema.names:
        raise ValueError("bins and schema name different columns")
    counts = tuple(_array(archive, f"counts_{j}", (len(one),)) for j, one in enumerate(bins))
    groups = tuple(_array(archive, f"groups_{j}", (len(one),)).astype(np.intp) for j, one in enumerate(bins))
    if any(set(group.tolist()) != set(range(int(group.max()) + 1)) for group in groups):
        raise ValueError("groups are not numbered from 0 without gaps")
    sizes = [int(group.max()) + 1 for group in groups]
    links = tuple(Link(int(child), tuple(map(int, parents))) for child, parents in header["links"])
    drawn: list[set[int]] = []
    for link in links:  # parents must have been drawn together before
        if link.parents and not any(set(link.parents) <= clique for clique in drawn):
            raise ValueError("a column hangs on others that do not hang together")
        drawn.append({link.child, *link.parents})
    if sorted(link.child for link in links) != list(range(len(bins))):
        raise ValueError("links do not name every column once")
    needed = {(min(link.child, p), max(link.child, p)) for link in links for p in link.parents}
    pairs = [(int(i), int(j)) for i, j in header["pairs"]]
    if set(pairs) != needed:
        raise ValueError("the tables are not those of the links")
    tables = {(i, j): _array(archive, f"table_{number}", (sizes[i], sizes[j])) for number, (i, j) in enumerate(pairs)}
    mu_squared, epsilon, delta = header["cost"]
    return PrivateRows(
        dataset=str(header["dataset"]),
        schema=schema,
        target=None if header["target"] is None else schema.names[schema.column_index(header["target"])],
        bins=bins,
        groups=groups,
        links=links,
        counts=counts,
        counts_sigma=float(header["counts_sigma"]),
        noisy_tables=MappingProxyType(tables),
        tables_sigma=float(header["tables_sigma"]),
        n_rows_public=int(header["n_rows_public"]),
        cost=Cost(int(mu_squared), int(epsilon), int(delta)),
        guarantee=Guarantee.from_json(header["guarantee"]),
    )


def _bins_of(fields: dict[str, Any]) -> Bins:
    edges = None if fields["edges"] is None else tuple(float(edge) for edge in fields["edges"])
    labels = tuple(map(str, fields["labels"]))
    if not labels or (edges is not None and len(edges) != len(labels) + 1):
        raise ValueError(f"column {fields['name']!r} needs labels, and one edge more than it has labels")
    return Bins(str(fields["name"]), labels, edges, fields["integer"] is True)


def _array(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
    if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} is not an array of finite numbers of shape {shape}")
    return np.asarray(array)
