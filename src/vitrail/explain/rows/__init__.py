"""Private rows: a model of how the columns hang together, from noisy tables, and rows sampled from it without limit."""
