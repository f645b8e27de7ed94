"""Where private rows live, and how functions are run on them."""
