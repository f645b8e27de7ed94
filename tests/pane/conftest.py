"""One small pane for all tests of this folder."""

import sys
from pathlib import Path

import pytest

from error_rates import planted_noise

sys.path.insert(0, str(Path(__file__).parent))  # for pane_setup, which is no package


@pytest.fixture(scope="session")
def made():
    from pane_setup import make

    with planted_noise():
        return make()
