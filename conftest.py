"""For the tests, and for the examples in docstrings: nothing that runs here may write into a user's home."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _state_of_the_session(tmp_path_factory):
    """For fixtures that outlive a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITRAIL_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def state_folder(tmp_path_factory, monkeypatch):
    """What the library remembers of ledgers, apart for every test."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("VITRAIL_STATE", str(folder))
    return folder
