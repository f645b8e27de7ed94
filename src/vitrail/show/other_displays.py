"""Results as other libraries draw them: scikit-learn's display of curves, shap's object, interpret's explanations.

These libraries are imported when they are asked for. What they have no place for is kept where a reader finds it: bands lie
beside the averages of a display, which draws them, and among the data of an explanation.

Levels are given to them as texts: a level that is a number is a name, and no place on an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._types import Axes, Floats
from ..errors import InvalidInput
from ..results import Attribution, Curve, Ranking, Surface
from ..results.base import Result
from ..results.checks import plain_value, shown_text
from ..results.curve import Side
from ..results.effects import Effects
from ..results.report import PART_NAMES, Report

Member: TypeAlias = Curve | Surface
Data: TypeAlias = dict[str, Any]
DECILES = np.arange(1, 10) / 10
BAND_ALPHA = 0.25
MARGIN = 0.05
"""Above and below the band of a curve, as a share of its height."""
PARTIAL_DEPENDENCE = "Partial dependence"
"""What scikit-learn writes beside a curve, whatever it is a curve of."""


def _imported(module: str, package: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InvalidInput(f"{package} is not installed; install it with: pip install 'vitrail[{extra}]'") from error


# --- scikit-learn ----------------------------------------------------------------------------------------------------------


def sklearn_display(members: Sequence[Member]) -> Any:
    """Curves and surfaces as one ``PartialDependenceDisplay``, whose ``plot`` draws the bands of curves as well.

    ``display.pd_results[i]`` has ``lower`` and ``upper`` beside ``grid_values`` and ``average``. There are no individual
    lines: they would be of private rows.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> curve = vt.Curve("age", "any curve", np.array([20.0, 40.0]), np.array([0.1, 0.3]), vt.Guarantee.of_mu(0.2, 1e-6),
    ...     vt.Cost.of_mu(0.2), std=np.full(2, 0.05))
    >>> sklearn_display([curve]).pd_results[0].lower.round(2).tolist()
    [[0.0, 0.2]]
    """
    base = _imported("sklearn.inspection", "scikit-learn", "sklearn").PartialDependenceDisplay
    bunch = import_module("sklearn.utils").Bunch

    def plot(self: Any, *, ax: Any = None, centered: bool = False, **options: Any) -> Any:
        """As scikit-learn draws it, and the bands of curves over it."""
        drawn = base.plot(self, ax=ax, centered=centered, **options)
        shown = zip(self.axes_.ravel(), self.pd_results, strict=False)
        curves = [(axes, result) for axes, result in shown if len(result.grid_values) == 1]
        ends = [axes.get_ylim() for axes, _ in curves]
        for axes, result in curves:
            if result.lower is not None:
                ends.append(_draw_band(axes, result, result.average[0, 0] if centered else 0.0))
            if axes.get_ylabel() == PARTIAL_DEPENDENCE:
                axes.set_ylabel(f"{result.kind[:1].upper()}{result.kind[1:]}")
        if options.get("pdp_lim") is None:  # scikit-learn has one scale for all curves
            for axes, _ in curves:
                axes.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
        return drawn

    names = list(dict.fromkeys(name for member in members for name in _names(member)))
    features = [tuple(names.index(name) for name in _names(member)) for member in members]
    results = [
        bunch(
            grid_values=[np.array(side) if numeric else _texts(side) for side, numeric in _sides(member)],
            kind=member.kind,
            average=_numbers(member)[None],
            lower=None if member.lower is None else member.lower[None],
            upper=None if member.upper is None else member.upper[None],
        )
        for member in members
    ]
    return type("BandedDisplay", (base,), {"plot": plot})(
        results,
        features=features,
        feature_names=names,
        target_idx=0,
        deciles=dict(enumerate(_deciles(name, members) for name in names)),
        # A surface of a number and levels can only be drawn as one of levels.
        is_categorical=[(not all(numeric for _, numeric in _sides(one)),) * len(_names(one)) for one in members],
    )


def _members(effects: Effects) -> list[Member]:
    return [*effects.curves.values(), *effects.surfaces.values()]


def _names(member: Member) -> tuple[str, ...]:
    return (member.label,) if isinstance(member, Curve) else member.names


def _numbers(member: Member) -> Floats:
    return member.y if isinstance(member, Curve) else member.values


def _sides(member: Member) -> list[tuple[Side, bool]]:
    """The values of each column, and whether they are numbers."""
    if isinstance(member, Curve):
        return [(member.x, not member.categorical)]
    return [(side, isinstance(side, np.ndarray)) for side in member.sides]


def _texts(side: Side) -> NDArray[np.object_]:
    return np.array(list(map(str, side)), dtype=object)


def _deciles(name: str, members: Sequence[Member]) -> Floats:
    """Of the rows along a column, from a released histogram; none where there is no such thing."""
    for member in members:
        known = member.density if isinstance(member, Curve) and member.label == name else None
        if known is not None and known.edges is not None:
            so_far = np.concatenate([[0.0], np.cumsum(np.maximum(known.shares, 0.0))])  # noise may have made one negative
            return np.asarray(np.interp(DECILES * so_far[-1], so_far, known.edges)) if so_far[-1] > 0 else np.empty(0)
    return np.empty(0)


def _draw_band(axes: Axes, result: Any, shift: float) -> tuple[float, float]:
    """Draw it, and say from where to where, with a margin."""
    (x,), y, lower, upper = result.grid_values, result.average[0], result.lower[0], result.upper[0]
    if x.dtype == object:
        ends = [np.maximum(y - lower, 0), np.maximum(upper - y, 0)]
        axes.errorbar(range(len(x)), y - shift, yerr=ends, fmt="none", color="k", capsize=3)
    else:
        axes.fill_between(x, lower - shift, upper - shift, color="C0", alpha=BAND_ALPHA, linewidth=0)
    low, high = float((lower - shift).min()), float((upper - shift).max())
    return low - MARGIN * (high - low), high + MARGIN * (high - low)


# --- shap ------------------------------------------------------------------------------------------------------------------


def shap_explanation(values: Floats, lower: Floats | None, upper: Floats | None, **more: Any) -> Any:
    """Values with bands as a ``shap.Explanation``.

    ``display_data``, an array of objects of shape (points, columns), is made into what shap's plots read: see
    :func:`_shap_column`.

    Examples
    --------
    >>> shap_explanation(np.array([0.2, -0.1]), None, None, feature_names=["age", "sex"]).values.tolist()
    [0.2, -0.1]
    """
    if (points := more.get("display_data")) is not None:
        data, shown = zip(*map(_shap_column, points.T), strict=True)
        more |= {"data": np.column_stack(data), "display_data": np.column_stack(shown)}
    return _imported("shap", "shap", "shap").Explanation(
        values=values.copy(),
        # shap draws a bound as a distance from the value, and cannot draw a negative one.
        lower_bounds=None if lower is None else np.minimum(lower, values),
        upper_bounds=None if upper is None else np.maximum(upper, values),
        **more,
    )


def _shap_column(column: Sequence[object]) -> tuple[Floats, NDArray[np.object_]]:
    """The values of a column as numbers, by which dots are placed and coloured, and as they are written.

    Numbers stay what they are, NaN where one is missing: shap draws those dots in grey. Anything else is texts, numbered in
    their order: plots format a truth as a number, cannot write ``None``, and ask the first value for the kind of all.

    Examples
    --------
    >>> [made.tolist() for made in _shap_column([31, None, 9.5])]
    [[31.0, nan, 9.5], [31, nan, 9.5]]
    >>> [made.tolist() for made in _shap_column([True, None, False])]
    [[1.0, 2.0, 0.0], ['True', 'missing', 'False']]
    """
    known = [value for value in column if value is not None]
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        shown = np.array([np.nan if value is None else value for value in column], dtype=object)
        return shown.astype(np.float64), shown
    texts = [shown_text(value) for value in column]
    ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
    return np.array([float(ranks[text]) for text in texts]), np.array(texts, dtype=object)


# --- interpret -------------------------------------------------------------------------------------------------------------


def interpret_explanation(result: Result) -> Any:
    """A result as interpret's ``show`` takes it: local for attributions, global for rankings, curves and reports.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> ranking = vt.Ranking(("age", "sex"), np.array([0.1, 0.5]), vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2))
    >>> made = interpret_explanation(ranking)
    >>> made.explanation_type, made.name, made.data()["names"]
    ('global', 'any ranking', ['sex', 'age'])
    """
    match result:
        case Attribution():
            points = [_of_point(one) for one in result]
            predicted = {"Predicted": result.outputs.tolist()}
            return _explanation("local", f"{result.method} reasons", None, points, result.columns, (), predicted)
        case Ranking():
            return _explanation("global", result.kind, _of_ranking(result), None, result.items, (), {"Name": result.items})
        case Curve() | Surface():
            return _of_curves(result.kind, None, [result])
        case Effects():
            members = _members(result)
            return _of_curves(members[0].kind, None, members)
        case Report():
            ranking, effects = next(iter(result.rankings.values()), None), result.pdp or result.ale
            overall = None if ranking is None else _of_ranking(ranking)
            name = f"{result.model} on {result.dataset}: {PART_NAMES[result.parts[0]]}"
            return _of_curves(name, overall, [] if effects is None else _members(effects))
    raise InvalidInput(
        f"interpret has no explanation like a {type(result).__name__}; attributions, rankings, curves, surfaces, effects "
        "and reports can be shown there"
    )


def _explanation(
    kind: str,
    name: str,
    overall: Data | None,
    specific: list[Data] | None,
    names: Sequence[str],
    types: Sequence[str],
    selector: dict[str, Any],
) -> Any:
    template = _imported("interpret.api.templates", "interpret", "interpret").FeatureValueExplanation

    def visualize(self: Any, key: Any = None, *given: Any, **options: Any) -> Any:
        """As interpret draws it; where there is one picture and no other over all, that one is drawn without a key."""
        key = 0 if key is None and overall is None and specific is not None and len(specific) == 1 else key
        figure = template.visualize(self, key, *given, **options)
        return figure if figure is None or key is None else _completed(figure, self.data(key))

    frame = None if specific is None else import_module("pandas").DataFrame(selector)
    held = {"overall": overall, "specific": specific}
    made = type("BandedExplanation", (template,), {"visualize": visualize})
    return made(kind, held, feature_names=list(names), feature_types=list(types), name=name, selector=frame)


def _completed(figure: Any, told: Data) -> Any:
    """A figure of interpret with what its renderers leave out: the lower ends of bars' bands, axes of levels."""
    if told["type"] == "interaction":
        for update, (title, kind) in zip((figure.update_xaxes, figure.update_yaxes), told["sides"], strict=True):
            update(title_text=title, **({"type": "category"} if kind == NOMINAL else {}))
    elif told.get("kind") == NOMINAL and told["lower_bounds"] is not None:
        ends = told["upper_bounds"] - told["scores"], told["scores"] - told["lower_bounds"]
        upwards, downwards = (np.maximum(end, 0) for end in ends)
        figure.data[0].error_y.update(symmetric=False, array=upwards, arrayminus=downwards)
    return figure


