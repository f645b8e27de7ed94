"""How much the counterfactual benchmark measures, and where data and cache are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from local_setup import Cache


@dataclass(frozen=True)
class Scale:
    """Everything, or enough to see that it runs."""

    quick: bool = False

    @property
    def queries(self) -> int:
        return 20 if self.quick else 500

    @property
    def few(self) -> int:
        return 10 if self.quick else 100

    @property
    def fits(self) -> int:
        return 1 if self.quick else 3

    @property
    def fits_counted(self) -> int:
        return 1 if self.quick else 2

    @property
    def random(self) -> int:
        return 3 if self.quick else 100

    @property
    def genetic(self) -> int:
        return 2 if self.quick else 60

    @property
    def fresh(self) -> int:
        return 10 if self.quick else 250

    @property
    def fresh_fits(self) -> int:
        return 1 if self.quick else 5

    @property
    def fresh_genetic(self) -> int:
        return 2 if self.quick else 120

    @property
    def gradient(self) -> int:
        return 2 if self.quick else 20

    @property
    def one_by_one(self) -> int:
        return 2 if self.quick else 20

    @property
    def images(self) -> int:
        return 5_000 if self.quick else 20_000


@dataclass(frozen=True)
class Bench:
    folder: Path
    cache: Cache
    scale: Scale
