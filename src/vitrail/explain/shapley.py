"""Private Shapley values of any model: which columns made this prediction differ from the average one.

*What a row contributes.* Interventional SHAP at z is an average over background rows x of the Shapley values of the game in
which a set of columns is taken from z and the rest from x. A row's estimate of them is what each column adds along a random
order (``solve.coalitions``), per point a vector v_q over the n columns; a declared group counts as one column. It may be as
long as R sqrt(n) (R is the width of the model's range), and is mostly far shorter, so it is scaled down to the clip C. One
vector answers for Q points:

    (v_1, ..., v_Q)              each of norm at most C, together sqrt(Q) C
    squares                      only in a sample of the rows: v_qj^2 of the clipped vectors, per point of norm at most
                                 C^2 and scaled to C/4, together sqrt(Q) C/4
    excess                       by how much each v_q was longer than C, counted up to C/2 and scaled to C/3, together
                                 sqrt(Q) C/3
    base_scale (f(x) - middle)   |f(x) - middle| <= R/2, scaled to a bound of sqrt(Q) C/4
    count_scale                  1 for every row that counts, scaled to sqrt(Q) C/(3 Q^(1/4))

*Bound.* A row's norm is at most sqrt(Q) C sqrt(1 + 1/9 + 1/16 + 1/(9 sqrt(Q))), 1.134 C for one point; 1/16 more under the
root in a sample of the rows, 1/9 less where no vector can be longer than C >= R sqrt(n). A row that does not count (a value
is missing, the model failed) is zero in all of it. The vault enforces the bound whatever is returned here. *Cost*: that of
one Gaussian sum, mu = l2_bound/sigma, under add-remove neighbours; twice the bound under replace-one. What the extra numbers
are for: ``solve.shapley.released``.

*Where to clip* (``clip="auto"``): a tenth of the price buys a histogram of the norms. Its bins are public and geometric,
edges R 2^(k/2) from R/32 to R sqrt(n). A row puts a total of 1 into it, 1/Q for each point: norm at most 1, and two rows are
at most sqrt(2) apart. Clipped is where noise and what the clip takes from long vectors are smallest together. The noise of
the values grows by 5 %; a clip at half the range halves it. Following chains is what takes the time, so the histogram is
taken from a sample just large enough that the noise of a tail is below one per cent of the rows.

Exact vectors of tree models against a single background row are not used. The error of the permutations is an average
over rows (about 0.0004 of the range for 30 000 rows; more permutations make it smaller), and the exact vectors are hardly
shorter than those of a permutation and its reverse: 95th percentile of the norm on Adult, random forest of full depth, 0.73
of the range for one permutation, 0.55 for two, 0.51 for eight. Test: tests/explain/test_shapley_bound.py.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from .. import _checks
from .._types import Floats
from ..accounting import JsonValue
from ..accounting.releases import Release
from ..errors import InvalidInput
from ..model import Model
from ..results import Attribution
from ..results.band_claim import TWO_SIDED_95, claim_of
from ..schema import Schema
from ..solve.coalitions import Chains, point_key, ranks_of
from ..solve.sampling import sampling_notes
from ..solve.shapley.on_rows import check_players, player_numbers, players_of
from ..solve.shapley.reasons import shown_points
from ..solve.shapley.released import Scales, choose_clip, clip_edges, reconcile
from ..vault import Block, BoundedSum, PrivateData
from .recipe import Ask, Conversation, LocalExplainer, Recipe, Terms, cost_of, points_identity, sigma_of
from .sampled import checked_rate

VERSION = 3
CLIP_SHARE = 0.1
"""Share of the price that choosing the clip gets."""
TAIL_ACCURACY = 0.01
"""Noise of a tail of the histogram of norms, as a share of the rows, that a sample of them must not exceed."""
MOST_NUMBERS = 10_000
"""Points times columns, or groups of them, in one question; a block of 4096 rows then takes 0.3 GB."""
MOST_PERMUTATIONS = 1000
REHEARSED_POINTS = 2
FEWEST_PROBE_ROWS = 3
"""The vault's probe has at least these many rows, however small a block is."""


