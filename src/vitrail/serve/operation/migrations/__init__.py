"""The history of the tables, for Alembic: ``migrate`` takes the steps in ``versions``, in a transaction of the ledger's."""
