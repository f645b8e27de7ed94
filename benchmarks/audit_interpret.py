"""A third-party library under audit: interpret's private boosting regressor on a target far from 0 (interpret#523).

The issue, publicly reported in 2024: noise on sums of targets is scaled by the target's declared range max - min, while a
row that moves from one bin to another moves two sums by |y| each, up to max(|min|, |max|). With a target declared in [9
000, 10 000] that is up to 14 times more than the noise was made for. Here: one feature, 2 000 people, one boosting round;
one person moves from the upper to the lower half. The attacker looks at the fitted model's scores times its (private) bin
weights, which are those sums.
"""

from __future__ import annotations

import warnings

import numpy as np

import vitrail as vt

PEOPLE, LOW, HIGH = 2000, 9000.0, 10_000.0
EPSILON, DELTA = 1.0, 1e-5


def interpret_rows(draws: int) -> list[dict[str, object]]:
    """The library's own class, fitted anew for every draw; ``pip install interpret-core``."""
    from interpret import __version__
    from interpret.privacy import DPExplainableBoostingRegressor

    warnings.filterwarnings("ignore")

    def run(points: np.ndarray) -> np.ndarray:
        model = DPExplainableBoostingRegressor(
            feature_names=["a"], epsilon=EPSILON, delta=DELTA, max_rounds=1, max_bins=4, learning_rate=1.0, n_jobs=1,
            privacy_bounds={"a": (0.0, 1.0)}, privacy_target_min=LOW, privacy_target_max=HIGH,
        )  # fmt: skip
        model.fit(points, np.full(len(points), HIGH))
        sums = (model.term_scores_[0] + float(np.ravel(model.intercept_)[0])) * model.bin_weights_[0]
        return np.round(sums[[1, -2]])

    before = np.repeat([0.0, 1.0], PEOPLE // 2)[:, None]
    after = before.copy()
    after[PEOPLE // 2] = 0.0
    claimed = vt.Guarantee(EPSILON, DELTA, 0.0, "replace-one")
    audit = vt.audit.mechanism(run, (before, after), claimed, draws=draws)
    print(f"interpret {__version__}: {audit.summary()}", flush=True)
    told = audit.to_json()
    keys = ("verdict", "tightness", "epsilon_lower", "mu_lower", "claimed_epsilon", "delta", "draws", "confidence")
    return [{"library": f"interpret {__version__}", "target": [LOW, HIGH], **{key: told[key] for key in keys}}]
