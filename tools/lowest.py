"""Write constraints-lowest.txt: the lowest versions that pyproject.toml allows, as pins.

`make test-lowest` installs them in an environment of its own and runs part of the tests there, so that a lower bound is a
version that was tried. A test refuses a file that is not what this writes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "constraints-lowest.txt"
EXTRAS = ("demo", "maps", "onnx", "sklearn")
TEST_TOOLS = ("hypothesis", "mpmath", "polars", "pytest", "skl2onnx")
"""What the chosen tests need of the extra `test`."""
BOUND = re.compile(r"([A-Za-z0-9-]+)(?:\[[^]]*\])?>=([0-9.]+)")
HEAD = "# The lowest versions that pyproject.toml allows; tools/lowest.py writes them, `make test-lowest` tries them.\n"


def bounds(requirements: Iterable[str]) -> dict[str, str]:
    """The lower bound of every requirement that has one."""
    return {match[1]: match[2] for requirement in requirements if (match := BOUND.fullmatch(requirement))}


def text_of(project: dict[str, object]) -> str:
    """The file, from the table `project` of pyproject.toml."""
    core, extras = project["dependencies"], project["optional-dependencies"]
    assert isinstance(core, list)
    assert isinstance(extras, dict)
    lowest = bounds(core)
    for extra in EXTRAS:
        lowest |= bounds(extras[extra])
    tools = bounds(extras["test"])
    lowest |= {name: tools[name] for name in TEST_TOOLS}
    return HEAD + "".join(f"{name}=={lowest[name]}\n" for name in sorted(lowest))


def declared() -> dict[str, object]:
    """The table `project` of pyproject.toml."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert isinstance(table, dict)
    return table


if __name__ == "__main__":
    FILE.write_text(text_of(declared()), encoding="utf-8")
