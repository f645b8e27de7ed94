"""The history of the adaptive protocol, kept with the ledger: it goes on after a restart, and a crash loses no point.

A history is made of releases and public points, so keeping it is free (``PrivateData.keep``). It is kept per analyst, under
a digest of the problem: schema, model, weight, labels, intercept; the dataset, its version and, where there is one, the part
are in it by way of the vault. It is kept after every point, in pieces of some dozens of points: a long stream does not write
all of its past again and again.

A model without a content hash is kept under its ``key=`` and what can be known of it (``Model.identity``); without a key its
history ends with the call. Two runs of one analyst
at the same time take in what the other has kept before they keep their own; if both keep in the same instant, the points of
one may be missing afterwards. The answers that were paid for are in the ledger in any case, and asking the same again
replays them. Test: tests/explain/linear/test_history_kept.py.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from ...errors import InvalidInput
from ...solve.linear.history import History, Past, decode, encode
from .gradients import problem_identity
from .problem import LocalProblem

if TYPE_CHECKING:
    from ...vault import PrivateData

POINTS_PER_PIECE = 32
NOT_KEPT_NOTE = "The history was not kept with the ledger, because the model has no content hash; key= gives it a name."


class Keeper:
    """Where the history of one problem is kept, and how much of it is there already.

    Parameters
    ----------
    problem : LocalProblem
        What is explained.
    data : PrivateData
        Whose ledger keeps it, for the analyst who asks.
    model : str
        What the model is known by.
    """

    def __init__(self, problem: LocalProblem, data: PrivateData, model: str) -> None:
        identity = json.dumps({**problem_identity(problem), "model": model}, sort_keys=True)
        self._problem, self._data = problem, data
        self._name = f"history {hashlib.sha256(identity.encode()).hexdigest()}"
        self._n_known = 0

    def load(self) -> History:
        """Everything that is kept."""
        history = History(self._problem)
        for entry in self._read(0):
            history.add(entry)
        self._n_known = len(history)
        return history

    def keep(self, history: History) -> None:
        """Keep what is new in ``history``, after what another run has kept in the meantime, which it takes in."""
        entries = list(history)
        if len(entries) == self._n_known:
            return
        first = self._n_known // POINTS_PER_PIECE
        stored = self._read(first)[self._n_known - first * POINTS_PER_PIECE :]
        history.insert(self._n_known, stored)
        entries = list(history)
        for start in range(first * POINTS_PER_PIECE, len(entries), POINTS_PER_PIECE):
            piece = entries[start : start + POINTS_PER_PIECE]
            self._data.keep(self._piece_name(start // POINTS_PER_PIECE), encode(self._problem, piece))
        self._n_known = len(entries)

    def _read(self, piece: int) -> list[Past]:
        """The kept entries from a piece on."""
        found: list[Past] = []
        while (content := self._data.kept(self._piece_name(piece))) is not None:
            read = decode(content, self._problem, "kept in the ledger")
            found += read
            piece += 1
            if len(read) < POINTS_PER_PIECE:
                break
        return found

    def _piece_name(self, piece: int) -> str:
        return f"{self._name} {piece}"


def keeper_of(problem: LocalProblem, data: PrivateData, model_key: str | None) -> Keeper | None:
    """Where the problem's history is kept; None for a model that has neither content hash nor name."""
    model = problem.model_identity(model_key)
    return None if model is None else Keeper(problem, data, model)


def existing(problem: LocalProblem, data: PrivateData, model_key: str | None) -> History:
    """The history that is kept, or an error that says what to do."""
    keeper = keeper_of(problem, data, model_key)
    if keeper is None:
        raise InvalidInput(
            f"method 'history' needs the option history=, or key=: {problem.model.name} has no content hash by which the "
            "history in the ledger could be found; give the key that its points were explained with"
        )
    history = keeper.load()
    if not len(history):
        raise InvalidInput(
            f"the ledger keeps no history of this problem for this analyst on {data.name!r} (schema, model, weight, labels, "
            "intercept, version and part must be the same); explain some points first, with method='adaptive' for example"
        )
    return history
