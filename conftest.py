"""For the tests, and for the examples in docstrings: nothing is written into a user's home.

Examples run on planted noise (``tests/error_rates.py``): what they print is the same in every run.
"""

import gc
import os
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "tests"))

from error_rates import planted_noise


@pytest.fixture(autouse=True, scope="session")
def _state_of_the_session(tmp_path_factory):
    """For fixtures that outlive a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITRAIL_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _nobody_waits_for_the_disk():
    """Ledgers of these processes may be lost when the power fails. Those that are killed write as they always do."""
    from vitrail.ledger import database

    prepare = database._prepare_sqlite

    def hastily(connection, record):
        prepare(connection, record)
        connection.execute("PRAGMA synchronous=OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_prepare_sqlite", hastily)
        patch.setattr(os, "fsync", lambda file: None)
        yield prepare


@pytest.fixture
def waits_for_the_disk(_nobody_waits_for_the_disk, monkeypatch):
    """Ledgers ask of the disk what they ask of it outside of tests."""
    monkeypatch.setattr("vitrail.ledger.database._prepare_sqlite", _nobody_waits_for_the_disk)


@pytest.fixture(autouse=True, scope="module")
def _what_is_there_stays():
    """The vault collects garbage after a failing row, and need not walk what was imported or kept before these tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def state_folder(tmp_path_factory, monkeypatch):
    """What the library remembers of ledgers, apart for every test."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("VITRAIL_STATE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def _examples_on_planted_noise(request):
    with planted_noise() if isinstance(request.node, pytest.DoctestItem) else nullcontext():
        yield
