"""ONNX graphs: one session on one thread, and the names of the classes that the graph holds.

Exporters write what a classifier's outputs stand for into attributes of its nodes (``classlabels_strings`` of a tree
ensemble, of a linear classifier, of the ZipMap behind them). onnxruntime does not show attributes, and the onnx package is
not needed to run a graph, so the few fields on the way to them are read here from the file's own encoding (Protocol Buffers:
a number and a kind before every field, a length before everything long, so that what is not wanted is skipped unread).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..schema import FloatArray, Level
from .predictors import ModelInput, Predictor

# Numbers of fields in onnx.proto.
GRAPH, NODE, INPUT, OUTPUT, OP_TYPE, ATTRIBUTE, NAME, INTS, STRINGS = 7, 1, 1, 2, 4, 5, 1, 8, 9
# What encoders of texts call the levels that they know.
ENCODED = {b"OneHotEncoder": b"cats_strings", b"LabelEncoder": b"keys_strings"}
# What hands a single column of texts on as it is.
PASSES_ON = (b"ArrayFeatureExtractor", b"Cast", b"Gather", b"Identity", b"Reshape", b"Squeeze", b"Unsqueeze")
LABELS = (b"classlabels_strings", b"classlabels_int64s", b"classlabels_ints")


class OnnxPredictor(Predictor):
    """An ONNX graph, kept as its bytes so that it can be pickled; the session is opened where it is used."""

    wrapped: bytes

    def __init__(self, content: bytes, label: str) -> None:
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise ModelError("an ONNX model needs onnxruntime, which is not installed; install vitrail[onnx]") from error
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
        options.use_deterministic_compute = True
        options.log_severity_level = 4  # its warnings go to stderr and would be about private rows
        super().__init__(content, label)
        try:
            self._session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise ModelError(f"{label} is not an ONNX model that onnxruntime can open: {error}") from error
        inputs = self._session.get_inputs()
        self._input_types: dict[str, str] = {given.name: given.type for given in inputs}
        # A dimension that the file leaves open is a text or None here.
        width = inputs[0].shape[1] if len(inputs) == 1 and len(inputs[0].shape) == 2 else None
        self.expected_width = width if isinstance(width, int) else None
        self.expected_names = tuple(self._input_types) if len(inputs) > 1 else None
        outputs = [output.name for output in self._session.get_outputs()]
        likely = [name for name in outputs if "prob" in name.lower()]
        if len(likely) != 1 and len(outputs) != 1:
            raise ModelError(
                f"{label} has the outputs {', '.join(map(repr, outputs))} and none is plainly the probabilities; "
                "export it with one output, or with one called 'probabilities'"
            )
        self.gives_probabilities = len(likely) == 1
        self.classes = class_labels(content) if likely else None
        self._output: str = likely[0] if likely else outputs[0]

    def known_levels(self) -> Iterable[tuple[str, Sequence[object]]]:
        """Columns of texts, and the levels of the encoder that reads them, where it reads one of them alone."""
        texts = {name for name, kind in self._input_types.items() if kind == "tensor(string)"}
        try:
            return [(name, levels) for name, levels in _encoded_levels(self.wrapped) if name in texts]
        except (IndexError, ValueError):
            return []

    def __reduce__(self) -> tuple[type[OnnxPredictor], tuple[bytes, str]]:
        return OnnxPredictor, (self.wrapped, self.label)

    def __call__(self, inputs: ModelInput) -> object:
        """The probabilities, or the only output."""
        if isinstance(inputs, Mapping):
            feed = {name: _onnx_array(inputs[name], kind)[:, None] for name, kind in self._input_types.items()}
        else:
            ((name, kind),) = self._input_types.items()
            feed = {name: _onnx_array(cast(FloatArray, inputs), kind)}
        result = self._session.run([self._output], feed)[0]
        if isinstance(result, list) and result and isinstance(result[0], dict):  # skl2onnx's ZipMap: one dictionary per row
            classes = list(self.classes or result[0])
            return np.array([[row[label] for label in classes] for row in result], dtype=np.float64)
        return result


def _onnx_array(values: NDArray[np.generic], kind: str) -> NDArray[np.generic]:
    dtypes: dict[str, type] = {"tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    dtypes |= {"tensor(string)": object, "tensor(int32)": np.int32, "tensor(float16)": np.float16}
    return np.ascontiguousarray(values, dtype=dtypes.get(kind, np.float32))


def class_labels(content: bytes) -> tuple[Level, ...] | None:
    """What a graph calls its classes; None where it does not say, or says two things."""
    try:
        said = [(kind, labels) for kind, labels in _labels_of_nodes(content) if len(labels) > 1]
    except (IndexError, ValueError):
        return None
    last = [labels for kind, labels in said if kind == b"ZipMap"]  # what the file's reader sees, behind all else
    found = set(last or [labels for _, labels in said])
    return found.pop() if len(found) == 1 else None


def _labels_of_nodes(content: bytes) -> Iterator[tuple[bytes, tuple[Level, ...]]]:
    for kind, node in _nodes(content):
        for attribute in _fields(node, ATTRIBUTE):
            if _first(attribute, NAME) in LABELS:
                texts = [bytes(text).decode() for text in _fields(attribute, STRINGS)]
                yield kind, (*texts,) if texts else (*_numbers(attribute),)


def _encoded_levels(content: bytes) -> Iterator[tuple[str, list[str]]]:
    """What each encoder of texts reads, by name, and the levels that it knows."""
    came_from: dict[bytes, bytes] = {}  # nodes stand behind those that they read
    for kind, node in _nodes(content):
        read = _first(node, INPUT)
        origin = came_from.get(read, read)
        if kind in PASSES_ON:
            came_from[_first(node, OUTPUT)] = origin
        for attribute in _fields(node, ATTRIBUTE) if kind in ENCODED else ():
            if _first(attribute, NAME) == ENCODED[kind]:
                levels = [bytes(text).decode() for text in _fields(attribute, STRINGS)]
                if levels:
                    yield origin.decode(), levels


def _nodes(content: bytes) -> Iterator[tuple[bytes, memoryview]]:
    for graph in _fields(memoryview(content), GRAPH):
        for node in _fields(graph, NODE):
            yield b"".join(bytes(text) for text in _fields(node, OP_TYPE)), node


def _first(message: memoryview, wanted: int) -> bytes:
    return next((bytes(value) for value in _fields(message, wanted)), b"")


def _fields(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """The contents of the fields of one number that have a length."""
    for number, value in _all_fields(message):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _numbers(attribute: memoryview) -> Iterator[int]:
    """The whole numbers of an attribute, one to a field or all in one."""
    for number, value in _all_fields(attribute):
        if number != INTS:
            continue
        if isinstance(value, int):
            yield _signed(value)
            continue
        position = 0
        while position < len(value):
            whole, position = _varint(value, position)
            yield _signed(whole)


def _all_fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == 0:
            value, position = _varint(message, position)
            yield key >> 3, value
            continue
        if kind == 2:
            length, position = _varint(message, position)
        else:
            length = {1: 8, 5: 4}.get(kind, -1)
        if length < 0 or position + length > len(message):
            raise ValueError("this is not an ONNX file")
        yield key >> 3, message[position : position + length]
        position += length


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
