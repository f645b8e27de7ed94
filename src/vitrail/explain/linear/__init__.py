"""Local linear explanations from private rows: weights, noisy statistics, the synopsis, gradient descent."""
