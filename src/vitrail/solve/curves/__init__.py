"""Curves and rankings from released sums: axes, reference rows, interpolation, steps, smoothing."""
