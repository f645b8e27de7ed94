"""The adversary: what explanations and releases leak.

``membership`` attacks explanations of people who were, or were not, in the training data; ``reconstruction`` pulls training
rows out of example-based explanations, and ``influence_attack`` tells members by them; ``extraction`` copies a model and
``attribute`` infers a hidden column;
``mechanism``, ``search`` and ``one_run`` measure a privacy claim against draws, ``explainer`` that of a whole explainer.
``targets`` makes explainers of other libraries attackable, ``shadow`` trains many models at once, ``influence`` holds the
example-based explanations. ``escapes`` listens whether anything but an answer tells of a row; ``MISDEEDS`` and
``odd_values`` give it something to hear.

Examples
--------
>>> import numpy as np, vitrail as vt
>>> rng = np.random.default_rng(0)
>>> def noisy_count(rows, draws):
...     return np.rint(len(rows) + rng.normal(0, 0.5, draws))   # half the noise that mu = 1 needs
>>> vt.audit.mechanism(noisy_count, (["Ada"], []), claimed=1.0, draws=20_000).verdict
'refuted'
"""

from . import influence, shadow, targets
from .escapes import MISDEEDS, Escape, EscapeAudit, escapes, odd_values
from .explainers import explainer
from .influence_graph import InfluenceAudit, InfluenceGraph, influence_attack
from .mechanism import NeighbourSearch, mechanism, search
from .membership import Attacker, AttackRow, MembershipAudit, membership
from .one_run import OneRunAudit, one_run
from .outcomes import Audit
from .reconstruction import ReconstructionAudit, reconstruction
from .roc import Interval
from .surrogates import AttributeAudit, ExtractionAudit, attribute, extraction
from .targets import Target

__all__ = [
    "MISDEEDS",
    "AttackRow",
    "Attacker",
    "AttributeAudit",
    "Audit",
    "Escape",
    "EscapeAudit",
    "ExtractionAudit",
    "InfluenceAudit",
    "InfluenceGraph",
    "Interval",
    "MembershipAudit",
    "NeighbourSearch",
    "OneRunAudit",
    "ReconstructionAudit",
    "Target",
    "attribute",
    "escapes",
    "explainer",
    "extraction",
    "influence",
    "influence_attack",
    "mechanism",
    "membership",
    "odd_values",
    "one_run",
    "reconstruction",
    "search",
    "shadow",
    "targets",
]
