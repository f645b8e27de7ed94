"""The fuzzer of panes: what it does to a file is real damage, and every outcome is our error or a pane that works."""

from collections import Counter

import numpy as np
import pytest

from benchmark_scripts import script
from vitrail.errors import InvalidInput
from vitrail.pane import Pane

pane_fuzz = script("pane_fuzz")


@pytest.fixture(scope="module")
def small():
    return pane_fuzz.small_pane()


@pytest.mark.parametrize("name", [name for name in pane_fuzz.DAMAGES if name not in ("bombs", "many files")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_damage_gives_our_error_or_a_pane_that_works(small, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw, seen = np.random.default_rng(0), Counter()
    for _ in range(8):
        content = pane_fuzz.DAMAGES[name][0](small, draw)
        seen["same"] += content == small
        try:
            pane = Pane.from_bytes(content)
        except InvalidInput:
            seen["refused"] += 1
            continue
        pane_fuzz.used(pane)
    assert seen["same"] <= 2  # two files exchanged may be one and the same
    assert name in ("forged values", "strange numbers", "files exchanged", "a part missing") or seen["refused"] >= 4
    assert list(tmp_path.iterdir()) == []  # nothing in a pane was run


def test_a_failure_is_seen(small, monkeypatch):
    monkeypatch.setattr(pane_fuzz, "used", lambda pane: 1 / 0)
    assert pane_fuzz.outcome(small).startswith("ZeroDivisionError")
    assert pane_fuzz.outcome(small[:-1]) == "refused"
