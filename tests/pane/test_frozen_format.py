"""The format of panes is frozen (docs/versions.md): a pane that was written once, with every part, is read for ever.

``python tests/pane/test_frozen_format.py`` wrote tests/pane/frozen.pane and what it said. It is not to be written again:
where this test fails, what reads panes has to be mended.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from vitrail.pane.manifest import FORMAT, KINDS

HERE = Path(__file__).parent
PANE, SAID = HERE / "frozen.pane", HERE / "frozen.json"
PERSON = {"age": 30, "gain": 0.0, "sex": "f"}
PARTS = ("rows", "reasons", "local", "pdp", "ale", "importance", "counterfactual")


def said_by(pane: vt.Pane) -> dict[str, object]:
    """Numbers of every part."""
    reasons = pane.local(PERSON, bands=True)
    linear = pane.local(PERSON, method="moments", bands=False)
    answers = pane.counterfactual(PERSON, desired_class=1)
    return {
        "parts": sorted(pane.parts),
        "epsilon": pane.guarantee.epsilon,
        "questions": [line.question for line in pane.bill],
        "values": reasons.values.tolist(),
        "lower": reasons.lower.tolist(),
        "base": reasons.base_values.tolist(),
        "linear": linear.values.tolist(),
        "answers": [dict(answer.row) for answer in answers.answers[0]],
        "pdp": {name: curve.y.tolist() for name, curve in pane.pdp.items()},
        "ale": {name: curve.y.tolist() for name, curve in pane.ale.items()},
        "importance": pane.importance.scores.tolist(),
        "counts": {name: counts.tolist() for name, counts in pane.marginals.counts.items()},
        "rows": {name: values.tolist() for name, values in pane.private_rows.sample(3, seed=0).items()},
        "version": pane.version,
    }


def test_a_pane_of_the_frozen_format_says_what_it_said():
    pytest.importorskip("onnxruntime")
    assert FORMAT == "vitrail-pane/3"
    pane, wanted = vt.Pane.load(PANE, model="embedded"), json.loads(SAID.read_text())
    assert set(pane.parts) == set(PARTS)
    assert pane.unknown_parts == ()
    assert_close(said_by(pane), wanted)


def assert_close(found: object, wanted: object, where: str = "") -> None:
    if isinstance(wanted, dict):
        assert set(found) == set(wanted), where  # type: ignore[call-overload]
        for name in wanted:
            assert_close(found[name], wanted[name], f"{where}/{name}")  # type: ignore[index]
    elif (
        isinstance(wanted, list) and wanted and isinstance(wanted[0], float | list | int) and not isinstance(wanted[0], bool)
    ):
        np.testing.assert_allclose(np.array(found, float), np.array(wanted, float), rtol=1e-6, atol=1e-9, err_msg=where)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), where  # type: ignore[arg-type]
        for number, one in enumerate(wanted):
            assert_close(found[number], one, f"{where}/{number}")  # type: ignore[index]
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-6), where
    else:
        assert found == wanted, where


def test_the_page_on_versions_names_the_formats_that_are_written():
    page = (HERE.parents[1] / "docs" / "versions.md").read_text()
    named = set(re.findall(r"`([a-z-]+/\d+)`", page))
    assert named == {FORMAT, *(kind.holds.FORMAT.removeprefix("vitrail-") for kind in KINDS.values())}


def write() -> None:
    """Release the pane; done once."""
    from pane_setup import fitted, opened
    from skl2onnx import to_onnx

    tree, features = fitted()
    onnx = to_onnx(tree, features[:1].astype(np.float32), options={"zipmap": False}).SerializeToString()
    model = vt.Model(onnx, output=1, name="riches")
    pane = vt.release(opened(), model, epsilon=4.0, parts=PARTS, embed_model=True, version="frozen")
    pane.save(PANE)
    SAID.write_text(json.dumps(said_by(vt.Pane.load(PANE, model="embedded")), indent=1) + "\n")


if __name__ == "__main__":
    write()
