import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for benchmark_scripts, which is no package


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
