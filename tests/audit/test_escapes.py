"""The listener hears every misdeed, and nothing where nothing differs."""

import ctypes
import logging
import os
import sys
import threading
import warnings

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput

SECRET = "Ada earns 61.0625"


@pytest.mark.parametrize("name", vt.audit.MISDEEDS)
def test_every_misdeed_is_heard_where_nobody_holds_it_back(name):
    def ask(rows):
        for row in rows:
            if row == "odd":
                vt.audit.MISDEEDS[name](SECRET)

    audit = vt.audit.escapes(ask, ["usual"], {name: ["usual", "odd"]})
    assert audit.refuted
    assert {one.case for one in audit.escapes} == {name}
    if name != "recurses for ever":  # Python's own message says nothing of it
        assert SECRET in audit.summary()


def test_what_differs_in_the_result_is_heard_bit_by_bit():
    def ask(rows):
        return np.array(rows)

    assert vt.audit.escapes(ask, [0.0], {"zero": [-0.0]}).escapes[0].channel == "result"
    assert not vt.audit.escapes(ask, [np.nan], {"same": [np.nan]}).refuted


def test_what_is_heard_of_ordinary_rows_too_is_no_escape():
    def ask(rows):
        warnings.warn("about the question", stacklevel=1)
        logging.getLogger("x").info("asked")
        print(f"an object at {object()}")
        os.write(2, b"public")
        raise ValueError("always")

    audit = vt.audit.escapes(ask, [1], {"other": [2]})
    assert not audit.refuted
    assert audit.summary() == "Nothing escaped in 1 cases."
    silent = vt.audit.escapes(lambda rows: print("usual") if rows else None, [1], {"less": []})
    assert silent.escapes[0].heard == "silence, where ordinary rows are not silent"


def test_contexts_and_causes_are_heard():
    def ask(rows):
        try:
            float(rows[0])
        except ValueError:
            raise KeyError("fixed words") from None

    audit = vt.audit.escapes(ask, ["a"], {"b": ["b"]})
    assert [one.channel for one in audit.escapes] == ["exception"]
    assert "'b'" in audit.escapes[0].heard


def test_the_process_is_as_before_afterwards(capfd):
    def everything():
        handlers = list(logging.root.handlers), logging.root.level, logging.root.manager.disable
        return sys.stdout, sys.stderr, sys.unraisablehook, threading.excepthook, list(warnings.filters), handlers

    before = everything()
    vt.audit.escapes(lambda rows: vt.audit.MISDEEDS[rows]("x"), "prints", {name: name for name in vt.audit.MISDEEDS})
    assert everything() == before
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_listened_to_is_refused():
    with pytest.raises(InvalidInput, match="ask is int"):
        vt.audit.escapes(3, [], {"a": []})
    with pytest.raises(InvalidInput, match="odd is empty"):
        vt.audit.escapes(len, [], {})
