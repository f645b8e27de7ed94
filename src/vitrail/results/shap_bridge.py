"""The way to shap: its Explanation object, and its waterfall without its global state. shap is imported on first use."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._types import Figure
from ..errors import InvalidInput

if TYPE_CHECKING:
    import shap

    from .attribution import Attribution


def shap_is_here() -> bool:
    """Whether shap is installed, without importing it."""
    return find_spec("shap") is not None


def shap_explanation(explanation: Attribution, *, escape_dollars: bool = False) -> shap.Explanation:
    """The explanation as shap's own object; ``escape_dollars`` keeps matplotlib from reading names as formulas."""
    try:
        import shap
    except ImportError as error:
        raise InvalidInput("shap is not installed; install it with: pip install 'vitrail[shap]'") from error

    def text(value: object) -> object:
        return value.replace("$", r"\$") if escape_dollars and isinstance(value, str) else value

    display = np.empty(explanation.values.shape, dtype=object)
    for row, point in enumerate(explanation.points):
        display[row] = [text(point[name]) for name in explanation.columns]
    lower = upper = None
    if explanation.lower is not None and explanation.upper is not None:
        # shap draws a bound as a distance from the value, and cannot draw a negative one.
        lower = np.minimum(explanation.lower, explanation.values)
        upper = np.maximum(explanation.upper, explanation.values)
    return shap.Explanation(
        values=explanation.values.copy(),
        base_values=explanation.base_values.copy(),
        data=_coded(explanation),
        display_data=display,
        feature_names=[str(text(name)) for name in explanation.columns],
        lower_bounds=lower,
        upper_bounds=upper,
    )


def shap_waterfall(explanation: Attribution, point: int, max_columns: int) -> Figure:
    """shap's waterfall of one point, in a figure that pyplot has forgotten again."""
    given = shap_explanation(explanation[point], escape_dollars=True)[0]
    import matplotlib
    import matplotlib.pyplot as plt
    import shap

    interactive = plt.isinteractive()
    figure = plt.figure(facecolor="white")  # a new one: shap draws into the current figure, which may be the caller's
    try:
        shap.plots.waterfall(given, max_display=max_columns, show=False)
        figure.set_layout_engine("constrained")
    finally:
        plt.close(figure)
        matplotlib.interactive(interactive)
    return figure


def _coded(explanation: Attribution) -> NDArray[np.float64]:
    """The points as numbers: a column with a text in it is numbered by its values in order."""
    made = np.empty(explanation.values.shape)
    for place, name in enumerate(explanation.columns):
        column = [point[name] for point in explanation.points]
        numbers = [value for value in column if isinstance(value, int | float)]
        if len(numbers) == len(column):
            made[:, place] = numbers
        else:
            levels = {text: code for code, text in enumerate(sorted({str(value) for value in column}))}
            made[:, place] = [levels[str(value)] for value in column]
    return made
