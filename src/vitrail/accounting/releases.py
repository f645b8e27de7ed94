"""What leaves the vault: a noisy value, its price and its promise."""

from __future__ import annotations

import html
import io
import json
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LedgerCorrupted
from . import Cost, JsonValue, rounded_up
from .guarantee import Guarantee

FORMAT_VERSION = 2


@dataclass(frozen=True, eq=False)
class Release:
    """One differentially private answer. It may be published, stored and post-processed without limit.

    Attributes
    ----------
    value : array
        The noisy answer; its meaning is the question's.
    parts : mapping of str to array
        The named parts of a composite answer (``"gram"`` and ``"cross"``, ``"sum"`` and ``"mean"``).
    sigma : float or None
        Standard deviation of the noise on one coordinate (off-diagonal entries of a Gram sum: sigma/sqrt 2); None for a
        selection.
    cost : Cost
        What was charged to the dataset's account.
    guarantee : Guarantee
        The promise for this release alone; its ``basis`` names the release, the same whenever it is replayed.
    question : mapping
        The public description of what was asked.
    dataset : str
        The name of the dataset.
    replayed : bool
        Whether this is a stored release, which cost the dataset nothing this time.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> data = vt.PrivateData({"age": np.arange(100.0)}, schema, name="ages", n_rows_public=100, budget=vt.Budget(1, 1e-6))
    >>> release = data.ask(vt.BoundedSum(lambda block: block.features, 1, 1.0, key="mean age"), epsilon=0.5)
    >>> release.value.shape, round(release.guarantee.epsilon, 3)
    ((1,), 0.5)
    """

    value: NDArray[np.float64]
    sigma: float | None
    cost: Cost
    guarantee: Guarantee
    question: dict[str, JsonValue]
    dataset: str
    parts: MappingProxyType[str, NDArray[np.float64]] = field(default_factory=lambda: MappingProxyType({}))
    replayed: bool = False

    def __repr__(self) -> str:
        noise = "" if self.sigma is None else f", sigma={self.sigma:.4g}"
        kind = self.question.get("question", "answer")
        price = f"epsilon={rounded_up(self.guarantee.epsilon)}"
        return f"Release({kind} of {self.dataset!r}, shape {self.value.shape}{noise}, {price})"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(repr(self))}</b></p><p>{html.escape(self.guarantee.sentence)}</p>"

    def to_bytes(self) -> bytes:
        """The release as a NumPy archive without pickles."""
        header: dict[str, object] = {
            "format": FORMAT_VERSION,
            "sigma": self.sigma,
            "cost": self.cost.to_json(),
            "guarantee": self.guarantee.to_json(),
            "question": self.question,
            "dataset": self.dataset,
            "parts": list(self.parts),
            "value": next((name for name, part in self.parts.items() if part is self.value), None),  # stored once
        }
        arrays = {f"part_{index}": array for index, array in enumerate(self.parts.values())}
        buffer = io.BytesIO()
        text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)
        if header["value"] is None:
            arrays["value"] = self.value
        np.savez(buffer, header=text, **arrays)  # type: ignore[arg-type]
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, stored: bytes, *, replayed: bool = False) -> Release:
        """What ``to_bytes`` wrote."""
        try:
            with np.load(io.BytesIO(stored), allow_pickle=False) as archive:
                fields: dict[str, Any] = json.loads(archive["header"].tobytes())
                if fields["format"] != FORMAT_VERSION:
                    raise LedgerCorrupted(
                        f"a stored release has format {fields['format']}; this version reads {FORMAT_VERSION}"
                    )
                parts = {name: archive[f"part_{index}"] for index, name in enumerate(fields["parts"])}
                return cls(
                    archive["value"] if fields["value"] is None else parts[fields["value"]],
                    fields["sigma"],
                    Cost(*map(int, fields["cost"])),
                    Guarantee.from_json(fields["guarantee"]),
                    fields["question"],
                    fields["dataset"],
                    MappingProxyType(parts),
                    replayed,
                )
        except (ValueError, KeyError, OSError, TypeError) as error:
            raise LedgerCorrupted(f"a stored release cannot be read ({error})") from error
