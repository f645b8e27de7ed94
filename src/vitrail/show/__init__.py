"""Pictures and pages of results. Nothing here knows rows, the vault or the ledger.

``page(result)`` is a whole HTML page, ``fragment(result)`` what a notebook shows, and the ``*_figure`` functions are plain
matplotlib figures that belong to no window. matplotlib and jinja2 are imported when something is first drawn. Results reach
this room by one door, ``results.base``.

Examples
--------
>>> import numpy as np, vitrail as vt
>>> risks = vt.Ranking(("women", "men"), np.array([0.12, 0.31]), vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2))
>>> len(vt.show.ranking_figure(risks).axes)
1
"""

from .attributions import AttributionPlots, summary
from .audits import RocCurve, audit_page, roc_figure
from .counterfactuals import changes_figure, class_counts_figure, distances_figure, pictures_figure
from .curves import curve_figure, curves_figure, ranking_figure, surface_figure
from .groups import groups_figure
from .histograms import histograms_figure, links_figure
from .images import filters_figure, map_figure
from .other_displays import interpret_explanation, shap_explanation, sklearn_display
from .pages import fragment, page
from .spending import bill_table, budget_figure
from .style import figure_svg, write_page
from .text_tables import Table

__all__ = [
    "AttributionPlots",
    "RocCurve",
    "Table",
    "audit_page",
    "bill_table",
    "budget_figure",
    "changes_figure",
    "class_counts_figure",
    "curve_figure",
    "curves_figure",
    "distances_figure",
    "figure_svg",
    "filters_figure",
    "fragment",
    "groups_figure",
    "histograms_figure",
    "interpret_explanation",
    "links_figure",
    "map_figure",
    "page",
    "pictures_figure",
    "ranking_figure",
    "roc_figure",
    "shap_explanation",
    "sklearn_display",
    "summary",
    "surface_figure",
    "write_page",
]
