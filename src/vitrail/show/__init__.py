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

from .bill import Bill, BillLine, bill_of
from .budget import bill_section, budget_figure
from .estimates import Estimate, estimates_figure, estimates_picture
from .histograms import Histogram, histograms_figure, histograms_section
from .images import figure_image
from .label import PrivacyLabel, privacy_label
from .page import html_text
from .report import Picture, Report, Section, Table

__all__ = [
    "Bill",
    "BillLine",
    "Estimate",
    "Histogram",
    "Picture",
    "PrivacyLabel",
    "Report",
    "Section",
    "Table",
    "bill_of",
    "bill_section",
    "budget_figure",
    "estimates_figure",
    "estimates_picture",
    "figure_image",
    "histograms_figure",
    "histograms_section",
    "html_text",
    "privacy_label",
]
