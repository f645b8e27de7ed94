"""For the owner of the rows alone: what they hold, exactly. Nothing here is private, and nothing here is charged.

An owner who declares a dataset has to know whether the declaration fits, and may read the rows anyway. So this package
reads them without noise and says what it sees. It is imported by the owner's desk and by nobody else (a contract of
import-linter says so): no explainer, pane, audit or service leads here. What it returns must not be shown to anybody who
may not see the rows.
"""

from . import as_given
from .examine import ColumnFacts, ModelFacts, RowFacts, agreement, examine, examine_model
from .look import Looked, look

__all__ = ["ColumnFacts", "Looked", "ModelFacts", "RowFacts", "agreement", "as_given", "examine", "examine_model", "look"]
