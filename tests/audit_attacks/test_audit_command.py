"""`vitrail audit` as a person or a pipe uses it."""

import json
import sys

import numpy as np
import pytest

from vitrail.cli import main

CODE = """
import numpy as np
generator = np.random.default_rng(0)

def count(rows, draws):
    return len(rows) + np.round(generator.normal(0, 1, draws) * 1024) / 1024

def halved(rows, draws):
    return len(rows) + np.round(generator.normal(0, 0.5, draws) * 1024) / 1024

PAIR = (["Ada"], [])
PAIRS = [(["Ada"], ["Bob"]), (["Ada"], [])]

def explain(points):
    return points * 2

def predict(points):
    return np.full(len(points), 0.5)
"""
TORCH = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
"""


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audited_code.py").write_text(CODE)
    (tmp_path / "audited_torch.py").write_text(TORCH)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("audited_code", "audited_torch"):
        sys.modules.pop(name, None)
    generator = np.random.default_rng(1)
    for name, scale in (("in", 0.5), ("out", 1.0)):
        table = np.column_stack([scale * generator.normal(size=(80, 3)), np.arange(80) % 2, generator.uniform(size=80)])
        lines = ["a,b,c,label,p"] + [",".join(map(str, row)) for row in table]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines).replace(".0,", ",") + "\n")
        np.save(tmp_path / f"{name}.npy", table[:, :3])

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["vitrail", "audit", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_explanations_in_files_are_attacked(run, tmp_path):
    code, out, err = run(
        "membership", "in.csv", "out.csv", "--label", "label", "--probability", "p", "-o", "audit.html", "-o", "audit.json"
    )
    assert code == 0, err
    assert "explanation variance" in out
    assert "shadow models" in err
    assert "<h1>" in (tmp_path / "audit.html").read_text()
    assert json.loads((tmp_path / "audit.json").read_text())["leaks"] is True


def test_json_goes_to_a_pipe(run):
    code, out, _ = run("membership", "in.npy", "out.npy", "--json")
    assert code == 0
    assert json.loads(out)["how"]["members"] == 80


def test_code_explains_points(run):
    code, out, err = run(
        "membership", "in.npy", "out.npy", "--explain", "audited_code:explain", "--predict", "audited_code:predict"
    )
    assert code == 0, err
    assert "prediction variance" in out


def test_a_torch_module_explains_points(run):
    code, out, err = run("membership", "in.npy", "out.npy", "--explain", "gradient", "--module", "audited_torch:net")
    assert code == 0, err
    assert "prediction variance" in out


def test_a_sound_mechanism_ends_well_and_a_false_claim_with_one(run, tmp_path):
    words = ("--neighbours", "audited_code:PAIR", "--mu", "1", "--draws", "20000")
    code, out, _ = run("mechanism", "audited_code:count", *words, "-o", "a.html")
    assert code == 0
    assert out.startswith("Claim not refuted, tightness 0.")
    assert (tmp_path / "a.html").exists()
    code, out, _ = run("mechanism", "audited_code:halved", *words, "--json")
    assert code == 1
    assert json.loads(out)["refuted"] is True


def test_pairs_are_searched(run):
    code, out, _ = run(
        "mechanism", "audited_code:halved", "--neighbours", "audited_code:PAIRS", "--epsilon", "0.5", "--delta", "1e-6",
        "--draws", "20000",
    )  # fmt: skip
    assert code == 1
    assert "Candidate 1 of 2" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("membership", "in.csv", "nowhere.csv"), "there is no table"),
        (("membership", "in.csv", "out.csv", "--label", "lable"), "--label is 'lable'"),
        (("membership", "in.csv", "out.csv", "-o", "a.pdf"), "must end in .png, .html or .json"),
        (("membership", "in.csv", "audited_code.py"), "is no table"),
        (("membership", "in.npy", "out.npy", "--explain", "gradient"), "needs --module"),
        (("membership", "in.npy", "out.npy", "--explain", "magic"), "--explain is 'magic'"),
        (("membership", "in.npy", "out.npy", "--explain", "audited_code:nothing"), "cannot be imported"),
        (("mechanism", "audited_code:count", "--neighbours", "audited_code:PAIR"), "say what is claimed"),
        (("mechanism", "count", "--neighbours", "audited_code:PAIR", "--mu", "1"), "write module:name"),
    ],
)
def test_mistakes_are_told_in_a_sentence(run, words, message):
    code, _, err = run(*words)
    assert code == 2
    assert message in err
