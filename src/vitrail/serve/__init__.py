"""The service: many analysts, one budget, and no prompt beside the rows.

``house`` reads what the owner declares, ``kinds`` is the vocabulary of requests (JSON, never code), ``service`` answers them
and ``jobs`` does the work; ``web`` is the API and the pages, ``access`` knows who asks, ``client`` is the other end
(``vt.connect``). docs/serve.md is for people, docs/threat_model.md for those who attack it.
"""
