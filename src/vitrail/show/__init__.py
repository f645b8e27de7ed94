"""Plots and reports, drawn from explanations alone.

Everything here takes plain numbers and texts that were released already: no rows, no vault, no ledger. Figures are plain
matplotlib figures that belong to no window; matplotlib is imported when the first one is drawn.

Examples
--------
>>> import vitrail as vt
>>> risks = [vt.show.Estimate("women", 0.12, 0.02), vt.show.Estimate("men", 0.31, 0.02)]
>>> figure = vt.show.estimates_figure(risks)
>>> len(figure.axes)
1
"""

from ..results.band_claim import BandClaim
from .attribution_html import attribution_table, attributions_html
from .attributions import Attribution, attribution_figure, attributions_figure
from .bill import Bill, BillLine, bill_of
from .budget import bill_section, budget_figure
from .curves import CurveShape, curve_figure, curve_picture, curves_figure
from .estimates import Estimate, estimates_figure, estimates_picture
from .heat_map import heat_figure
from .highlighted_text import HighlightedText, Word
from .histograms import Histogram, histograms_figure, histograms_section
from .images import figure_image
from .label import PrivacyLabel, privacy_label
from .page import html_text
from .rankings import RankingShape, ranking_figure, ranking_picture
from .report import Picture, Report, Section, Table
from .spending import budget_over_queries
from .waterfall import waterfall_figure

__all__ = [
    "Attribution",
    "BandClaim",
    "Bill",
    "BillLine",
    "CurveShape",
    "Estimate",
    "HighlightedText",
    "Histogram",
    "Picture",
    "PrivacyLabel",
    "RankingShape",
    "Report",
    "Section",
    "Table",
    "Word",
    "attribution_figure",
    "attribution_table",
    "attributions_figure",
    "attributions_html",
    "bill_of",
    "bill_section",
    "budget_figure",
    "budget_over_queries",
    "curve_figure",
    "curve_picture",
    "curves_figure",
    "estimates_figure",
    "estimates_picture",
    "figure_image",
    "heat_figure",
    "histograms_figure",
    "histograms_section",
    "html_text",
    "privacy_label",
    "ranking_figure",
    "ranking_picture",
    "waterfall_figure",
]
