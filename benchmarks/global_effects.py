"""Figures on curves: gains at equal total budgets, wins at the paper's own, the synthetic peer."""

from __future__ import annotations

import numpy as np

import global_curves as curves
from global_curves import KINDS, Row, geometric
from global_setup import DELTA, Bench, Case, Part, mise
from vitrail.accounting import mu_of

PEER_PLACES = 60
"""At how many of the values that occur the peer's partial dependence of a wide column is computed."""


def gains(bench: Bench) -> Part:
    """Equal total epsilon for all columns of a dataset."""
    rows: list[Row] = []
    headline: dict[str, float] = {}
    for name in curves.CASES:
        for kind in KINDS:
            found = curves.all_features(bench, name, kind)
            rows += found
            for total in curves.TOTALS:
                gain = curves.gain(found, total)
                rows.append({"data": name, "kind": kind, "total_epsilon": total, "feature": "geometric mean", "gain": gain})
                if total == 1.0 and name != "framingham":
                    headline[f"{name}_{kind}_gain"] = gain
    how = (
        "total epsilon 1 for all columns (5 in rows), replace-one; as published: pure epsilon / columns each; ours: delta "
        f"1e-6; {bench.scale.marginal_draws} marginals x {bench.scale.noise_draws} noises by the vault's rehearsal; "
        "typical mean of ten repetitions; each against the clipped non-private curve of its own convention"
    )
    return Part(headline, rows, how)


def win_shares(bench: Bench) -> Part:
    """Ours for one column at the paper's epsilon against the printed mean of its specific design."""
    headline: dict[str, float] = {}
    rows: list[Row] = []
    for kind in KINDS:
        found = [row for name in curves.CASES for row in curves.per_feature(bench, name, kind)]
        rows += found
        counted = curves.wins(found)
        if counted:
            headline[f"{kind}_win_share"] = float(np.mean([bool(row["wins"]) for row in counted]))
    how = (
        "epsilon 0.5, 1, 2 for one column alone, columns of five or more grid points, delta 1e-6, against printed means; "
        f"{bench.scale.marginal_draws} marginals x {bench.scale.noise_draws} noises, ours against the unclipped non-private "
        "curve of its convention; other columns and epsilons 5, 10 in rows"
    )
    return Part(headline, rows, how)


# --- bands -------------------------------------------------------------------------------------------------------------


# --- the synthetic peer ------------------------------------------------------------------------------------------------


def peer_curves(case: Case, raw: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """Exact partial dependence and accumulated effects (our convention) on synthetic rows, on the axes of the case."""
    found: dict[str, dict[str, np.ndarray]] = {kind: {} for kind in KINDS}
    for name in case.names:
        place = case.place(name)

        def outputs(values: np.ndarray | float, rows: np.ndarray, place: int = place) -> np.ndarray:
            altered = rows.copy()
            altered[:, place] = values
            return case.clipped(case.predict(altered))

        values = case.single_curves(name).values
        if len(values) > PEER_PLACES and len(values) > 100:
            values = values[np.unique(np.linspace(0, len(values) - 1, PEER_PLACES).astype(int))]
        means = np.array([outputs(value, raw).mean() for value in values])
        found["pdp"][name] = np.interp(case.axis(name), values, means)
        column = raw[:, place]
        if case.categorical(name):
            edges, level = case.axis(name), column.astype(int)
            told = (level - 1, np.where(level < len(edges) - 1, level, -1))
        else:
            edges = np.unique(np.quantile(column, np.linspace(0, 1, 101), method="lower"))
            told = (np.clip(np.searchsorted(edges, column, side="left") - 1, 0, len(edges) - 2),)
        sums, counts = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
        for step in told:
            rows = np.flatnonzero(step >= 0)
            change = outputs(edges[step[rows] + 1], raw[rows]) - outputs(edges[step[rows]], raw[rows])
            sums += np.bincount(step[rows], change, minlength=len(sums))
            counts += np.bincount(step[rows], minlength=len(sums))
        curve = np.concatenate([[0.0], np.cumsum(sums / np.maximum(counts, 1))])
        found["ale"][name] = np.interp(case.axis(name), edges, curve - np.interp(column, edges, curve).mean())
    return found


def synthetic(bench: Bench) -> Part:
    """Adult rows from mbi's MST at total epsilon 1, then everything for free, against ours at the same epsilon."""
    from peers.synthetic import Binned, synthesize

    case = bench.case("adult")
    binned = Binned.around(case.schema, case.raw)
    # Replacing a row changes a table of counts by sqrt(2) in L2 where adding one changes it by 1.
    mu = mu_of(1.0, DELTA) / np.sqrt(2)
    errors: dict[tuple[str, str], list[float]] = {}
    for seed in range(1 if case.scale.quick else 2):
        raw = synthesize(binned, case.raw, mu=mu, rows=case.m, rng=np.random.default_rng(seed))
        for kind, by_name in peer_curves(case, raw).items():
            for name, curve in by_name.items():
                error = float(mise(curve, case.truth(kind, name, "ours", clip=True))[0])
                errors.setdefault((kind, name), []).append(error)
    rows: list[Row] = []
    ratios: dict[str, list[float]] = {kind: [] for kind in KINDS}
    how = {"marginal_draws": case.scale.marginal_draws, "noise_draws": case.scale.noise_draws}
    for kind in KINDS:
        mine = curves.our_errors(case, kind, case.names, 1.0, **how)
        for name in case.names:
            peer = float(np.mean(errors[kind, name]))
            found = float(mine[name]["ours_clipped_truth"])  # type: ignore[arg-type]
            ratios[kind].append(peer / found)
            rows.append({"data": "adult", "kind": kind, "feature": name, "synthetic": peer, "ours": found})
        rows.append({"data": "adult", "kind": kind, "feature": "geometric mean", "gain": geometric(ratios[kind])})
    headline = {"synthetic_gain": min(geometric(ratios[kind]) for kind in KINDS)}
    return Part(
        headline,
        rows,
        "total epsilon 1, delta 1e-6, replace-one for both; MISE of the peer over ours, geometric mean over columns, the "
        "smaller of PDP and ALE",
    )
