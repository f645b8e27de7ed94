"""`python -m vitrail`: the command line."""

from .cli import main

main()
