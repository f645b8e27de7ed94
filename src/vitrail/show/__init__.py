"""Pictures and pages of results. Nothing here knows rows, the vault or the ledger.

``page(result)`` is a whole HTML page, ``fragment(result)`` what a notebook shows, and the ``*_figure`` functions are plain
matplotlib figures that belong to no window. matplotlib and jinja2 are imported when something is first drawn. Results reach
this room by one door, ``results.base``.

Examples
--------
>>> import vitrail as vt
>>> risks = [vt.show.Estimate("women", 0.12, 0.02), vt.show.Estimate("men", 0.31, 0.02)]
>>> figure = vt.show.estimates_figure(risks)
>>> len(figure.axes)
1
"""

from .attributions import AttributionPlots, summary
from .audits import RocCurve, audit_page, roc_figure
from .counterfactuals import changes_figure, class_counts_figure, distances_figure, pictures_figure
from .curves import Estimate, curve_figure, curves_figure, estimates_figure, ranking_figure, surface_figure
from .histograms import histograms_figure, links_figure
from .images import filters_figure, map_figure
from .pages import fragment, page
from .spending import bill_table, budget_figure, budget_over_queries
from .style import figure_svg, write_page
from .tables import Table

__all__ = [
    "AttributionPlots",
    "Estimate",
    "RocCurve",
    "Table",
    "audit_page",
    "bill_table",
    "budget_figure",
    "budget_over_queries",
    "changes_figure",
    "class_counts_figure",
    "curve_figure",
    "curves_figure",
    "distances_figure",
    "estimates_figure",
    "figure_svg",
    "filters_figure",
    "fragment",
    "histograms_figure",
    "links_figure",
    "map_figure",
    "page",
    "pictures_figure",
    "ranking_figure",
    "roc_figure",
    "summary",
    "surface_figure",
    "write_page",
]
