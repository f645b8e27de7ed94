"""The size of the house: code lines of every room, modules with one importer, and the four walks of ``tools/walk.py``.

    python tools/house.py            print it
    python tools/house.py --write    and write benchmarks/results/house.json, from which docs/architecture.md is filled

A code line holds a token that is neither comment nor docstring (those under a constant or a field are docstrings too); stubs
count. A module's importers are the modules of ours that name it in an import statement, imports for type checkers included.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

import walk

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "vitrail"
RESULTS = ROOT / "benchmarks" / "results" / "house.json"
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
KEYS = {
    "a Parquet row to an explanation": "row",
    "a pane to a person's page": "person",
    "a release of a pane": "release",
    "a report": "report",
}
FIRST_DRAWING = {"row": (61, 59), "person": (73, 71), "release": (113, 173), "report": (72, 82)}
"""Modules and room changes that ``tools/walk.py`` counted on the last commit before the redesign."""


def code_lines(source: str) -> int:
    """Lines of code, docstrings, comments and blank lines left out."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for before, text in zip([None, *node.body], node.body, strict=False):
                is_text = (
                    isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
                )
                if is_text and (before is None or isinstance(before, ast.Assign | ast.AnnAssign)):
                    documented.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def importers(paths: list[Path]) -> dict[str, set[str]]:
    """The modules that import each module."""
    names = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in paths
    }
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in names.items():
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                module = ".".join([*base, *([node.module] if node.module else [])])
                for alias in node.names:
                    target = f"{module}.{alias.name}"
                    found[target if target in names else module].add(name)
    return {name: found[name] for name in names}


def house() -> dict[str, object]:
    """Everything that is counted, as a results file."""
    paths = sorted(SOURCE.rglob("*.py"))
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in [*paths, *SOURCE.rglob("*.pyi")]:
        name = path.relative_to(SOURCE)
        room = name.parts[0] if len(name.parts) > 1 else "on top"
        lines[room] += code_lines(path.read_text(encoding="utf-8"))
        files[room] += path.suffix == ".py"
    headline: dict[str, float] = {
        "code_lines": sum(lines.values()),
        "modules": len(paths),
        "modules_with_one_importer": sum(len(names) == 1 for names in importers(paths).values()),
    }
    rows: list[dict[str, object]] = [
        {"part": "rooms", "room": room, "modules": files[room], "code_lines": lines[room]} for room in sorted(lines)
    ]
    for journey, seen in walk.table().items():
        key, (functions, modules, rooms, changes, depth) = KEYS[journey], seen.row
        headline |= {f"{key}_modules": modules, f"{key}_room_changes": changes}
        first_modules, first_changes = FIRST_DRAWING[key]
        counted = {"functions": functions, "modules": modules, "rooms": rooms, "room_changes": changes, "depth": depth}
        first = {"first_modules": first_modules, "first_room_changes": first_changes}
        rows.append({"part": "walks", "walk": key, "journey": journey, **counted, **first})
    return {"headline": headline, "rows": rows, "how": {"command": "python tools/house.py --write", "walks": walk.__doc__}}


def main() -> None:
    """Print the counts, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/house.json")
    write = parser.parse_args().write
    counted = house()
    text = json.dumps(counted, indent=2) + "\n"
    print(text)
    if write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
