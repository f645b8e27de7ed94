"""Examples in docstrings run on planted noise: what they print is the same in every run (``tests/error_rates.py``)."""

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "tests"))

from error_rates import planted_noise


@pytest.fixture(autouse=True)
def _examples_on_planted_noise(request):
    with planted_noise() if isinstance(request.node, pytest.DoctestItem) else nullcontext():
        yield