@dataclass(eq=False)
class Shapley(LocalExplainer[Attribution]):
    """Shapley values of a model's outputs, averaged over private background rows. A declared group of columns has one value.

    Parameters
    ----------
    data : PrivateData
        The rows that predictions are compared with.
    model : Model
        The model to explain.
    clip : float or "auto", optional
        Each row's vector of contributions is scaled down to this norm, in units of the model's output; noise is
        proportional to it. The width of the model's range if not given. ``"auto"`` spends a tenth of the price (in mu
        squared) on a histogram of norms, and clips where bands are narrowest. What the clip takes is in the bands.
    sampling_rate : float
        Look at each row with this probability: 1/rate times fewer model calls and 1/rate times more noise, for slow models
        and many rows. The choice of the sample is in the bands.
    n_permutations : int
        Orders in which columns are exchanged, per row. Model calls grow with it; the second is the reverse of the first,
        and makes vectors shorter where columns act together, so that a smaller clip will do.
    seed : int
        Which public permutations.
    key : str, optional
        A name for a model that has no content hash (a function), so that asking again replays the stored answer, free.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"age": np.full(9000, 40), "smoker": np.array(["yes"] * 3000 + ["no"] * 6000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> risk = vt.Model(lambda x: 0.5 * x[:, 0] + 0.3 * x[:, 2], range=(0, 1), name="risk")
    >>> shapley = vt.Shapley(data, risk)
    >>> bool(shapley.quote({"age": 80, "smoker": "yes"}, epsilon=1).half_width < 0.005)
    True
    >>> e = shapley({"age": 80, "smoker": "yes"}, epsilon=1)  # age: 0.5 (0.8 - 0.4), smoker: 0.3 (1 - 1/3), base 0.3
    >>> e.values.round(2).tolist(), e.base_values.round(2).tolist()
    ([[0.2, 0.2]], [0.3])
    >>> e.rows_counted.contradicts
    False
    """

    data: PrivateData
    model: Model
    _: KW_ONLY
    clip: float | Literal["auto"] | None = None
    sampling_rate: float = 1.0
    n_permutations: int = 1
    seed: int = 0
    key: str | None = None

    def __post_init__(self) -> None:
        self.check_inputs(self.model)
        self.clip = self._clip = _checked_clip(self.clip, self.model)
        self.sampling_rate = checked_rate(self.sampling_rate)
        self.n_permutations = _checks.whole("n_permutations", self.n_permutations, most=MOST_PERMUTATIONS)
        self.seed = _checks.whole("seed", self.seed, least=0, most=2**63 - 1)
        self.model.check(self.data.feature_schema)
        schema = self.data.feature_schema
        self._players = players_of(schema)
        check_players(len(self._players))
        self._chains = Chains(self.model, schema, player_numbers(schema, self._players))

    def conversation(self, points: object) -> Conversation[Attribution]:
        """One sum for all points, after a histogram of norms where the clip is to be chosen."""
        raw, outputs = self.read_points(points)
        if (n_points := len(raw)) * (n_players := len(self._players)) > MOST_NUMBERS:
            raise InvalidInput(
                f"points are {n_points} with {n_players} values each; one question answers for at most "
                f"{MOST_NUMBERS // n_players}. Ask about fewer at once, or declare groups of columns: vt.Group"
            )
        label = f"Shapley values of {len(raw)} point{'s' if len(raw) > 1 else ''}"
        groups: list[JsonValue] = [[name, *columns] for name, columns in self._players.items() if len(columns) > 1]
        model = self.model.identity(self.data.feature_schema, self.key)
        facts = {"model": model, "points": points_identity(raw), "groups": groups, **self.options_but()}
        identity = None if model is None else {"kind": "shapley", "version": VERSION, **facts}
        recipe, few = (partial(self._recipe, raw[:n], outputs[:n]) for n in (len(raw), REHEARSED_POINTS))
        more: Any = {"rehearsal": few, "sampling_rate": self.sampling_rate}
        return Conversation(self.data, recipe, label, identity, (self.model,), **more)

    def _recipe(self, raw: Floats, outputs: Floats, terms: Terms) -> Recipe[Attribution]:
        names, width, sampling = tuple(self._players), self.model.width, terms.sampling_rate
        vectors = RowVectors(terms.schema, terms.target, self._chains, raw, outputs, self.n_permutations, self.seed)
        releases: list[Release] = []
        if self._clip == "auto":
            edges = clip_edges(width, len(names))
            enough = math.sqrt(len(edges)) / (TAIL_ACCURACY * terms.scaled(CLIP_SHARE).mu_of_a_row * terms.n_rows_public)
            fn, rate = partial(vectors.norm_shares, edges), sampling * min(1.0, enough)
            bounds: Any = {"rate": rate} if rate < 1 else {"replace_bound": math.nextafter(math.sqrt(2), 2)}
            question = BoundedSum(fn, len(edges), 1.0, **bounds)
            releases.append((yield Ask(question, CLIP_SHARE, "norms of Shapley values")))
            unit = Scales(len(raw), len(names), 1.0, width, sampling < 1).l2_bound
            noise = TWO_SIDED_95 * unit * terms.noise_of_mean(1 - CLIP_SHARE)
            clip = choose_clip(releases[0].value, edges, terms.n_rows_public, sigma_of(releases[0]), noise)
        else:
            clip = self._clip
        scales = Scales(len(raw), len(names), clip, width, sampled=sampling < 1)
        question = BoundedSum(partial(vectors.clipped, scales), scales.size, scales.l2_bound)
        sums = yield Ask(question, 1 - CLIP_SHARE if releases else 1.0)
        releases.append(sums)
        middle = self.model.lo + width / 2
        solved = reconcile(sums.value, sigma_of(sums), terms.n_rows_public, scales, middle, outputs, sampling)
        return Attribution(
            values=solved.values,
            base_values=np.full(len(raw), solved.base),
            columns=names,
            points=shown_points(terms.feature_schema, raw, self._players),
            outputs=outputs,
            guarantee=terms.promise(*releases),
            cost=cost_of(releases),
            method="shapley",
            band_claim=claim_of("shapley"),
            lower=solved.values - solved.half_widths,
            upper=solved.values + solved.half_widths,
            notes=(*solved.notes(clip, sampled=sampling < 1), *sampling_notes(sampling)),
            rows_counted=solved.rows_counted,
        )


