"""Stage graphs and the DP enabler theorem: which stages to release so that an explanation is private.

An explainer computes stages from rows. Releasing a set of stages through mechanisms makes *every* algorithm of that shape
private exactly if every path from the rows to the explanation meets the set (``separators`` has statement and proof). Here
the minimal sets are listed, the cheapest one is found, and each explainer's own graph is a Mermaid diagram.

Examples
--------
>>> import vitrail as vt
>>> effects = vt.flow.of("AccumulatedEffects")
>>> effects.released, effects.is_separator()
(('marginals', 'sizes', 'sums'), True)
>>> len(effects.separators())
4
>>> effects.mermaid().splitlines()[0]
'flowchart TD'
"""

from .separators import Cut
from .stages import Stage, Stages, names, of

__all__ = ["Cut", "Stage", "Stages", "names", "of"]
