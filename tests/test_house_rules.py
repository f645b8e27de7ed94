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


def test_no_source_file_outgrows_its_purpose() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in SOURCES}
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
    heavy = ["vitrail.vault", "vitrail.ledger", "sqlalchemy", "matplotlib", "pandas", "torch"]
    program = f"import sys, vitrail; print([name for name in {heavy} if name in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "[]"
