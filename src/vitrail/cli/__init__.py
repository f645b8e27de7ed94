"""The `vitrail` command."""
