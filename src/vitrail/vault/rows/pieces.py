"""What rows that lie elsewhere are made of: pieces, each a factory of Arrow record batches.

An :class:`Origin` is what ``ArrowRows`` walks: files, tables, datasets, a function of the owner's. It says what is different
after somebody has written to it, and by which text an account knows it. Nothing here or in its siblings looks at a value: a
piece hands Arrow's batches on as they come.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ...errors import InvalidInput
from ...nothing_escapes import attempt

Batches: TypeAlias = Generator[pa.RecordBatch, None, None]


@dataclass(frozen=True)
class Piece:
    """A file, a table, or another stream of rows.

    Parameters
    ----------
    name : str
        How messages call it; it holds no secret.
    columns : callable
        Its columns and their types as they are now, without a look at a row. Whatever it raises means that they cannot be
        had; only sentences of ours (``InvalidInput``) are told.
    batches : callable
        Starts a walk: given the wanted columns and how many rows a batch should have, a generator of record batches that
        hold these columns in any order, others too, and any number of rows. What it opens, it closes when it ends.
    unreadable : str
        The sentence for a piece whose columns cannot be had.
    typed : bool
        Whether its columns have types of their own; those of a CSV file are texts, whatever they mean.
    hint : str
        Where a column that it lacks may be.
    cut : callable, optional
        The same rows in smaller pieces, for walks side by side. What it raises means that there are none.
    """

    name: str
    columns: Callable[[], pa.Schema]
    batches: Callable[[list[str], int], Batches]
    unreadable: str
    typed: bool = True
    hint: str = ""
    cut: Callable[[], tuple[Piece, ...]] | None = None

    def units(self) -> tuple[Piece, ...]:
        """The smallest pieces that it can be walked in, side by side."""
        return (self,) if self.cut is None else attempt(self.cut, (self,))


def no_state() -> object:
    """Of an origin that cannot tell whether somebody wrote to it."""
    return ()


@dataclass(frozen=True)
class Origin:
    """Where rows lie.

    Parameters
    ----------
    pieces : tuple of Piece
        In the order of a walk.
    state : callable
        What is different after somebody has written to the rows; None where they are gone.
    place : str, optional
        The text by which an account knows these rows again, without secrets.
    watched : bool
        Whether ``state`` and the order can be relied on. If not, nothing is kept from one walk to the next.
    """

    pieces: tuple[Piece, ...]
    state: Callable[[], object] = no_state
    place: str | None = None
    watched: bool = True


def library(module: str, what: str) -> Any:
    """A module of a package that not everybody has."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidInput(
            f"{what} needs the package {module.partition('.')[0]}, which is not installed; install vitrail[sources]"
        ) from None
