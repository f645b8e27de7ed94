import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for benchmark_scripts, which is no package


@pytest.fixture(autouse=True)
def state_folder(tmp_path_factory, monkeypatch):
    """What the library remembers of ledgers, apart for every test and never in the home of whoever runs them."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("VITRAIL_STATE", str(folder))
    return folder


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """A test marked ``chance`` measures fresh noise and fails if it fails twice in a row: a bound that is broken, or an
    adversary that is blind, shows both times, and a false alarm of probability p has probability p squared. That it failed
    once is told at the end."""
    if pyfuncitem.get_closest_marker("chance") is None:
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    try:
        pyfuncitem.obj(**given)
    except AssertionError as error:
        warnings.warn(pytest.PytestWarning(f"{pyfuncitem.nodeid} failed once: {error}"), stacklevel=1)
        pyfuncitem.obj(**given)
    return True
