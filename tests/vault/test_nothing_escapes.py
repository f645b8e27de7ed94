"""Whatever a model or a function does on a private row, nobody hears of it, and no other row's bits change."""

import contextlib
import logging
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

import vitrail as vt
from exact_sums import exact_sum
from vitrail.audit import MISDEEDS
from vitrail.errors import InvalidInput, Unanswered
from vitrail.nothing_escapes import attempt
from vitrail.vault.rows.sources import MemoryRows

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
SECRET = "Ada earns 61.0625"
ODD = 0.3  # in no probe row
VALUES = [0.125, 0.25, 0.5, 0.625, 0.75, 0.875, 0.0625]
WITH_ODD = [*VALUES[:3], ODD, *VALUES[3:], ODD]


def misbehaving(misdeed, given):
    """A pure function but for what it does on the odd row, of which nothing may be seen; then it fails there."""
    if (given == ODD).any():
        misdeed(SECRET)
        raise ValueError(SECRET)


def function_on_rows(misdeed):
    def fn(block):
        misbehaving(misdeed, block.column("x"))
        return block.features

    return vt.BoundedSum(fn, 1, 1.0)


def by_model(predict, ask=lambda block, model: block.predictions(model)):
    model = vt.Model(predict, range=(0, 1))
    return vt.BoundedSum(lambda block: ask(block, model), 1, 1.0)


def model(misdeed):
    def predict(x):
        misbehaving(misdeed, x[:, 0])
        return x[:, 0] / 2

    return by_model(predict)


def model_row_by_row(misdeed):
    def predict(x):
        misbehaving(misdeed, x[:, 0])
        return x[:, 0] * (0.5 + 2.0**-30 * np.arange(len(x)))

    return by_model(predict)


def model_on_altered_rows(misdeed):
    def predict(x):
        misbehaving(misdeed, x[:, 0])
        return x[:, 0] / 2

    return by_model(
        predict, lambda block, one: block.outputs(one, np.repeat(block.values[:, None], 5, axis=1)).sum(axis=1) / 5
    )


PLACES = {one.__name__: one for one in (function_on_rows, model, model_row_by_row, model_on_altered_rows)}


def nothing(secret):
    """What happens on ordinary rows."""


CASES = {name: (misdeed, WITH_ODD) for name, misdeed in MISDEEDS.items()}


def exact(walk, question, threads, values):
    """Opens, probes and sums without noise: what must not depend on the odd row by a bit."""
    walked = walk({"x": values}, UNIT, block_rows=4, threads=threads)
    shape = question.probe(walked.facts, walked.predictions)
    return exact_sum(walked, question.row_function(), question.plan(1.0, walked.facts).grid, shape)


@pytest.mark.parametrize(("place", "threads"), [(place, 1) for place in PLACES] + [("model", 3), ("function_on_rows", 3)])
def test_no_misdeed_is_heard_and_no_other_row_changes(walk, place, threads):
    def ask(case):
        misdeed, values = case
        return exact(walk, PLACES[place](misdeed), threads, values)

    assert vt.audit.escapes(ask, (nothing, VALUES), CASES).escapes == ()


def asked(question, values):
    data = vt.PrivateData(
        {"x": values}, UNIT, name="x", n_rows_public=9, budget=vt.Budget(9, 1e-6), block_rows=4, ledger="memory"
    )
    assert np.isfinite(data.ask(question, mu=0.5).value).all()