def _of_curves(name: str, overall: Data | None, members: Sequence[Member]) -> Any:
    names = [" & ".join(_names(member)) for member in members]
    types = ["interaction" if isinstance(one, Surface) else KINDS[bool(one.categorical)] for one in members]
    specific = [_of_surface(one) if isinstance(one, Surface) else _of_curve(one) for one in members]
    return _explanation("global", name, overall, specific or None, names, types, {"Name": names, "Type": types})


def _of_point(one: Attribution) -> Data:
    """One point: what each column contributed, and the base value."""
    output = float(one.outputs[0])
    return {
        "type": "univariate",
        "names": list(one.columns),
        "scores": one.values[0].tolist(),
        "values": [shown_text(one.points[0][name]) for name in one.columns],
        "lower_bounds": None if one.lower is None else one.lower[0].tolist(),
        "upper_bounds": None if one.upper is None else one.upper[0].tolist(),
        "extra": {"names": ["Base value"], "scores": [float(one.base_values[0])], "values": [1]},
        "perf": {
            "is_classification": False,
            "actual": np.nan,
            "predicted": output,
            "actual_score": np.nan,
            "predicted_score": output,
        },
    }


def _of_ranking(ranking: Ranking) -> Data:
    numbers = ranking.frame()
    bands = {name: None if ranking.std is None else numbers[end].tolist() for name, end in _BANDS.items()}
    return {"type": "univariate", "names": list(ranking.order), "scores": numbers["score"].tolist(), **bands}


