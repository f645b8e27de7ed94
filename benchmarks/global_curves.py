"""Curves measured: as published, ours, and as printed; for one column at a time, and for all columns at one total price.

What the published designs lose does not change with ours, so it is kept in the cache on its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import global_levels as levels
import global_ours as ours
from global_setup import FEW_PLACES, Bench, Case, mise, typical
from papers import tailoring_published as published

KINDS = ("pdp", "ale")
CASES = ("adult", "bike", "framingham")
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
COUNTED_EPSILONS = (0.5, 1.0, 2.0)
"""Of which wins are counted."""
TOTALS = (1.0, 5.0)
RESOLUTIONS = (10, 20, 50, 100)
MOST_IMPORTANT = {"adult": ("age", "capital-gain"), "bike": ("hr",), "framingham": ("age",)}
"""What the paper varies the resolution of."""
WHOLE_NUMBERS = ("adult",)
"""Datasets that the paper's code keeps as tables of whole numbers (``tailoring_published``)."""

Row = dict[str, object]


def kept(case: Case, what: str, make: Callable[[], object]) -> object:
    """JSON values in the cache, by name, rows and scale."""
    path = case.cache.folder / f"{what}-{case.name}-{case.m}.json"
    if not path.exists():
        path.write_text(json.dumps(make()))
    return json.loads(path.read_text())


@cache
def anchors(folder: Path | None, name: str) -> pd.DataFrame | None:
    """A file of printed figures, where there is one."""
    path = None if folder is None else folder / f"tailoring_dp_{name}.csv"
    return pd.read_csv(path) if path is not None and path.exists() else None


def printed(bench: Bench, case: Case, kind: str, name: str, epsilon: float, resolution: int | None = None) -> Row:
    """The published means of both designs, with the standard deviation of their ten repetitions."""
    table = anchors(bench.anchors, kind if resolution is None else f"{kind}_resolution")
    if table is None:
        return {}
    found = table[(table["dataset"] == case.published_name) & (table["epsilon"] == epsilon) & (table["feature"] == name)]
    if resolution is not None:
        found = found[found["resolution"] == resolution]
    if found.empty:
        return {}
    specific = "laplace" if resolution is None else "specific"
    line, upper = found.iloc[0], kind.upper()
    return {
        "printed": float(line[f"mean MSE {upper} {specific}"]),
        "printed_std": float(line[f"std {upper} {specific}"]),
        "printed_generic": float(line[f"mean MSE {upper} generic"]),
    }


def _seeded(*what: object) -> np.random.Generator:
    return np.random.default_rng(list(json.dumps(what).encode()))


