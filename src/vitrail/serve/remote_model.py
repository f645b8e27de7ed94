"""Models that a service asks itself: their owner approved them, and does not hand out their files.

Explainers of the service's data take such a model like any other; what would ask it on this machine says that it cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from ..errors import ModelError
from ..model import Model
from ..model.predictors import ModelInput, Predictor
from ..schema import FloatArray, Schema


class RemoteModel(Model):
    """A model that stays at a service: explained there, not asked here.

    Parameters
    ----------
    line : mapping
        What the service says of it: name, output, range and inputs.
    address : str
        Where the service is.
    """

    def __init__(self, line: Mapping[str, Any], address: str) -> None:
        name, (low, high) = str(line["name"]), line["range"]
        super().__init__(_Absent(None, name), range=(float(low), float(high)), name=name)
        self.output, self.inputs = line.get("output"), line.get("inputs") or "auto"
        self.at_service, self.address = name, address

    def __repr__(self) -> str:
        return f"RemoteModel({self.name}, range=({self.lo:g}, {self.hi:g}), at {self.address})"

    def check(self, schema: Schema) -> None:
        """Nothing to try here: the service tried it on public rows when it started."""

    def predict(self, schema: Schema, raw: FloatArray) -> NoReturn:
        """Refused: there is no file to ask."""
        raise _kept_back(self.name)


class _Absent(Predictor):
    """A predictor that is somewhere else."""

    def __call__(self, inputs: ModelInput) -> object:
        raise _kept_back(self.label)

    def content(self) -> str | None:
        return None


def _kept_back(name: str) -> ModelError:
    return ModelError(
        f"{name} stays at the service, whose owner does not hand out its file; have the service explain it, or ask the "
        f"owner for the file (download = true under [models.{name}])"
    )
