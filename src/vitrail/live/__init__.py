"""Live pages: a pane and a model explained in the reader's own browser. Imports neither vault nor ledger."""
