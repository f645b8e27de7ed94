"""A stable hash of what a fitted predictor holds, so that the same question about the same model is recognised.

It must not depend on where an object lies, in which process, or on what was asked of it before. So an object is walked the
way a pickle would walk it, and what is no content is left out:

- structured arrays enter field by field: between the fields lies memory that nobody wrote;
- sets enter sorted: their order changes with every process;
- nothing is memoised: which attributes share one object changes with a save and a load. What leads back to an object that is
  being walked enters by how far above it is;
- random generators enter by their state, sparse matrices by their numbers, and a ``cached_property`` not at all: loading or
  predicting changes what else they hold;
- classes and functions enter by name, if they can be found under it; what is defined in ``__main__`` has no name that means
  the same tomorrow, hence no hash.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import importlib
import json
import pickle
import struct
import sys
import tempfile
import types
from pathlib import Path
from typing import Any, Protocol

import numpy as np

# The last protocol whose reductions are plain objects; the fifth hands out views of memory.
REDUCE_PROTOCOL = 4
_NUMBERS_AND_TEXTS = (bool, int, float, complex, str, bytes, type(None), type(...))
# An array that is read from a file as it is needed is the array.
_ARRAYS = {np.ndarray: "array", np.memmap: "array", np.recarray: "recarray", np.matrix: "matrix"}


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


class _Walk:
    """One walk over a predictor, which writes into a hash."""

    def __init__(self, into: _Hash, above: dict[int, int] | None = None) -> None:
        self._into = into
        self._above = {} if above is None else above  # objects that are being walked, and how deep they are

    def _write(self, kind: str, content: bytes = b"") -> None:
        """One entry with its length, so that no two walks write the same."""
        self._into.update(struct.pack("<II", len(kind), len(content) & 0xFFFFFFFF) + kind.encode() + content)

    def walk(self, given: Any) -> None:
        """Write what an object holds."""
        kind = type(given)
        if kind in _NUMBERS_AND_TEXTS:
            self._write(kind.__name__, given if kind is bytes else repr(given).encode())
        elif isinstance(given, np.ufunc):  # its module is wherever it is found first
            self._write("ufunc", given.__name__.encode())
        elif isinstance(given, type | types.FunctionType):
            self._write("name", _importable_name(given).encode())
        elif id(given) in self._above:
            self._write("above", str(len(self._above) - self._above[id(given)]).encode())
        else:
            self._above[id(given)] = len(self._above)
            self._walk_parts(given)
            del self._above[id(given)]

    def _walk_each(self, kind: str, items: Any) -> None:
        parts = list(items)
        self._write(kind, str(len(parts)).encode())
        for part in parts:
            self.walk(part)

    def _walk_parts(self, given: Any) -> None:
        kind = type(given)
        if kind in (list, tuple):
            self._walk_each(kind.__name__, given)
        elif kind is dict:
            self._walk_each("dict", (part for pair in given.items() for part in pair))
        elif kind in (set, frozenset):
            self._write(kind.__name__, b"".join(sorted(map(self._hash_of, given))))
        elif kind in _ARRAYS or isinstance(given, np.generic):
            self._walk_array(_ARRAYS.get(kind, "scalar"), np.asarray(given))
        elif isinstance(given, np.random.RandomState | np.random.Generator | np.random.BitGenerator):
            self._write("random", kind.__name__.encode())
            self.walk(_random_state(given))
        elif kind is functools.partial:  # its pickle tells whether somebody has looked at its (empty) attributes
            self._walk_each("partial", (given.func, given.args, given.keywords, vars(given)))
        elif (sparse := _sparse_numbers(given)) is not None:
            self._walk_each("sparse", sparse)
        elif (text := _library_text(given)) is not None:
            self._write("library", text.encode())
        else:
            self._walk_reduced(given)

    def _hash_of(self, given: object) -> bytes:
        """Of a member of a set, which is walked by itself."""
        into = hashlib.sha256()
        _Walk(into, dict(self._above)).walk(given)
        return into.digest()

    def _walk_array(self, kind: str, array: Any) -> None:
        self._write(kind, f"{array.shape}".encode())
        self._walk_values(array)

    def _walk_values(self, array: Any) -> None:
        """The values of an array whose shape is known: of each field by its name, of objects one by one."""
        dtype = array.dtype
        if dtype.names is not None:
            for name in dtype.names:
                self._write("field", name.encode())
                self._walk_array("array", array[name])
        elif dtype.hasobject:
            self._walk_each("objects", array.reshape(-1).tolist())
        elif dtype.kind == "V":
            raise pickle.PicklingError("an array of bytes that no field describes")
        else:
            plain = np.ascontiguousarray(array)
            # A view where there is one: forests hold tens of megabytes.
            content = hashlib.sha256(plain.reshape(-1).view(np.uint8).data if plain.nbytes else b"").digest()
            self._write(str(np.lib.format.dtype_to_descr(dtype)), content)

    def _walk_reduced(self, given: Any) -> None:
        """Any other object, by what would make it again: a function, its arguments and a state."""
        reduce = copyreg.dispatch_table.get(type(given))
        made: Any = reduce(given) if reduce is not None else given.__reduce_ex__(REDUCE_PROTOCOL)
        if isinstance(made, str):
            self._write("name", _importable_name(given, made).encode())
            return
        function, arguments, state, items, pairs = (list(made) + [None] * 3)[:5]
        self._write("object", _importable_name(type(given)).encode())
        self.walk(function)
        self.walk(arguments)
        self._walk_state(type(given), state)
        self._walk_each("items", items or ())
        self._walk_each("pairs", (part for pair in pairs or () for part in pair))

    def _walk_state(self, kind: type, state: Any) -> None:
        """Attributes by name, whatever their order; without those that remember what follows from the others."""
        if type(state) is not dict or not all(isinstance(name, str) for name in state):
            self.walk(state)
            return
        kept = [name for name in sorted(state) if not isinstance(getattr(kind, name, None), functools.cached_property)]
        self._walk_each("state", (part for name in kept for part in (name, state[name])))


def _importable_name(given: Any, name: str | None = None) -> str:
    """Where a class or a function is found; an error where it is not found there."""
    name = name or str(given.__qualname__)
    module = getattr(given, "__module__", None)
    if not isinstance(module, str) or module == "__main__":
        raise pickle.PicklingError(f"{name} is defined in {module}")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not given:
        raise pickle.PicklingError(f"{module}.{name} is not what it names")
    return f"{module}.{name}"


def _random_state(given: Any) -> object:
    """The state of a random generator; which seed sequence it came from is made up anew when it is loaded."""
    if isinstance(given, np.random.RandomState):
        return given.get_state(legacy=False)
    return (given.bit_generator if isinstance(given, np.random.Generator) else given).state


def _sparse_numbers(given: Any) -> tuple[object, ...] | None:
    """What a sparse matrix holds, in one order; it remembers whether it is sorted, and is sorted when it is used."""
    if not (is_of(given, "scipy.sparse", "spmatrix") or is_of(given, "scipy.sparse", "sparray")):
        return None
    rows = given.tocsr(copy=True)
    rows.sum_duplicates()
    return type(given).__name__, rows.shape, rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)


def _library_text(given: Any) -> str | None:
    """What a tensor or a booster holds: a booster's own pickle also says how many threads it was trained with, and when."""
    if is_of(given, "torch", "Tensor"):
        torch = sys.modules["torch"]
        # Through a byte view, because NumPy lacks some of torch's dtypes.
        plain = given.detach().cpu().contiguous()
        content = plain.reshape(-1).view(torch.uint8).numpy() if plain.numel() else np.empty(0, dtype=np.uint8)
        return f"{plain.dtype}{tuple(plain.shape)}{hashlib.sha256(content.data).hexdigest()}"
    if is_of(given, "xgboost", "Booster"):
        return hashlib.sha256(given.save_raw("ubj")).hexdigest()
    if is_of(given, "lightgbm", "Booster"):
        return hashlib.sha256(given.model_to_string().encode()).hexdigest()
    return catboost_content(given) if is_of(given, "catboost", "CatBoost") else None


def catboost_content(model: Any) -> str | None:
    """A stable hash of a fitted model of CatBoost: its JSON form, if it has one, without when and how it was trained."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except Exception:
            return None
        parts = json.loads(path.read_text())
    del parts["model_info"]
    parts["classes"] = np.ravel(model.classes_).tolist() if model.classes_ is not None else []
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def is_of(given: object, module: str, name: str) -> bool:
    """Whether something is an instance of a library's class; a library that nobody imported made none."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(given, kind)


def content_digest(predictor: object) -> str | None:
    """SHA-256 of a predictor's class and content; None when it has no stable one."""
    into = hashlib.sha256()
    try:
        _Walk(into).walk(predictor)
    except Exception:  # whatever cannot be walked has no digest, for whatever reason
        return None
    return into.hexdigest()
