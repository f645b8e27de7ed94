"""Running a service: the history of its tables, health, metrics, logs and backups.

Nothing here reads a row. What is counted, logged or told about health follows from public facts, for people who run the
service and hear no answers.
"""
