"""Processes of our own that run beside this one: started anew, with what they are to do sent to them.

Not a fork of the caller, because forking a program with running threads is unsafe, and not `multiprocessing`, because that
would import the user's main script again. Such a process stands in a session of its own, so that the user's Ctrl-C reaches
the caller alone, which decides; it has no standard output or error, and matrix products in one thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")


class ChildProcess:
    """A running process and the two ends of its pipes.

    Parameters
    ----------
    module : str
        Whose function ``serve`` it runs.
    descriptors : sequence of int
        File descriptors that it inherits, under the same numbers.
    """

    def __init__(self, module: str, descriptors: Sequence[int] = ()) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
            [sys.executable, "-c", f"from {module} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,
            pass_fds=tuple(descriptors),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdin as requests, self._process.stdout as answers:
            self.to = Connection(os.dup(requests.fileno()), readable=False)
            self.back = Connection(os.dup(answers.fileno()), writable=False)

    def kill(self) -> None:
        """End it at once; whoever waits for its answer is told that there is none."""
        self._process.kill()

    def close(self) -> None:
        """Hang up, and wait until it is gone."""
        self.to.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.back.close()


def connections() -> tuple[Connection, Connection]:
    """In the child: requests and answers. What is printed from here on goes nowhere, and into no answer."""
    requests, answers = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        with suppress(OSError):
            os.dup2(nowhere, stream)
    return requests, answers
