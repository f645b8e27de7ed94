"""What a first real use imports, and what works where only the core is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.vault import MapTraining

ROOT = Path(__file__).resolve().parents[1]

FIRST_USE = """
import sys
import numpy as np
import vitrail as vt

schema = vt.Schema.load("examples/data/adult.schema.json")
rows, budget = "examples/data/adult.parquet", vt.Budget(epsilon=1.0, delta=1e-6)
data = vt.PrivateData(rows, schema, name="adult", target="income", n_rows_public=30_000, budget=budget, ledger="memory")
data.ask(vt.BoundedSum(lambda block: block.features, size=104, l2_bound=np.sqrt(13), key="means"), epsilon=0.1)
model = vt.Model(lambda x: 0.1 + 0.5 * x[:, 0], range=(0, 1), name="score")
print(data.quote(vt.GlobalReport(data, model, columns=["age"], parts=["pdp"], key="score"), epsilon=0.4))
"""

SLOW = ("matplotlib", "pandas", "scipy.optimize", "scipy.stats", "sklearn", "torch")


def run(program: str, folder: Path = ROOT) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_first_question_and_a_quote_import_nothing_slow():
    """All of them are installed here, and one import of one of them takes longer than everything else together."""
    told = run(f"{FIRST_USE}\nprint([name for name in {SLOW} if name in sys.modules])")
    assert told.splitlines()[-1] == "[]"
    assert "It fits" in told


def test_help_and_a_bill_import_nothing_slow():
    for arguments in (["--help"], ["budget", "no-such-ledger.db"]):
        told = run(
            f"import sys; from vitrail.cli import main; sys.argv = {['vitrail', *arguments]}\n"
            "try:\n    main()\nexcept SystemExit:\n    pass\n"
            f"print([name for name in {SLOW} if name in sys.modules])"
        )
        assert told.splitlines()[-1] == "[]", arguments


def test_what_needs_an_extra_names_it_before_anything_is_charged(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    schema = vt.Schema({"x": vt.Numeric(0, 1), "y": vt.Categorical(["a", "b"])})
    budget = vt.Budget(epsilon=3.0, delta=1e-5, training=(2.0, 5e-6))
    rows = {"x": [0.5] * 9, "y": ["a"] * 9}
    data = vt.PrivateData(rows, schema, name="few", target="y", n_rows_public=9, budget=budget, ledger="memory")
    run_of_sums = MapTraining(
        n_classes=2, n_maps=1, noise_multiplier=9.0, sampling_rate=0.5, steps=3, epsilon=2.0, delta=5e-6, expected_rows=4
    )
    with pytest.raises(InvalidInput, match=r"install vitrail\[maps\]. Nothing was charged"):
        data.train(run_of_sums)
    assert data.budget.spent == vt.Cost()
    told = run(
        "import sys; sys.modules['sklearn'] = None; import vitrail as vt\n"
        "try:\n    vt.LocallyLinearClassifier\nexcept ImportError as error:\n    print(error)"
    )
    assert "install vitrail[maps]" in told
