"""Local linear models from released statistics, moments and rows."""
