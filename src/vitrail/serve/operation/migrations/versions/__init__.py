"""One file for each step. Steps are written out: they import no table of today, and are never changed."""
