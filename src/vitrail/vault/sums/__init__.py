"""Exact sums: the grid, integer totals, and the kernels of Gram sums."""
