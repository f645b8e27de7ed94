"""What is written about the package: lower bounds, versions of Python, addresses, links."""

import ast
import re
import sys
import tomllib

import pytest

import vitrail
from benchmark_scripts import ROOT, script

lowest = script("lowest", "tools")
PROJECT = lowest.declared()
ADDRESS = "https://github.com/vitrail/vitrail"


def test_the_lowest_versions_are_those_that_are_declared():
    assert lowest.FILE.read_text(encoding="utf-8") == lowest.text_of(PROJECT)


def test_a_library_of_the_core_has_a_lower_bound_and_every_list_states_the_same_one():
    core, extras = PROJECT["dependencies"], PROJECT["optional-dependencies"]
    assert len(lowest.bounds(core)) == len(core)
    stated = {}
    for requirements in (core, *extras.values()):
        for name, bound in lowest.bounds(requirements).items():
            assert stated.setdefault(name, bound) == bound, name


# Distributions whose name is not their module's, and what comes with them.
MODULES_OF = {
    "array-api-compat": {"array_api_compat"},
    "fastapi": {"fastapi", "starlette", "anyio", "pydantic"},
    "jinja2": {"jinja2", "markupsafe"},
    "pandas-stubs": {"pandas"},
    "scikit-learn": {"sklearn"},
}


def imported_modules(folder):
    """Every module, by its first name, that a file below `folder` imports, wherever in the file."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"vitrail"}


def test_types_are_checked_without_what_only_tests_install():
    """`make lint` comes before `make test` on a fresh machine: what mypy cannot find there has to be named as such."""
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["overrides"]
    known = {module.partition(".")[0] for override in configured for module in override["module"]}
    installed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lint"]]
    for name in (re.match(r"[a-zA-Z0-9-]+", requirement)[0] for requirement in installed):
        known |= MODULES_OF.get(name, {name})
    assert "fastapi" in imported_modules(ROOT / "src")
    assert imported_modules(ROOT / "src") - known == set()


def test_bounds_are_read_from_requirements():
    found = lowest.bounds(["numpy>=2.1", "pyiceberg[pyarrow,sql-sqlite]>=0.9", "torch==2.13.0", "scipy-stubs"])
    assert found == {"numpy": "2.1", "pyiceberg": "0.9"}


def test_every_python_that_is_named_is_tested():
    named = [word.rpartition(" ")[2] for word in PROJECT["classifiers"] if "Python :: 3." in word]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1]) == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_one_address_and_one_version_everywhere():
    for address in PROJECT["urls"].values():
        assert address == ADDRESS or address.startswith(f"{ADDRESS}/")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'repository-code: "{ADDRESS}"' in citation
    assert f'version: "{PROJECT["version"]}"' in citation
    assert PROJECT["version"] == vitrail.__version__


def test_the_workflows_run_what_the_makefile_has():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = set()
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        commands |= set(re.findall(r"make ([a-z-]+)", workflow.read_text(encoding="utf-8")))
    assert {"lint", "test-lowest"} <= commands <= targets


LINK = re.compile(r'\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"|^\[[^]]+\]: (\S+)$', re.MULTILINE)


def relative_links(page):
    """Links that lead nowhere where a page is shown outside of the repository; code has none."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    every = ["".join(found) for found in LINK.findall(text)]
    assert every
    return [link for link in every if not link.startswith(("https://", "#"))]


def test_links_of_the_readme_work_wherever_it_is_shown():
    assert relative_links((ROOT / "README.md").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text", ["see [docs](docs/pane.md)", '<img src="docs/a.png">', "[the pane]\n\n[the pane]: docs/pane.md"]
)
def test_relative_links_are_found(text):
    assert len(relative_links(text)) == 1


def test_addresses_of_our_own_files_lead_to_files():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    paths = re.findall(
        rf"(?:{ADDRESS}/(?:blob|tree)|https://raw\.githubusercontent\.com/vitrail/vitrail)/main/([\w./-]+)", text
    )
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_wheel_is_made_of_the_sources_and_the_built_live_page_alone():
    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    assert built == {"packages": ["src/vitrail"], "artifacts": ["src/vitrail/live/assets"]}
