"""Benchmarks and tools are scripts in folders that no package holds: how tests import them."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent


def script(name: str, folder: str = "benchmarks") -> ModuleType:
    """The module of that name, which may import its neighbours in the folder."""
    sys.path.insert(0, str(ROOT / folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / folder))
