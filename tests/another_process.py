"""`vitrail` in a process that knows nothing of this one.

It is forked from a server that has imported libraries and done nothing else, so that not every process imports them again.
"""

import multiprocessing
import os
import sys
from pathlib import Path
from typing import NamedTuple

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["vitrail.cli", "vitrail.pane", "vitrail.show", "matplotlib.figure", "pandas", "skops.io"])


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def vitrail(folder: Path, *words: str) -> Ran:
    """Run the command in another process, in this folder."""
    told = [folder / f"told.{name}" for name in ("out", "err")]
    process = SERVER.Process(target=_command, args=(folder, words, dict(os.environ), told))
    process.start()
    process.join()
    return Ran(process.exitcode, *(file.read_text(encoding="utf-8") for file in told))


def _command(folder: Path, words: tuple[str, ...], environment: dict[str, str], told: list[Path]) -> None:
    os.environ.clear()
    os.environ.update(environment)  # the server has that of the test that started it
    os.chdir(folder)
    for descriptor, file in zip((1, 2), told, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
    sys.argv = ["vitrail", *words]
    from vitrail.cli import main

    main()
