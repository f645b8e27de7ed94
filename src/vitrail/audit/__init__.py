"""The adversary: what do releases leak? ``mechanism`` measures a privacy claim against draws on two neighbours.

Examples
--------
>>> import numpy as np, vitrail as vt
>>> rng = np.random.default_rng(0)
>>> def noisy_count(rows, draws):
...     return np.rint(len(rows) + rng.normal(0, 0.5, draws))   # half the noise that mu = 1 needs
>>> vt.audit.mechanism(noisy_count, (["Ada"], []), claimed=1.0, draws=20_000).verdict
'refuted'
"""

from .instrument import mechanism
from .result import Audit

__all__ = ["Audit", "mechanism"]
