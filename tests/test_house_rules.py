"""The rules of the house that a program can check."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vitrail

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LONGEST_FILE = 500
TEXT_SUFFIXES = {"", ".cfg", ".csv", ".html", ".ini", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}

# Written in pieces, so that this file does not contain what it looks for.
MACHINE_PATHS = re.compile(
    "|".join(
        [
            r"(?<![\w.])/" + r"(work|farm|root)/",
            r"(?<![\w.])/" + r"(home|Users|tmp)/[A-Za-z]",
            r"\b[A-Z]:\\" + r"Users\\",
        ]
    )
)
REGISTRY_HOSTS = re.compile(
    "|".join(["py" + r"pi\.(org|python)", "python" + r"hosted\.", "index" + "-url", "anaconda" + r"\.org"])
)
# A generator started from the operating system's randomness (for the code of a group function) is no seed of ours.
SEEDED_NOISE = re.compile(r"(default_rng\(|np\.random\.seed|RandomState\()(?!.*os\.urandom\()")


SECOND_CHANCES = {"chance", "flaky", "reruns"}
TAKEN_OVER = {"pytest_pyfunc_call", "pytest_runtest_protocol"}  # the hooks by which a test can be run again
RERUNS = re.compile("re" + r"run(s|failures)|fla" + r"ky")


def published_text_files() -> list[Path]:
    """What git tracks or would track, without binary files."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    paths = (ROOT / name for name in listing.split("\0") if name)
    return [path for path in paths if path.is_file() and path.suffix in TEXT_SUFFIXES]


def lines_matching(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_the_rooms_import_only_what_they_may() -> None:
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_outgrows_its_purpose() -> None:
    others = [path for room in ("tests", "benchmarks", "tools", "examples") for path in (ROOT / room).rglob("*.py")]
    assert len(others) > len(SOURCES) / 2
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in [*SOURCES, *others]}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_nothing_published_names_a_machine_or_a_registry() -> None:
    paths = published_text_files()
    assert ROOT / "pyproject.toml" in paths
    assert lines_matching(MACHINE_PATHS, paths) == []
    assert lines_matching(REGISTRY_HOSTS, paths) == []


@pytest.mark.parametrize(
    ("pattern", "guilty", "innocent"),
    [
        (MACHINE_PATHS, "open('/" + "work/x')", "see docs/work/x"),
        (MACHINE_PATHS, "sqlite:////" + "tmp/ledger.db", "sqlite:///ledger.db"),
        (REGISTRY_HOSTS, "https://py" + "pi.org/simple", "pip install vitrail"),
        (REGISTRY_HOSTS, "pip install --index" + "-url x", "an index, and its URL"),
        (SEEDED_NOISE, "np.random.default_" + "rng(0)", "secrets.token_bytes(8)"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], guilty: str, innocent: str) -> None:
    assert pattern.search(guilty)
    assert not pattern.search(innocent)


def test_release_code_draws_noise_from_the_operating_system_only() -> None:
    release_code = [path for path in SOURCES if {"vault", "ledger"} & set(path.relative_to(ROOT / "src/vitrail").parts)]
    assert release_code
    assert lines_matching(SEEDED_NOISE, release_code) == []


def second_chances(source: str) -> list[str]:
    """What in a test file lets a test fail once: marks for reruns, hooks that call tests, failures that are caught."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in SECOND_CHANCES and ast.unparse(node.value).endswith("mark"):
            found.append(f"{node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Name) and node.id in SECOND_CHANCES - {"chance"}:
            found.append(f"{node.lineno}: {node.id}")
        elif isinstance(node, ast.FunctionDef) and node.name in TAKEN_OVER:
            found.append(f"{node.lineno}: {node.name}")
        elif isinstance(node, ast.ExceptHandler) and "AssertionError" in ast.unparse(node.type or ast.Constant("")):
            found.append(f"{node.lineno}: except AssertionError")
        elif isinstance(node, ast.Call) and ast.unparse(node).startswith(("contextlib.suppress(Ass", "suppress(Ass")):
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize(
    ("source", "guilty"),
    [
        ("@pytest.mark.fla" + "ky(reruns=2)\ndef test_it(): ...", True),
        ("pytestmark = pytest.mark.chance", True),
        ("for _ in range(3):\n    try:\n        check()\n    except AssertionError:\n        continue", True),
        ("try:\n    check()\nexcept (ValueError, AssertionError):\n    check()", True),
        ("with contextlib.suppress(AssertionError):\n    check()", True),
        ("def pytest_pyfunc_call(pyfuncitem): ...", True),
        ("@flaky\ndef test_it(): ...", True),
        ("chance = found.chance\nwith pytest.raises(AssertionError):\n    check()", False),
        ("try:\n    read()\nexcept OSError:\n    pass", False),
    ],
)
def test_second_chances_are_seen(source: str, guilty: bool) -> None:
    assert bool(second_chances(source)) is guilty


def test_no_test_is_run_twice() -> None:
    """A bug that shows every second time would pass; a statistical test has an error rate instead (``error_rates``)."""
    tests = sorted((ROOT / "tests").rglob("*.py"))
    assert {str(path): found for path in tests if (found := second_chances(path.read_text()))} == {}
    assert lines_matching(RERUNS, [ROOT / "pyproject.toml", ROOT / "Makefile", ROOT / "constraints.txt"]) == []


def test_every_public_name_shows_how_it_is_used() -> None:
    assert vitrail.__all__
    without = []
    for name in vitrail.__all__:
        documentation = inspect.getdoc(getattr(vitrail, name)) or ""
        if not re.search(r"^Examples\n-+\n", documentation, re.MULTILINE) or ">>>" not in documentation:
            without.append(name)
    assert without == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(path.relative_to(ROOT)) for path in SOURCES if ast.get_docstring(ast.parse(path.read_text())) is None]
    assert silent == []


def test_importing_vitrail_imports_nothing_heavy() -> None:
    """A pane is read on machines that have neither the rows nor the patience."""
    heavy = ["vitrail.vault", "vitrail.ledger", "sqlalchemy", "matplotlib", "jinja2", "pandas", "torch"]
    program = f"import sys, vitrail; print([name for name in {heavy} if name in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "[]"
