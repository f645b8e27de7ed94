"""The history of the tables, for Alembic: ``env.py`` runs the files of ``versions`` in the transaction of ``migrate``."""
