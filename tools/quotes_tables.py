"""The tables on quotes, from benchmarks/results/quotes.json."""

from __future__ import annotations

from page_tables import Lines, Tables, held_to, how, rows_of, table

DATA = ("adult", "bike")
HEADLINE = {
    "adult_worst_from_schema": ("Adult: the worst quote from the schema alone, wrong by", "<= 3 x", "{:.1f} x"),
    "adult_worst_from_marginals": ("Adult: the worst quote once marginals were bought, wrong by", "<= 1.5 x", "{:.1f} x"),
    "bike_worst_from_schema": ("Bike: the worst quote from the schema alone, wrong by", "<= 3 x", "{:.1f} x"),
    "bike_worst_from_marginals": ("Bike: the worst quote once marginals were bought, wrong by", "<= 1.5 x", "{:.1f} x"),
    "adult_slowest_quote_seconds": ("Adult: the slowest quote", "seconds", "{:.1f} s"),
    "bike_slowest_quote_seconds": ("Bike: the slowest quote", "seconds", "{:.1f} s"),
}


def quotes() -> Lines:
    """Quoted over real half-widths, by explainer, dataset and epsilon."""
    lines = []
    for row in rows_of("quotes", *DATA):
        low, high = row["real_draws"]
        cells = (f"{row['from_schema']:.2f}", f"{row['from_marginals']:.2f}", f"{low:.2g} to {high:.2g}")
        lines.append((row["explainer"], row["data"].title(), row["epsilon"], *cells, f"{row['quote_seconds']:.1f}"))
    head = (
        "explainer",
        "data",
        "epsilon",
        "quoted / real, schema",
        "quoted / real, marginals",
        "real half-widths",
        "seconds",
    )
    return table(head, lines)


TABLES: Tables = {
    "quotes.headline": lambda: held_to("quotes", HEADLINE),
    "quotes.ratios": quotes,
    "quotes.how": lambda: how("quotes", *DATA),
}
