"""From releases to numbers. Pure: nothing here imports the vault or the ledger."""
