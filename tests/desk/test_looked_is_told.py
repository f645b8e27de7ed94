"""What the owner read off the rows is told wherever the release is: no promise covers it."""

import numpy as np

import vitrail as vt

DECLARED = """
format = 1
[dataset]
source = "people.csv"
target = "smoker"
rows = 600
[budget]
epsilon = 3.0
ledger = "ledger.db"
[columns.age]
kind = "integer"
low = 18
high = 90
[columns.pay]
kind = "number"
low = 0
high = 100
[columns.smoker]
levels = ["no", "yes"]
"""
LOOKED = """
[looked]
age = ["low", "high"]
"""


def released(folder, text):
    generator = np.random.default_rng(0)
    lines = [
        f"{generator.integers(18, 90)},{generator.uniform(0, 100):.2f},{generator.choice(['no', 'yes'])}" for _ in range(600)
    ]
    (folder / "people.csv").write_text("\n".join(["age,pay,smoker", *lines]) + "\n")
    (folder / "people.toml").write_text(text)
    pane = vt.release(vt.open(folder / "people.toml"), epsilon=2.0, parts=["rows"])
    pane.save(folder / "people.pane")
    return vt.Pane.load(folder / "people.pane")


def test_labels_and_pages_of_a_pane_say_what_was_read_off_the_rows(tmp_path):
    pane = released(tmp_path, DECLARED + LOOKED)
    assert pane.manifest.schema["age"].from_rows == ("low", "high")
    label = vt.privacy_label(pane)
    assert "no promise covers these facts: age (low, high)." in label.to_markdown()
    (age, *others) = label.to_json_ld()["variableMeasured"]
    assert age["dp:readOffRows"] == ["low", "high"]
    assert not any("dp:readOffRows" in column for column in others)
    assert "age (low, high): exact, by the owner" in pane.to_html()
    assert pane.manifest.schema.digest() == vt.open(tmp_path / "people.toml").schema.digest()


def test_nothing_is_said_where_nothing_was(tmp_path):
    pane = released(tmp_path, DECLARED)
    assert "Read off the rows" not in vt.privacy_label(pane).to_markdown()
    assert "Read off the rows" not in pane.to_html()
