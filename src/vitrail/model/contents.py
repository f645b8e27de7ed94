"""A stable hash of what a fitted predictor holds, so that the same question about the same model is recognised.

A plain pickle is not stable: it writes "the same object as before" where two attributes happen to share one, which a
save and a load change. So nothing is memoised here, and arrays and tensors enter by type, shape and bytes. Classes and
functions enter by name only; what is defined in ``__main__`` has no name that means the same tomorrow, hence no hash.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
import types
from typing import Any

import numpy as np

PICKLE_PROTOCOL = 5


class _ContentPickler(pickle.Pickler):
    """Writes bytes to be hashed, never to be read back."""

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, type | types.FunctionType) and obj.__module__ == "__main__":
            raise pickle.PicklingError(f"{obj.__qualname__} is defined in __main__")
        if type(obj) is np.ndarray and not obj.dtype.hasobject:
            return str, (_array_text(obj),)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(obj, torch.Tensor):
            # Through a byte view, because NumPy lacks some of torch's dtypes.
            plain = obj.detach().cpu().contiguous()
            content = plain.reshape(-1).view(torch.uint8).numpy() if plain.numel() else np.empty(0, dtype=np.uint8)
            return str, (f"{plain.dtype}{tuple(plain.shape)}{_array_text(content)}",)
        return NotImplemented


def _array_text(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"{np.lib.format.dtype_to_descr(array.dtype)}{array.shape}{content}"


def content_digest(predictor: object) -> str | None:
    """SHA-256 of a predictor's class and content; None when it has no stable one."""
    for fast in (True, False):  # without memory first; an object that refers to itself needs one
        stream = io.BytesIO()
        pickler = _ContentPickler(stream, PICKLE_PROTOCOL)
        pickler.fast = fast
        try:
            pickler.dump(predictor)
        except Exception:  # noqa: S112 - whatever cannot be pickled has no digest, for whatever reason
            continue
        kind = type(predictor)
        return hashlib.sha256(f"{kind.__module__}.{kind.__qualname__}\0".encode() + stream.getvalue()).hexdigest()
    return None
