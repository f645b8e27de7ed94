"""The exact integer sum of what a function says about rows: what a bounded sum adds noise to."""

from dataclasses import dataclass

from vitrail.vault.engines.row_pass import Summation
from vitrail.vault.sums.grid import sum_on_grid


@dataclass
class Sum:
    """What a walk needs of a plan, for a function and a grid."""

    function: object
    grid: object

    def summation(self):
        return Summation(
            self.function, lambda arrays, counted: [[sum_on_grid(arrays[0], counted, self.grid)]], ((self.grid.size,),)
        )


def exact_sum(rows, function, grid, block_rows):
    return rows.totals(Sum(function, grid), block_rows).value(0)
