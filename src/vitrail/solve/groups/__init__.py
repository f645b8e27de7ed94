"""What is released about groups of rows, and the rates that follow from it."""
