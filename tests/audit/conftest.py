import pytest

import vitrail as vt


@pytest.fixture
def known_to_be_row_wise(monkeypatch):
    """Whether a row's result depends on its place in a block is tried on public rows, for every release again. Here it is
    known: the model and the questions work row by row. One call remains, in which the vault gets to know the models. Nor is
    a conversation rehearsed on nobody's rows, whose result is thrown away."""
    monkeypatch.setattr(
        "vitrail.vault.rows.row_function.is_row_wise",
        lambda function, schema, rows: function(schema.probe_rows(rows)) is not None,
    )
    monkeypatch.setattr(vt.Model, "is_row_wise", lambda *args: True)
    monkeypatch.setattr("vitrail.explain.recipe.Conversation.rehearse", lambda *args: None)
