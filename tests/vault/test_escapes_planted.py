"""Each repair taken back again, one at a time: the listener hears it. So its silence elsewhere means something."""

import contextlib
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import vitrail as vt
from exact_sums import exact_sum
from vitrail import nothing_escapes
from vitrail.audit import MISDEEDS
from vitrail.schema import frames as arrow_columns
from vitrail.schema import frames as sources
from vitrail.schema.frames import Coded
from vitrail.vault.questions import group_worker
from vitrail.vault.rows import predictions, row_function

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
CITY = vt.Schema({"city": vt.Categorical(["Aix", "Bonn"])})
SECRET = "Ada earns 61.0625"
ODD = 0.3
VALUES, WITH_ODD = [0.125, 0.25, 0.5, 0.625, 0.75], [0.125, 0.25, ODD, 0.5, 0.625, 0.75]


def ask_model(case):
    """A charged question about a model that misbehaves on the odd row."""
    misdeed, values = case

    def predict(x):
        if (x[:, 0] == ODD).any():
            misdeed(SECRET)
        return x[:, 0]

    model = vt.Model(predict, range=(0, 1))
    data = vt.PrivateData(
        {"x": values}, UNIT, name="x", n_rows_public=9, budget=vt.Budget(9, 1e-6), block_rows=4, ledger="memory"
    )
    data.ask(vt.BoundedSum(lambda block: block.predictions(model), 1, 1.0), mu=0.5)


def ask_city(cities):
    """A charged question about texts as Arrow holds them."""
    column = pa.array(cities, pa.binary()).view(pa.string())
    data = vt.PrivateData(
        pa.table({"city": column}), CITY, name="x", n_rows_public=9, budget=vt.Budget(9, 1e-6), ledger="memory"
    )
    data.ask(vt.BoundedSum(lambda block: block.features, 2, 1.0), mu=0.5)


def heard_of_models(*names):
    cases = {name: (MISDEEDS[name], WITH_ODD) for name in names or MISDEEDS}
    return vt.audit.escapes(ask_model, (lambda secret: None, VALUES), cases).escapes


def heard_of_cities():
    return vt.audit.escapes(
        ask_city, [b"Aix", b"Bonn", b"Cork"], {"latin": [b"Aix", b"Bonn", SECRET.encode() + b"\xe9"]}
    ).escapes


def test_as_it_is_nothing_is_heard():
    assert heard_of_models() == ()
    assert heard_of_cities() == ()


def as_before(work, otherwise):
    """The face as it was: whatever the pass raises is raised to the caller."""
    return work()


@pytest.mark.parametrize(
    "name", ["raises a panic", "raises CancelledError", "raises KeyboardInterrupt", "raises GeneratorExit"]
)
@pytest.mark.parametrize("door", [True, False], ids=["door", "no door"])
def test_exceptions_that_are_no_exception_caught_by_half_are_heard(monkeypatch, name, door):
    """Rows and functions caught ``Exception`` and ``SystemExit``; the door alone keeps the words back, not the fact."""
    monkeypatch.setattr(nothing_escapes, "FAILURES", (Exception, SystemExit))
    if not door:
        monkeypatch.setattr("vitrail.nothing_escapes.sealed", as_before)
    (escape,) = heard_of_models(name)
    assert escape.channel == "exception"
    assert (SECRET in escape.heard) == (not door)


def decoding(array):
    """Texts as they were read: through Python's texts."""
    whole = array.dictionary_encode().combine_chunks()
    codes = whole.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(codes.astype(np.intp), whole.dictionary.to_pylist())


@pytest.mark.parametrize("door", [True, False], ids=["door", "no door"])
def test_texts_decoded_all_at_once_are_heard(monkeypatch, door):
    monkeypatch.setattr(arrow_columns, "_texts", decoding)
    monkeypatch.setattr(sources, "attempt", lambda work, otherwise: work())
    if not door:
        monkeypatch.setattr("vitrail.nothing_escapes.sealed", as_before)
    (escape,) = heard_of_cities()
    assert escape.channel == "exception"
    assert ("codec" in escape.heard) == (not door)


