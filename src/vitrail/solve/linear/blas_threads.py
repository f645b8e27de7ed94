"""One BLAS thread for batches of small matrices.

Eigenvalues of a hundred-row matrix take a millisecond on one thread; several threads spend longer meeting each other,
and up to sixty times longer on a machine that is busy with other things. Where threadpoolctl is installed (scikit-learn
brings it) it is told so for the time of the batch; without it results are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run a batch of small linear algebra on one thread."""
    controller = _controller()
    if controller is None:
        yield
        return
    with controller.limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> Any:
    """Looking for the loaded libraries takes milliseconds, so it is done once."""
    try:
        return import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None