def _checked_clip(clip: object, model: Model) -> float | Literal["auto"]:
    if clip is None:
        return model.width
    if clip == "auto":
        return "auto"
    hint = f", in units of the model's output (its range has width {model.width:g}), or 'auto'"
    return _checks.number("clip", clip, low=1e-6 * model.width, high=1e6 * model.width, hint=hint)


# --- what runs on rows, inside the vault -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowVectors:
    """The unclipped vectors of a block of rows."""

    schema: Schema
    target: str | None
    chains: Chains
    points: Floats
    point_outputs: Floats
    n_permutations: int
    seed: int
    _probe_rows: dict[int, frozenset[bytes]] = field(default_factory=dict)
    """For each block size the vault's public probe rows."""
    _known: dict[bytes, Floats] = field(default_factory=dict)
    """Vectors of such rows, by row *and* output: the vault answers a probe with outputs that are another row's."""

    def __call__(self, block: Block) -> tuple[Floats, Floats]:
        """(v of shape (rows, Q, n), f(x) of shape (rows,)) of a block.

        The vault tries every function on a dozen blocks of public rows, the same ones at other positions. Their vectors are
        computed once; a block that holds any other row is computed. That does not blunt the vault's test: whether outputs
        depend on their row alone is probed for the model itself (by the vault for the rows, in ``Chains`` for the hybrids).
        """
        values = np.ascontiguousarray(block.values)
        outputs = block.predictions(self.chains.model)
        if (probe := self._probe_rows.get(len(values))) is None:
            probe = self._probe_rows.setdefault(len(values), self._public(len(values)))
        if not all(row.tobytes() in probe for row in values):
            return self.of(values, outputs), outputs
        keys = [row.tobytes() + output.tobytes() for row, output in zip(values, outputs, strict=True)]
        if not all(key in self._known for key in keys):
            self._known.update(zip(keys, self.of(values, outputs), strict=True))
        return np.array([self._known[key] for key in keys]), outputs

    def _public(self, block_rows: int) -> frozenset[bytes]:
        probe = self.schema.probe_rows(max(block_rows, FEWEST_PROBE_ROWS))
        if self.target is not None:
            probe = np.delete(probe, self.schema.column_index(self.target), axis=1)
        return frozenset(row.tobytes() for row in np.ascontiguousarray(probe))

    def of(self, values: Floats, outputs: Floats) -> Floats:
        """(rows, Q, n) of any rows and their outputs."""
        n_players = int(self.chains.player_of.max()) + 1
        vectors = np.empty((len(values), len(self.points), n_players))
        for q, (point, at_point) in enumerate(zip(self.points, self.point_outputs, strict=True)):
            ranks = ranks_of(values, point_key(point, self.seed), self.n_permutations, n_players)
            vectors[:, q] = self.chains.contributions(values, outputs, point, float(at_point), ranks)
        return vectors

    def clipped(self, scales: Scales, block: Block) -> Floats:
        """The scaled vector of every row: values clipped, what the clip took, base, one for the row itself."""
        vectors, outputs = self(block)
        model, norms = self.chains.model, norms_of(vectors)
        over = norms > scales.clip
        shrink = np.where(over, scales.clip / np.where(over, norms, 1.0), 1.0)
        excess = np.where(over, norms - scales.clip, 0.0)
        rows = scales.packed(vectors * shrink[:, :, None], excess, outputs - (model.lo + model.width / 2))
        rows[~np.isfinite(norms).all(axis=1)] = np.nan  # the model failed on the way: the row counts zero, also as a row
        return rows

    def norm_shares(self, edges: Floats, block: Block) -> Floats:
        """Every row's share of the histogram of norms: shares that add up to 1."""
        vectors, _ = self(block)
        norms = norms_of(vectors)
        bins = np.minimum(np.searchsorted(edges, norms), len(edges) - 1)
        shares = np.zeros((len(vectors), len(edges)))
        for bin_of_row in bins.T:
            shares[np.arange(len(vectors)), bin_of_row] += 1 / norms.shape[1]
        shares[~np.isfinite(norms).all(axis=1)] = np.nan  # the model failed: the row counts zero
        return shares


def norms_of(vectors: Floats) -> Floats:
    """The norm of each (row, point), computed from its row alone in one fixed order."""
    return np.asarray(np.sqrt(np.einsum("bqn,bqn->bq", vectors, vectors)))