class Deaf:
    """Silences warnings only, as it was."""

    def __enter__(self):
        self.inner = contextlib.ExitStack()
        self.inner.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")

    def __exit__(self, *_):
        self.inner.close()


SPEAKING = sorted(name for name in MISDEEDS if name.split()[0] in ("logs", "prints", "writes", "fails"))


@pytest.mark.parametrize("name", [*SPEAKING, "warns against filters"])
def test_a_process_that_was_not_silenced_is_heard(monkeypatch, name):
    monkeypatch.setattr(nothing_escapes, "QUIET", Deaf())
    found = heard_of_models(name)
    assert found
    assert SECRET in found[0].heard


@pytest.mark.parametrize("planted", [False, True])
def test_buffers_of_c_that_are_not_pushed_out_are_heard(planted):
    """In a process of its own, whose C library buffers what it prints."""
    program = f"""
import importlib.util, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from vitrail import nothing_escapes as quiet
if {planted}:
    quiet._flush_c = lambda _: None
found = importlib.util.spec_from_file_location("planted", {__file__!r})
module = importlib.util.module_from_spec(found)
found.loader.exec_module(module)
print([escape.heard for escape in module.heard_of_models("prints by the C library")])
"""
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-c", program], env=buffered, capture_output=True, text=True, check=True)
    assert (SECRET in done.stdout) == planted


def test_an_interrupt_believed_without_a_signal_is_heard(monkeypatch):
    """The old rule: a KeyboardInterrupt is the user's own."""

    def believing(work, otherwise):
        try:
            return work()
        except KeyboardInterrupt:
            nothing_escapes.INTERRUPTS.seen = True
            raise
        except BaseException:
            return otherwise

    monkeypatch.setattr(predictions, "attempt", believing)
    monkeypatch.setattr(row_function, "attempt", believing)
    before = signal.getsignal(signal.SIGINT)
    (escape,) = heard_of_models("raises KeyboardInterrupt")
    assert escape.heard.startswith("KeyboardInterrupt")
    assert signal.getsignal(signal.SIGINT) is before


def exact(values, walk, question):
    walked = walk({"x": values}, UNIT, block_rows=4)
    return exact_sum(walked, question.row_function(), question.plan(1.0, walked.facts).grid, 4)


def test_a_failing_block_given_up_whole_is_heard_in_the_result(monkeypatch, walk):
    """Were the block not halved, its other rows would be lost with the failing one."""

    def fn(block):
        if (block.column("x") == ODD).any():
            raise ValueError(SECRET)
        return block.features

    question = vt.BoundedSum(fn, 1, 1.0)

    def heard():
        return vt.audit.escapes(lambda values: exact(values, walk, question), VALUES, {"odd": WITH_ODD}).escapes

    def given_up(rows, call, row_shapes):
        whole = call(slice(0, rows))
        return tuple(np.full((rows, *shape), np.nan) for shape in row_shapes) if whole is None else whole

    assert heard() == ()
    monkeypatch.setattr("vitrail.vault.rows.row_function.salvaged", given_up)
    assert [escape.channel for escape in heard()] == ["result"]


def test_a_server_that_is_not_started_again_is_heard_in_the_result(monkeypatch, walk):
    def fatal(block):
        if (block.column("x") == ODD).any():
            os.kill(os.getppid(), signal.SIGKILL)
        return 0.75

    question = vt.GroupedSum(fatal, 1, low=0, high=1, groups=5)
    group_run = group_worker.GroupServer.__call__

    def never_again(self, raw):
        return None if self._lost else group_run(self, raw)

    monkeypatch.setattr(group_worker.GroupServer, "__call__", never_again)
    assigned = "vitrail.vault.questions.grouped_sum._assigned"
    monkeypatch.setattr(assigned, lambda raw, groups, starts: iter(np.array_split(raw, groups)))

    def cells(values):
        walked = walk({"x": values}, UNIT)
        plan = question.plan(1.0, walked.facts)
        return (plan.exact_cells(walked, 8, 1)[0, 0], round(0.25 / plan.step))

    fine, one = cells([0.5] * 10)
    assert fine == 5 * one
    killed, _ = cells([ODD, *[0.5] * 9])
    assert killed == 0, "every later group says its default: one row moved the sum by four groups too many"