QUESTIONS = {
    "select": lambda fn: vt.Select(fn, 1, 1.0),
    "gram": lambda fn: vt.GramSum(fn, 1, 1.0),
    "sampled": lambda fn: vt.BoundedSum(fn, 1, 1.0, rate=0.9),
    "grouped here": lambda fn: vt.GroupedSum(lambda block: fn(block).mean(), 1, low=0, high=1, groups=3, isolation="none"),
    "grouped elsewhere": lambda fn: vt.GroupedSum(lambda block: fn(block).mean(), 1, low=0, high=1, groups=3),
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_no_question_lets_anything_out(kind):
    def ask(case):
        misdeed, values = case

        def fn(block):
            misbehaving(misdeed, block.column("x"))
            return block.features

        asked(QUESTIONS[kind](fn), values)

    few = ("raises a panic", "raises KeyboardInterrupt", "prints by the C library", "logs")
    assert vt.audit.escapes(ask, (nothing, VALUES), {name: CASES[name] for name in few}).escapes == ()


def test_a_weight_that_misbehaves_is_not_heard():
    def ask(case):
        misdeed, values = case

        def weight(distances):
            if (np.abs(distances - ODD) < 1e-3).any():
                misdeed(SECRET)
                raise ValueError(SECRET)
            return np.ones_like(distances)

        asked(vt.GramSum(lambda block: block.features, 1, 1.0, weight=weight), values)

    assert vt.audit.escapes(ask, (nothing, VALUES), CASES).escapes == ()


# The door itself


class Panic(BaseException):
    pass


@pytest.mark.parametrize("kind", [Panic, KeyboardInterrupt, ValueError, InvalidInput, MemoryError])
def test_what_our_own_code_raises_after_the_charge_leaves_as_a_sentence_without_past(monkeypatch, kind):
    data = vt.PrivateData({"x": VALUES}, UNIT, name="x", n_rows_public=9, budget=vt.Budget(9, 1e-6))

    def broken(self, rows):
        private_row = SECRET
        try:
            raise ValueError(private_row)
        except ValueError as error:
            raise kind(private_row) from error
        yield

    monkeypatch.setattr(MemoryRows, "chunks", broken)
    with pytest.raises(Unanswered) as caught:
        data.ask(vt.BoundedSum(lambda block: block.features, 1, 1.0), mu=0.5)
    assert data.budget.spent_epsilon > 0
    error = caught.value
    assert (error.__cause__, error.__context__) == (None, None)
    assert SECRET not in "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def test_a_row_that_cannot_be_opened_is_not_told_of(private):
    class Rows(dict):
        def items(self):
            raise Panic(SECRET)

    with pytest.raises(InvalidInput, match="cannot be read") as caught:
        private(Rows(x=VALUES), UNIT)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def state_of_the_process():
    logs = logging.root.manager.disable, logging.Handler.handle
    streams = sys.stdout, sys.stderr, os.fstat(1).st_ino, os.fstat(2).st_ino
    return logs, streams, sys.unraisablehook, threading.excepthook, list(warnings.filters), signal.getsignal(signal.SIGINT)


def test_the_process_speaks_again_afterwards(private, capfd):
    def rude(block):
        logging.disable(logging.NOTSET)
        sys.stdout = sys.__stdout__
        warnings.simplefilter("error")
        sys.unraisablehook = print
        raise Panic

    before = state_of_the_process()
    data = private({"x": [*VALUES, ODD]}, UNIT)
    data.ask(vt.BoundedSum(lambda block: rude(block) if (block.column("x") == ODD).any() else block.features, 1, 1.0), mu=1)
    assert state_of_the_process() == before
    print("heard")
    os.write(2, b"heard too")
    assert capfd.readouterr() == ("heard\n", "heard too")


def test_what_c_holds_back_comes_in_time_or_not_at_all():
    program = """
import ctypes
from vitrail.nothing_escapes import hushed
libc = ctypes.CDLL(None)
libc.printf(b"public and not yet written, ")
hushed(lambda: libc.puts(b"private and not yet written"))
libc.puts(b"public again")
"""
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-c", program], env=buffered, capture_output=True, text=True, check=True)
    assert done.stdout == "public and not yet written, public again\n"


def test_closed_standard_streams_are_no_obstacle():
    program = (
        "import os, sys; os.close(1); os.close(2)\n"
        "import vitrail as vt\n"
        "from vitrail.nothing_escapes import hushed\n"
        "sys.exit(hushed(lambda: 7))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 7


# Interrupts


@pytest.fixture
def interruptible():
    """Python's own handler, also in a run that a shell started in the background, where interrupts are ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_once():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)  # the handler ends it at once


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("deaf", [False, True])
def test_the_users_interrupt_is_obeyed_without_past(private, threads, deaf):
    """Also where the model swallows it; and whatever the model had in hand is in no frame and no context."""
    calls = []

    def predict(x):
        private_row = SECRET
        if (x[:, 0] == ODD).any():
            calls.append(len(x))
            try:
                raise ValueError(private_row)
            except ValueError:
                if threads > 1 or deaf:
                    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                    with contextlib.suppress(KeyboardInterrupt):
                        time.sleep(0.2)
                else:
                    interrupted_once()
        return x[:, 0]

    question = by_model(predict)
    data = private({"x": [ODD, *VALUES * 20]}, UNIT, block_rows=4, threads=threads)
    before = state_of_the_process()
    with pytest.raises(KeyboardInterrupt) as caught:
        data.ask(question, mu=1.0)
    assert state_of_the_process() == before
    assert len(calls) == 1, "no block is tried again after that"
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert SECRET not in "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert data.budget.spent.pico_mu_squared > 0


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_during_a_group_reaches_the_caller(private):
    """At once, though the group goes on for half a minute in its own process."""
    caller = os.getpid()

    def slow(block):
        if (block.column("x") == ODD).any():
            os.kill(caller, signal.SIGINT)
            time.sleep(30)
        return 0.5

    data = private({"x": [ODD]}, UNIT)
    with pytest.raises(KeyboardInterrupt) as caught:
        data.ask(vt.GroupedSum(slow, 1, low=0, high=1, groups=1), mu=1.0)
    assert caught.value.__context__ is None


def test_a_handler_of_the_callers_own_is_asked_and_there_is_no_answer(private):
    noted = []
    before = signal.signal(signal.SIGINT, lambda *_: noted.append(1))
    try:
        data = private({"x": [ODD]}, UNIT)
        question = by_model(lambda x: ((x[:, 0] == ODD).any() and interrupted_once()) or x[:, 0])
        with pytest.raises(KeyboardInterrupt):
            data.ask(question, mu=1.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert noted == [1]


def test_in_another_thread_an_interrupt_is_a_failing_row(walk):
    sums = []
    question = function_on_rows(MISDEEDS["raises KeyboardInterrupt"])
    thread = threading.Thread(
        target=lambda: sums.extend(exact(walk, question, 1, values).tolist() for values in (VALUES, WITH_ODD))
    )
    thread.start()
    thread.join(30)
    assert len(sums) == 2
    assert sums[0] == sums[1]


def test_attempts_forget_what_they_caught():
    assert attempt(lambda: exec("raise BaseException"), "otherwise") == "otherwise"
    assert sys.exception() is None if hasattr(sys, "exception") else sys.exc_info() == (None, None, None)


# Groups


def test_a_group_that_kills_its_server_fails_alone(walk):
    """One group's row must not turn every later group's answer into the default."""

    def fatal(block):
        if (block.column("x") == ODD).any():
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(5)
        return 0.75

    question = vt.GroupedSum(fatal, 1, low=0, high=1, groups=6)
    plan = None
    sums = []
    for values in ([0.5] * 400, [ODD, *[0.5] * 399]):  # so many that no group is empty, but for a chance of 1e-30
        walked = walk({"x": values}, UNIT)
        plan = question.plan(1.0, walked.facts)
        sums.append(int(plan.exact_cells(walked, 8, 1)[0, 0]))
    said, default = (round((value - 0.5) / plan.step) for value in (0.75, 0.5))
    assert sums == [6 * said, 5 * said + default]


# The bar


def test_the_bar_is_shown_and_what_a_model_prints_is_not():
    program = """
import time, vitrail as vt
import vitrail.progress
vitrail.progress.PATIENCE_SECONDS = 0.0
def model(x):
    if (x[:, 0] == 0.3).any():
        print("SECRET"); import sys, os; print("SECRET", file=sys.stderr); os.write(2, b"SECRET")
        time.sleep(0.2)
    return x[:, 0]
data = vt.PrivateData({"x": [0.3] * 200}, vt.Schema({"x": vt.Numeric(0, 1)}), name="x", n_rows_public=200,
    budget=vt.Budget(1, 1e-6), block_rows=64)
one = vt.Model(model, range=(0, 1))
data.ask(vt.BoundedSum(lambda block: block.predictions(one), 1, 1.0), epsilon=0.5)
print("done")
"""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], 60)[0]:
        try:
            piece = os.read(leader, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        shown += piece
    assert child.wait(10) == 0
    os.close(leader)
    assert b"summing" in shown
    assert b"100%" in shown
    assert b"done" in shown
    assert b"SECRET" not in shown
