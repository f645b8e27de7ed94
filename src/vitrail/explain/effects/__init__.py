"""Effects of columns on a model's output: partial dependence and accumulated local effects, from shared noisy sums."""
