"""Write docs/benchmarks.md and docs/papers/*.md from benchmarks/results/*.json: no figure in the docs is typed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import audit_tables
import counterfactual_tables
import global_tables
import local_tables
import locally_linear_tables
import pane_tables
import patel_tables
import tailoring_tables

ROOT = Path(__file__).resolve().parent.parent

VAULT = {
    "bounded_sum_vs_numpy": ("bounded sum, 1 000 000 x 100, over plain NumPy clip-and-sum", "at most 1.5", "{:.2f} x"),
    "gram_sum_vs_numpy": ("Gram sum, 1 000 000 x 40, over `(X*w[:,None]).T @ X`", "at most 3", "{:.2f} x"),
    "batched_gram_vs_numpy": ("1 000 Gram sums at once, n = 40, over `A.T @ V`", "at most 3 (aim 2)", "{:.2f} x"),
    "noise_ns_per_draw": ("rounded Gaussian noise, per draw", "at most 200 ns", "{:.0f} ns"),
    "parquet_peak_mib": ("peak memory, Parquet of 10 000 000 x 50 streamed", "under 1024 MiB", "{:.0f} MiB"),
    "charges_per_second": ("durable charges a second, SQLite", "at least 200", "{:.0f}"),
    "audit_mu_ratio_min": ("audit: smallest measured mu over the claim, over all sums", "at least 0.9", "{:.3f}"),
    "audit_mu_ratio_max": ("audit: largest measured mu over the claim, over all sums", "at most 1", "{:.3f}"),
}


def vault_page() -> str:
    found = json.loads((ROOT / "benchmarks" / "results" / "vault.json").read_text())
    headline, how = found["headline"], found["how"]
    lines = ["# Measured speed and tightness", "", "Written by `tools/make_docs_tables.py` from `benchmarks/results`.", ""]
    lines += ["## The vault", "", "| figure | held to | measured |", "|---|---|---|"]
    for key, (what, bar, form) in VAULT.items():
        lines.append(f"| {what} | {bar} | {form.format(headline[key])} |")
    lines += ["", "How: " + "; ".join(f"*{name}*: {value}" for name, value in how.items()) + ".", ""]
    audits = next(row["found"] for row in found["rows"] if row["part"] == "audits")
    lines += ["| audited question | measured mu / claim | draws | verdict |", "|---|---|---|---|"]
    lines += [f"| {a['question']} | {a['mu_ratio']:.3f} | {a['draws']} | {a['verdict']} |" for a in audits]
    if local_tables.RESULTS.exists():
        lines += ["", *local_tables.section()]
    if global_tables.RESULTS.exists():
        lines += ["", *global_tables.section()]
    if pane_tables.RESULTS.exists():
        lines += ["", *pane_tables.section()]
    if audit_tables.RESULTS.exists():
        lines += ["", *audit_tables.section()]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "benchmarks.md").write_text(vault_page())
    (ROOT / "docs" / "papers" / "patel.md").write_text(patel_tables.page())
    if tailoring_tables.RESULTS.exists():
        (ROOT / "docs" / "papers" / "tailoring.md").write_text(tailoring_tables.page())
    if counterfactual_tables.RESULTS.exists():
        (ROOT / "docs" / "papers" / "counterfactual.md").write_text(counterfactual_tables.page())
    if pane_tables.RESULTS.exists():
        (ROOT / "docs" / "which_way.md").write_text(pane_tables.page())
    if audit_tables.RESULTS.exists():
        errata = ROOT / "docs" / "errata.md"
        errata.write_text(audit_tables.with_gallery(errata.read_text()))
    if audit_tables.PAPER.exists() or audit_tables.RESULTS.exists():
        (ROOT / "docs" / "papers" / "risks.md").write_text(audit_tables.page())
    if locally_linear_tables.RESULTS.exists():
        (ROOT / "docs" / "papers" / "locally_linear.md").write_text(locally_linear_tables.page())
