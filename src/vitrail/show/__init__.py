"""Pictures and pages of results. Nothing here knows rows, the vault or the ledger.

``page(result)`` is a whole HTML page, ``fragment(result)`` what a notebook shows, and the ``*_figure`` functions are plain
matplotlib figures that belong to no window. matplotlib and jinja2 are imported when something is first drawn. Results reach
this room by one door, ``results.door``.

Examples
--------
>>> import vitrail as vt
>>> risks = [vt.show.Estimate("women", 0.12, 0.02), vt.show.Estimate("men", 0.31, 0.02)]
>>> figure = vt.show.estimates_figure(risks)
>>> len(figure.axes)
1
"""

from ..guarantee import Bill, BillLine
from ..results.band_claim import BandClaim
from .attributions import AttributionPlots, attribution_figure, attributions_figure, summary, waterfall_figure
from .audits import RocCurve, audit_page, roc_figure
from .counterfactuals import changes_figure, class_counts_figure, distances_figure, pictures_figure
from .curves import Estimate, curve_figure, curves_figure, estimates_figure, ranking_figure, surface_figure
from .histograms import histograms_figure, links_figure
from .images import filters_figure, heat_figure, image_figure, map_figure
from .pages import fragment, page, page_content
from .spending import bill_table, budget_figure, budget_over_queries
from .style import figure_svg, write_page
from .tables import Table
from .words import HighlightedText, Word

__all__ = [
    "AttributionPlots",
    "BandClaim",
    "Bill",
    "BillLine",
    "Estimate",
    "HighlightedText",
    "RocCurve",
    "Table",
    "Word",
    "attribution_figure",
    "attributions_figure",
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
    "heat_figure",
    "histograms_figure",
    "image_figure",
    "links_figure",
    "map_figure",
    "page",
    "page_content",
    "pictures_figure",
    "ranking_figure",
    "roc_figure",
    "summary",
    "surface_figure",
    "waterfall_figure",
    "write_page",
]
