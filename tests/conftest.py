import functools
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # for benchmark_scripts and error_rates, which are no package

import error_rates
import postgresql_server
import spark_session
from browser import needs

# How fast a machine is decides no test: neither a deadline nor how long it takes to think of an input.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture
def planted_noise():
    """The same noise in every run, for what has no error rate; see ``error_rates``."""
    with error_rates.planted_noise():
        yield


def pytest_terminal_summary(terminalreporter):
    """Say loudly which tests this machine could not run: a green run without them says less."""
    why = postgresql_server.missing()
    missing = [*([] if why is None else [f"The ledger in PostgreSQL: {why}."]), *needs.missing()]
    if (why := spark_session.missing()) is not None:
        missing.append(f"Rows on Spark: {why}.")
    if missing:
        terminalreporter.section("NOT TESTED HERE", sep="!", red=True, bold=True)
        for line in missing:
            terminalreporter.line(line, red=True)


@pytest.fixture
def curves_in_a_hurry(monkeypatch):
    """What is made of releases of curves is not looked at: as little of it as in a rehearsal."""
    monkeypatch.setattr("vitrail.solve.curves.reference.Reference.rehearsed", True)


@pytest.fixture
def questions_known_to_be_row_wise(monkeypatch):
    """Whether a row's result depends on its place in a block is tried on public rows, for every release again. Here it is
    known: the questions work row by row. One call remains, in which the vault gets to know the models."""
    probe_rows = functools.cache(lambda schema: schema.probe_rows(3))
    monkeypatch.setattr(
        "vitrail.vault.rows.row_function.is_row_wise",
        lambda function, schema, rows: function(probe_rows(schema)) is not None,
    )
