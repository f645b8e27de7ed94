"""Explain machine-learning models from private data, under differential privacy.

The names in ``__init__.pyi`` are all there is to learn; each is imported when it is first used, so that reading a file of
releases never loads the vault, and ``import vitrail`` is instant.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

__version__ = "0.2.0"

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: home for home, name in re.findall(r"^from \.(\S*) import (\w+) as", _STUB, re.MULTILINE)}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'vitrail' has no attribute {name!r}")
    if not _HOMES[name]:  # a room
        return import_module(f".{name}", __name__)
    return getattr(__import__(_HOMES[name], globals(), fromlist=(name,), level=1), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
