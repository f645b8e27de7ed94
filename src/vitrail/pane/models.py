"""The model that a pane is read with: given, opened from an ONNX file, or the one that lies in the pane itself."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

from ..errors import DamagedFile, InvalidInput, ModelError
from ..model import Model
from ..model.model import INPUTS
from ..model.predictors import OnnxPredictor
from ..results.archive import digest
from ..schema import Level
from .manifest import MadeFor, Manifest

EMBEDDED = "embedded"
MODEL_FILE = "model/model.onnx"


def described(model: Model, content: bytes | None) -> MadeFor:
    """What a manifest says about a model, and the file of it that the pane holds."""
    return MadeFor(
        name=model.name,
        digest=model.digest(),
        output=model.output,
        range=(model.lo, model.hi),
        inputs=model.inputs,
        column=model.column,
        embedded=None if content is None else MODEL_FILE,
        sha256=None if content is None else digest(content),
    )


def onnx_content(model: Model) -> bytes:
    """The bytes of an ONNX model; other models are not written into files, because only code could read them back."""
    predictor = model.predictor
    if not isinstance(predictor, OnnxPredictor):
        raise ModelError(
            f"embed_model is True, and {model.name} is no ONNX model; export it to ONNX first, or leave the model out: "
            "who has the model can give it to Pane.load"
        )
    return predictor.wrapped


def opened(given: object, manifest: Manifest, files: Mapping[str, bytes], what: str) -> Model:
    """The model that a caller gave, in whatever form, once it is known to work on the pane's columns."""
    made_for, schema = manifest.model, manifest.feature_schema
    if isinstance(given, Model):
        model = given
    elif given == EMBEDDED:
        if made_for.embedded is None:
            raise InvalidInput(f"{what} holds no model; give the one that it was made with: model=vt.Model(...)")
        model = _onnx(files[made_for.embedded], made_for)
    elif isinstance(given, str | Path):
        path = Path(given)
        if path.suffix.lower() != ".onnx":
            raise InvalidInput(f"model is {str(given)!r}; give a vt.Model, the path of an .onnx file, or {EMBEDDED!r}")
        try:
            model = _onnx(path.read_bytes(), made_for)
        except OSError as error:
            raise InvalidInput(f"the model {str(given)!r} cannot be read: {error.strerror}") from error
    else:
        raise InvalidInput(f"model is {type(given).__name__}; wrap it: vt.Model(your_model)")
    model.check(schema)
    _compare(model, made_for, what)
    return model


def _onnx(content: bytes, made_for: MadeFor) -> Model:
    """An ONNX model read as the pane says: the same output, range and inputs give the same digest."""
    inputs = next((known for known in INPUTS if known == made_for.inputs), None)
    if inputs is None:
        raise DamagedFile(f"the manifest says that the model takes {made_for.inputs!r}; there are {', '.join(INPUTS)}")
    output: Level | None = made_for.column
    return Model(content, output=output, range=made_for.range, inputs=inputs, name=made_for.name)


def _compare(model: Model, made_for: MadeFor, what: str) -> None:
    mine = model.digest()
    if made_for.digest is None or mine == made_for.digest:
        return
    known = "is another model" if mine is not None else "has no content that could be compared with it"
    warnings.warn(
        f"{what} was made with {made_for.name!r} (content {made_for.digest[:12]}), and {model.name!r} {known}: curves, "
        "importance and the local synopsis are about the former. Private rows are about no model, and serve both.",
        UserWarning,
        stacklevel=4,
    )
