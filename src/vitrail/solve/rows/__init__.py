"""A joint distribution from released tables, and rows sampled from it."""
