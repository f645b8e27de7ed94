"""The tables on the vault, from benchmarks/results/vault.json."""

from __future__ import annotations

from page_tables import Lines, Tables, held_to, how, rows_of, table

HEADLINE = {
    "bounded_sum_vs_numpy": ("bounded sum, 1 000 000 x 100, over plain NumPy clip-and-sum", "at most 1.5", "{:.2f} x"),
    "gram_sum_vs_numpy": ("Gram sum, 1 000 000 x 40, over `(X*w[:,None]).T @ X`", "at most 3", "{:.2f} x"),
    "batched_gram_vs_numpy": ("1 000 Gram sums at once, n = 40, over `A.T @ V`", "at most 3 (aim 2)", "{:.2f} x"),
    "noise_ns_per_draw": ("rounded Gaussian noise, per draw", "at most 200 ns", "{:.0f} ns"),
    "parquet_peak_mib": ("peak memory, Parquet of 10 000 000 x 50 streamed", "under 1024 MiB", "{:.0f} MiB"),
    "charges_per_second": ("durable charges a second, SQLite", "at least 200", "{:.0f}"),
    "audit_mu_ratio_min": ("audit: smallest measured mu over the claim, over all sums", "at least 0.9", "{:.3f}"),
    "audit_mu_ratio_max": ("audit: largest measured mu over the claim, over all sums", "at most 1", "{:.3f}"),
}


def audits() -> Lines:
    (row,) = rows_of("vault", "audits")
    lines = [(one["question"], f"{one['mu_ratio']:.3f}", one["draws"], one["verdict"]) for one in row["found"]]
    return table(("audited question", "measured mu / claim", "draws", "verdict"), lines)


TABLES: Tables = {
    "vault.headline": lambda: held_to("vault", HEADLINE),
    "vault.audits": audits,
    "vault.how": lambda: how("vault"),
}