def published_curves(
    case: Case, kind: str, name: str, epsilon: float, resolution: int = published.RESOLUTION, *, quantile_draws: int
) -> np.ndarray:
    rng = _seeded("specific", case.name, kind, name, epsilon, resolution)
    draws = case.scale.published_draws
    if kind == "pdp":
        return published.partial_dependence(case, name, epsilon, draws, rng, resolution)
    return published.accumulated_effects(
        case, name, epsilon, max(draws // quantile_draws, 20), rng, resolution, quantile_draws
    )


def published_errors(case: Case, kind: str, name: str, epsilons: tuple[float, ...], resolution: int | None = None) -> Row:
    """MISE of the specific design at each epsilon, against both conventions' curves, clipped and not; and of the generic."""
    count = published.RESOLUTION if resolution is None else resolution
    quantile_draws = case.scale.quantile_draws if resolution is None else max(case.scale.quantile_draws // 2, 1)

    def make() -> Row:
        plain = case.truth(kind, name, "published", clip=False)
        clipped = case.truth(kind, name, "published", clip=True)
        other = case.truth(kind, name, "ours", clip=True)
        rng = _seeded("generic", case.name, kind, name, count)
        means = [published.generic_mean(case, name, kind, rng, count) for _ in range(case.scale.shuffles)]
        found: Row = {}
        for epsilon in epsilons:
            curves = published_curves(case, kind, name, epsilon, count, quantile_draws=quantile_draws)
            generic = published.generic_plot(case, name, kind, means, epsilon, case.scale.published_draws // len(means), rng)
            found[str(epsilon)] = {
                "published": typical(mise(curves, plain)),
                "published_clipped_truth": typical(mise(curves, clipped)),
                "published_our_truth": typical(mise(curves, other)),
                "generic": typical(mise(generic, plain)),
                "generic_clipped_truth": typical(mise(generic, clipped)),
            }
        return found

    suffix = "" if resolution is None else f"-{resolution}"
    digest = "-".join(f"{epsilon:g}" for epsilon in epsilons)
    return kept(case, f"published-{kind}-{name}{suffix}-{digest}-{case.scale.quick}", make)  # type: ignore[return-value]


def truncated_errors(case: Case, name: str, epsilons: tuple[float, ...]) -> dict[str, float]:
    """MISE of the specific partial dependence as the paper's code has it: places cut to whole numbers before the model."""

    def make() -> dict[str, float]:
        plain = case.truth("pdp", name, "published", clip=False)
        draws, found = case.scale.published_draws, {}
        for epsilon in epsilons:
            rng = _seeded("truncated", case.name, "pdp", name, epsilon)
            curves = published.partial_dependence(case, name, epsilon, draws, rng, truncated=True)
            found[str(epsilon)] = typical(mise(curves, plain))
        return found

    return kept(case, f"truncated-pdp-{name}-{case.scale.quick}", make)  # type: ignore[return-value]


def our_errors(case: Case, kind: str, features: tuple[str, ...], epsilon: float, **how: int) -> dict[str, Row]:
    """MISE of ours for columns that share one epsilon, by column."""
    plain = {name: case.truth(kind, name, "ours", clip=False) for name in features}
    clipped = {name: case.truth(kind, name, "ours", clip=True) for name in features}
    other = {name: case.truth(kind, name, "published", clip=False) for name in features}
    errors: dict[str, list[tuple[float, float, float]]] = {name: [] for name in features}
    for curves in ours.drawn(case, kind, features, epsilon, **how):
        for name in features:
            curve = curves[name].on(case, name)
            errors[name].append(tuple(float(mise(curve, t[name])[0]) for t in (plain, clipped, other)))  # type: ignore[arg-type]
    return {
        name: {
            "ours": typical(np.array(found)[:, 0]),
            "ours_clipped_truth": typical(np.array(found)[:, 1]),
            "ours_published_truth": typical(np.array(found)[:, 2]),
        }
        for name, found in errors.items()
    }


def errors_alone(case: Case, kind: str, feature: str, epsilon: float) -> Row:
    """MISE of ours for a column that is asked about alone, with the noise that the library takes by itself."""
    if levels.with_laplace(case, kind, feature):
        return levels.errors(case, kind, feature, epsilon)
    how = {"marginal_draws": case.scale.marginal_draws, "noise_draws": case.scale.noise_draws}
    return {**our_errors(case, kind, (feature,), epsilon, **how)[feature], "noise": "gaussian"}


def per_feature(bench: Bench, name: str, kind: str) -> list[Row]:
    """One column at a time, epsilon for that column alone: the paper's experiment 1."""
    case = bench.case(name)
    rows: list[Row] = []
    for feature in case.names:
        as_published = published_errors(case, kind, feature, EPSILONS)
        whole = kind == "pdp" and name in WHOLE_NUMBERS and not case.categorical(feature)
        truncated = truncated_errors(case, feature, EPSILONS) if whole else {}
        for epsilon in EPSILONS:
            found = errors_alone(case, kind, feature, epsilon)
            rows.append(
                {
                    "data": name,
                    "kind": kind,
                    "feature": feature,
                    "epsilon": epsilon,
                    "grid_points": case.grid_points(feature),
                    "categorical": case.categorical(feature),
                    **as_published[str(epsilon)],  # type: ignore[dict-item]
                    **({"published_truncated": truncated[str(epsilon)]} if truncated else {}),
                    **printed(bench, case, kind, feature, epsilon),
                    **found,
                }
            )
    return rows


def all_features(bench: Bench, name: str, kind: str) -> list[Row]:
    """All columns of a dataset at one total epsilon; as published, each column gets its equal part."""
    case = bench.case(name)
    rows: list[Row] = []
    shares = tuple(total / len(case.names) for total in TOTALS)
    for total, share in zip(TOTALS, shares, strict=True):
        how = {"marginal_draws": case.scale.marginal_draws, "noise_draws": case.scale.noise_draws}
        found = our_errors(case, kind, case.names, total, **how)
        for feature in case.names:
            as_published = published_errors(case, kind, feature, shares)[str(share)]
            rows.append(
                {
                    "data": name,
                    "kind": kind,
                    "feature": feature,
                    "total_epsilon": total,
                    "grid_points": case.grid_points(feature),
                    **as_published,  # type: ignore[dict-item]
                    **found[feature],
                }
            )
    return rows


def resolution(bench: Bench) -> list[Row]:
    """The paper's experiment 2: other resolutions; ours at the same number of measured places."""
    rows: list[Row] = []
    for name, features in MOST_IMPORTANT.items():
        case = bench.case(name)
        for kind in KINDS:
            for feature in features:
                for count in RESOLUTIONS:
                    as_published = published_errors(case, kind, feature, EPSILONS, count)
                    for epsilon in EPSILONS:
                        row: Row = {
                            "data": name,
                            "kind": kind,
                            "feature": feature,
                            "epsilon": epsilon,
                            "resolution": count,
                            **as_published[str(epsilon)],  # type: ignore[dict-item]
                            **printed(bench, case, kind, feature, epsilon, count),
                        }
                        if kind == "pdp":
                            how = {"marginal_draws": 1, "noise_draws": min(case.scale.noise_draws, 20), "resolution": count}
                            row |= our_errors(case, kind, (feature,), epsilon, **how)[feature]
                        rows.append(row)
    return rows


def geometric(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def gain(rows: list[Row], total: float) -> float:
    """Geometric mean over columns of as published over ours, each against its own clipped curve."""
    chosen = [row for row in rows if row["total_epsilon"] == total]
    return geometric([float(row["published_clipped_truth"]) / float(row["ours_clipped_truth"]) for row in chosen])  # type: ignore[arg-type]


def wins(rows: list[Row]) -> list[Row]:
    """Rows at the paper's epsilons with printed figures and enough grid points, with who has the lower MISE."""
    return [
        {**row, "wins": bool(row["ours"] < row["printed"])}  # type: ignore[operator]
        for row in rows
        if row["epsilon"] in COUNTED_EPSILONS and int(row["grid_points"]) >= FEW_PLACES and "printed" in row  # type: ignore[call-overload]
    ]
