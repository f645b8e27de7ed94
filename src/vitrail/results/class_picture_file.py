"""The file of a class picture: a zip of ``picture.json``, plain .npy arrays and private rows. Nothing in it is executed."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost
from ..errors import InvalidInput, SchemaError
from ..explain.rows.storage import read_rows, write_rows
from ..guarantee import Guarantee
from ..schema import Schema
from ..schema.bins import Bins
from ..solve.counterfactual.autoencoder import AnyCode, NetworkCode
from ..solve.counterfactual.codes import Code, IdentityCode
from .class_picture import ClassPicture

FORMAT = "vitrail-counterfactual/2"
HEADER = "picture.json"
MOST_BYTES = 2**31
"""A file that claims to hold more is refused before it is unpacked."""
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)
_CODE = ("encoder", "decoder", "base", "spread")
_ARRAYS: dict[str, tuple[str, ...]] = {"linear": _CODE, "network": ("hidden", "output"), "none": ()}


def write_picture(picture: ClassPicture, path: str | Path) -> None:
    """Write the file; the same picture gives the same bytes."""
    cost, code = picture.cost, picture.code
    kind = "network" if isinstance(code, NetworkCode) else "none" if isinstance(code, IdentityCode) else "linear"
    header: dict[str, object] = {
        "format": FORMAT,
        "dataset": picture.dataset,
        "schema": picture.schema.to_json(),
        "labels": list(picture.labels),
        "threshold": picture.threshold,
        "code": kind,
        "code_size": code.size,
        "scale": picture.scale,
        "sums_sigma": picture.sums_sigma,
        "bins": [one.to_json() for one in picture.bins],
        "n_rows_public": picture.n_rows_public,
        "by": picture.by,
        "models": list(picture.models),
        "guarantee": picture.guarantee.to_json(),
        "cost": [cost.pico_mu_squared, cost.pico_epsilon, str(cost.quecto_delta)],
    }
    members = {HEADER: json.dumps(header, indent=1, allow_nan=False).encode(), "sums.npy": _bytes(picture.sums)}
    members |= {f"{name}.npy": _bytes(getattr(code, name)) for name in _ARRAYS[kind]}
    if picture.rows is not None:
        buffer = io.BytesIO()
        write_rows(picture.rows, buffer)  # type: ignore[arg-type]  # zipfile takes both
        members["rows.zip"] = buffer.getvalue()
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name, _FIXED_DATE), content)
    except OSError as error:
        raise InvalidInput(f"the counterfactual cannot be written to {str(path)!r}: {error.strerror}") from error


def read_picture(path: str | Path) -> ClassPicture:
    """The picture in a file, or an error that says why there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
                raise InvalidInput(f"{str(path)!r} claims to hold more than {MOST_BYTES} bytes; a counterfactual never does")
            header: dict[str, Any] = json.loads(archive.read(HEADER))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise InvalidInput(f"{str(path)!r} holds no counterfactual of the format {FORMAT!r}")
            return _picture(header, archive)
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        if isinstance(error, InvalidInput) and not isinstance(error, SchemaError):
            raise
        raise InvalidInput(f"{str(path)!r} cannot be read as a counterfactual: {type(error).__name__}: {error}") from error


def _picture(header: dict[str, Any], archive: zipfile.ZipFile) -> ClassPicture:
    schema = Schema.from_json(header["schema"])
    labels = tuple(header["labels"])
    bins = tuple(_bins_of(fields) for fields in header["bins"])
    if bins and tuple(one.name for one in bins) != schema.names:
        raise ValueError("bins and schema name different columns")
    kind, k, n = header["code"], int(header["code_size"]), schema.n_features
    code: AnyCode = IdentityCode(n)
    if kind == "network":
        hidden, output = _array(archive, "hidden", (n + 1, k)), _array(archive, "output", (k + 1, n))
        code = NetworkCode(hidden, output, float(header["scale"]))
    elif kind == "linear":
        shapes: tuple[tuple[int, ...], ...] = ((n, k), (k, n), (n,), (k,))
        encoder, decoder, base, spread = (_array(archive, name, shape) for name, shape in zip(_CODE, shapes, strict=True))
        code = Code(encoder, decoder, base, spread)
    elif kind != "none":
        raise ValueError(f"its code is of an unknown kind, {kind!r}")
    width = code.size + 1 + sum(map(len, bins))
    rows = None
    if "rows.zip" in archive.namelist():
        rows = read_rows(io.BytesIO(archive.read("rows.zip")))  # type: ignore[arg-type]
        if rows.schema.names != schema.names:
            raise ValueError("its private rows have other columns")
    mu_squared, epsilon, delta = header["cost"]
    return ClassPicture(
        dataset=str(header["dataset"]),
        schema=schema,
        labels=labels,
        threshold=float(header["threshold"]),
        scale=float(header["scale"]),
        code=code,
        sums=_array(archive, "sums", (len(labels), width)),
        sums_sigma=float(header["sums_sigma"]),
        bins=bins,
        rows=rows,
        n_rows_public=int(header["n_rows_public"]),
        cost=Cost(int(mu_squared), int(epsilon), int(delta)),
        guarantee=Guarantee.from_json(header["guarantee"]),
        by="labels" if header["by"] == "labels" else "predictions",
        models=tuple(None if one is None else str(one) for one in header["models"]),
    )


def _bins_of(fields: dict[str, Any]) -> Bins:
    edges = None if fields["edges"] is None else tuple(float(edge) for edge in fields["edges"])
    labels = tuple(map(str, fields["labels"]))
    if not labels or (edges is not None and len(edges) != len(labels) + 1):
        raise ValueError(f"column {fields['name']!r} needs labels, and one edge more than it has labels")
    return Bins(str(fields["name"]), labels, edges, fields["integer"] is True)


def _bytes(array: NDArray[np.float64]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array, dtype=np.float64), allow_pickle=False)
    return buffer.getvalue()


def _array(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
    if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} is not an array of finite numbers of shape {shape}")
    return np.asarray(array)
