import gc
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for benchmark_scripts and error_rates, which are no package

import error_rates


@pytest.fixture
def planted_noise():
    """The same noise in every run, for what has no error rate; see ``error_rates``."""
    with error_rates.planted_noise():
        yield


def pytest_collection_finish():
    """Everything imported by now stays: the vault collects garbage after a failing row, and need not walk all of it."""
    gc.collect()
    gc.freeze()
