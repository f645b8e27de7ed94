"""Noisy counts and tables to a joint distribution of columns, and rows from it. Pure post-processing."""
