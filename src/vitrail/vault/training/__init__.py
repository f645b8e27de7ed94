"""Private training of locally linear maps: a fixed block of noisy clipped sums."""
