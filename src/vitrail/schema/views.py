"""Views in files: a public vocabulary or the public regions of pictures, so that a program without Python can name them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..accounting import JsonValue
from ..errors import SchemaError, VitrailError
from .pictures import Picture
from .words import BagOfWords

FORMAT = "vitrail-view/1"


def save_view(view: BagOfWords | Picture, path: str | Path) -> Path:
    """Write a view to a file, for ``vitrail ask --view`` and for :func:`load_view`.

    Examples
    --------
    >>> import tempfile, vitrail as vt
    >>> words = vt.BagOfWords(["awful", "great"], most_words=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     vt.load_view(vt.save_view(words, folder + "/words.json")) == words
    True
    """
    if isinstance(view, BagOfWords):
        told: dict[str, JsonValue] = {"kind": "words", "words": list(view.vocabulary), "most_words": view.most_words}
    elif isinstance(view, Picture):
        regions = None if view.superpixels is None or view.patches is not None else view.superpixels.tolist()
        patches: JsonValue = None if view.patches is None else list(view.patches)
        told = {"kind": "picture", "shape": list(view.shape), "patches": patches, "regions": regions, "high": view.high}
    else:
        raise SchemaError(f"the view is {type(view).__name__}; give a BagOfWords or a Picture")
    path = Path(path)
    path.write_text(json.dumps({"format": FORMAT, **told}, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def load_view(path: str | Path) -> BagOfWords | Picture:
    """Read a view that :func:`save_view` wrote.

    Examples
    --------
    >>> import tempfile, vitrail as vt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     vt.load_view(vt.save_view(vt.Picture((4, 4), patches=(2, 2)), folder + "/picture.json"))
    Picture(4 x 4, 4 patches)
    """
    name = Path(path).name
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SchemaError(f"the view {name!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SchemaError(f"the view {name!r} is no JSON: {error}") from error
    if not isinstance(told, Mapping) or told.get("format") != FORMAT:
        raise SchemaError(f"{name!r} is no view: it has not the format {FORMAT!r}; `vitrail texts` and `pictures` write one")
    try:
        return _view_of(told)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, VitrailError):
            raise
        raise SchemaError(f"the view {name!r} is damaged: {error}") from error


def _view_of(told: Mapping[str, Any]) -> BagOfWords | Picture:
    if told["kind"] == "words":
        return BagOfWords(told["words"], most_words=told["most_words"])
    if told["kind"] != "picture":
        raise ValueError(f"its kind is {told['kind']!r}")
    regions = None if told["regions"] is None else np.array(told["regions"])
    patches = None if told["patches"] is None else tuple(told["patches"])
    return Picture(tuple(told["shape"]), patches=patches, superpixels=regions, high=float(told["high"]))