_BANDS = {"lower_bounds": "lower", "upper_bounds": "upper"}
NOMINAL = "nominal"
KINDS = {False: "continuous", True: NOMINAL}
"""What interpret calls a column, by whether it has levels."""


def _plain(side: Side) -> list[Any]:
    return [plain_value(value) for value in side]


def _of_curve(curve: Curve) -> Data:
    made: Data = {
        "type": "univariate",
        "names": _plain(curve.x),
        "scores": curve.y.copy(),
        "kind": KINDS[bool(curve.categorical)],
    }
    made |= {name: None if (end := getattr(curve, field)) is None else end.copy() for name, field in _BANDS.items()}
    if curve.density is not None:
        edges = curve.x if curve.density.edges is None else curve.density.edges
        made["density"] = {"names": _plain(edges), "scores": curve.density.shares.tolist()}
    return made


def _of_surface(surface: Surface) -> Data:
    left, right = map(_plain, surface.sides)
    bands = {name: getattr(surface, field) for name, field in _BANDS.items()}
    sides = [(name, KINDS[not numeric]) for name, (_, numeric) in zip(surface.names, _sides(surface), strict=True)]
    made: Data = {"type": "interaction", "left_names": left, "right_names": right, "scores": surface.values.copy()}
    return made | bands | {"sides": sides}
