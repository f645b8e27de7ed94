"""What a live page needs besides the pane and the model, and what is the same for everybody: made when a site is written.

A browser computes what depends on a person: outputs of the model, Shapley values and their bands. What is fitted to a
release (shares of bins, tables of linked columns), drawn (orders of players) or decided (what the model is given, how a
claim is worded) does not depend on anybody, and is handed over as numbers and texts, so that it exists in one language only.
The file has the archive format of panes (``results.archive``). All of it is post-processing of the pane. Test:
tests/live/test_golden.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .. import _checks
from .._types import Floats
from ..accounting import JsonValue
from ..errors import InvalidInput, ModelError
from ..model import Model
from ..model.feeds import feed_of
from ..model.onnx_graphs import OnnxPredictor
from ..pane import Pane
from ..pane.manifest import REASONS, ROWS
from ..results.archive import array_bytes, digest, pack
from ..results.band_claim import BandClaim, claim_of
from ..results.private_rows import PrivateRows
from ..results.verdict import widening
from ..schema import Schema
from ..solve.rows.histograms import blocks_of
from ..solve.shapley.on_rows import balanced_orders, players_of
from ..solve.shapley.reasons import BACKGROUND, BY_HEART, HELD_AGAINST_ROWS, OF_ANOTHER, links_note

FORMAT = "vitrail-live/1"


def prepared(pane: Pane, model: Model, *, background: int = BACKGROUND) -> bytes:
    """The file that lies beside a pane and an ONNX model on a site.

    Parameters
    ----------
    pane : Pane
        Of one model at most (``pane.about(name)`` of several), with private rows.
    model : Model
        An ONNX graph: the pane's own model, or another one that reads the same columns.
    background : int
        Of how many stored rows a page may make its means.

    Returns
    -------
    bytes
        An archive: ``manifest.json`` has facts and words, the members have numbers.
    """
    if len(pane.models) > 1:
        raise InvalidInput(
            f"this pane is about several models; prepare the pane of one of them: pane.about({pane.models[0]!r})"
        )
    if ROWS not in pane.parts:
        raise InvalidInput(f"a live page explains with private rows; this pane has {', '.join(map(repr, pane.parts))}")
    rows, schema = pane.private_rows, pane.schema
    n_rows = _checks.whole("background", background, most=len(rows.sampled))
    players = players_of(schema)
    files = {
        "rows/shares.npy": array_bytes(_joined(list(rows.shares.values()))),
        "rows/tables.npy": array_bytes(_joined([table.ravel() for table in _fitted_tables(rows).values()])),
        "rows/blocks.npy": array_bytes(np.concatenate(_blocks(rows)).astype(np.int64)),
        "reasons/orders.npy": array_bytes(balanced_orders(n_rows, len(players), seed=0).astype(np.int64)),
    }
    is_own = pane.manifest.number_of(model) is not None
    facts: dict[str, JsonValue] = {
        "format": FORMAT,
        "background": n_rows,
        "players": [
            {"name": name, "columns": [schema.column_index(column) for column in columns]}
            for name, columns in players.items()
        ],
        "total": rows.total,
        "tables": [{"pair": [*pair], "shape": [*table.shape]} for pair, table in _fitted_tables(rows).items()],
        "rows_counted": {"sentence": rows.rows_counted.sentence, "contradicts": rows.rows_counted.contradicts},
        "widening": widening(len(players)),
        "model": _fed(model, schema) | {"own": is_own, "reasons": is_own and REASONS in pane.parts},
        "words": _words(rows, pane.models),
        "files": {name: digest(content) for name, content in files.items()},
    }
    return pack(facts, files)


def _fitted_tables(rows: PrivateRows) -> Mapping[tuple[int, int], Floats]:
    """The distribution of every linked pair as sampled, by column numbers, the smaller one first."""
    fitted = {(rows.columns.index(i), rows.columns.index(j)): table for (i, j), table in rows.tables.items()}
    return {(i, j): fitted[i, j] if (i, j) in fitted else fitted[j, i].T for i, j in rows.noisy_tables}


def _blocks(rows: PrivateRows) -> list[Floats]:
    """By column the block of every bin; zeros where it is counted once."""
    of_columns = ((blocks_of(cut), len(cut)) for cut in rows.bins)
    return [np.zeros(size) if blocks is None else blocks.astype(np.float64) for blocks, size in of_columns]


def _joined(arrays: Sequence[Floats]) -> Floats:
    return np.concatenate([np.empty(0), *arrays])


def _fed(model: Model, schema: Schema) -> dict[str, JsonValue]:
    """What the graph is given, in which order, which of its outputs is meant, and the range that it is clipped to."""
    predictor = model.predictor
    if not isinstance(predictor, OnnxPredictor):
        raise ModelError(f"a browser runs ONNX models, and {model.name} is none; export it to ONNX and wrap that")
    model.check(schema)
    feed = feed_of(schema, model.inputs, predictor, model.unknown)
    offered = schema.feature_names if feed.kind == "features" else schema.names
    taken = range(len(offered)) if feed.columns is None else [offered.index(name) for name in feed.columns]
    return {
        "name": model.name,
        "kind": feed.kind,
        "columns": [*taken],
        "names": None if feed.names is None else [*feed.names],
        "column": model.column,
        "range": [model.lo, model.hi],
        "sha256": digest(predictor.wrapped),
    }


def _words(rows: PrivateRows, models: Sequence[str]) -> dict[str, JsonValue]:
    """Notes and claims of bands, for the pane's own model and for any other."""
    linked = bool(rows.noisy_tables)
    own, other = (claim_of(kind) for kind in ("private reasons", "private reasons of any model"))
    return {
        "links": links_note(rows),
        "by_heart": BY_HEART,
        "held_against_rows": HELD_AGAINST_ROWS,
        "of_another": OF_ANOTHER.format(model=models[0], size="{size}") if models else "",
        "claim": (own if linked else BandClaim.NOT_CALIBRATED).value,
        "claim_of_another": (other if linked else BandClaim.NOT_CALIBRATED).value,
    }
