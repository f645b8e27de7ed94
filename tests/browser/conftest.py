"""A browser for tests of pages, and small pages to look at."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from browser import needs

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """The system's browser. For one file of tests and no longer: while it runs, this thread has an event loop that runs,
    and tests of other files start loops of their own."""
    if (why := needs.without_browser()) is not None:
        pytest.skip(why)
    with needs.pictures.running_browser() as running:
        yield running


@pytest.fixture
def axe() -> None:
    """Skip where axe-core is not installed."""
    if (why := needs.without_axe()) is not None:
        pytest.skip(why)


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> SimpleNamespace:
    """Files by name: the pages ``person``, ``report``, ``group`` and ``question``, and the ``pane``. Written once for all
    processes that run tests."""
    if (why := needs.without_browser()) is not None:
        pytest.skip(why)
    from browser.small_pages import NAMES, write

    common = tmp_path_factory.getbasetemp()
    folder: Path = (common if worker_id == "master" else common.parent) / "pages"
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            folder.mkdir(exist_ok=True)
            write(folder)
            (folder / "done").touch()
    return SimpleNamespace(**{Path(name).stem if name.endswith(".html") else "pane": folder / name for name in NAMES})
