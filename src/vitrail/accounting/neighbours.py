"""The neighbour relation: what "one person's data" means in a promise, as one text that travels with it.

``"add-remove"`` and ``"replace-one"`` are about one row. Where a person may have several, up to k, the unit is a person, and
the relation says so: ``"add-remove, up to 3 rows per person"``. Two datasets are then neighbours when all rows of one person
are added or removed (or exchanged for those of another, at most k on either side). Because it is one text, whatever compares
relations (an account that was opened with another one, a bill beside a result, parts) also tells units apart, and whatever
knows the two relations of rows only does not take a person for a row.

*How far a sum moves.* Let a row add a vector of norm at most C. A person with j <= k rows adds at most j C <= k C (triangle
inequality). Exchanged for a person with j' <= k rows: pair the rows off as far as they go; a pair moves the sum by at most
what an exchange of one row does, 2 C or a proven R with C <= R <= 2 C, and a row without a partner by at most C <= R. There
are max(j, j') <= k pairs and rows without partner: at most k R. So noise k times larger costs the same, and the price of the
same noise is k squared in mu squared, which is the group privacy of GDP (Dong, Roth & Su 2022, Theorem 2.14) and no less.

Where rows carry their person's name (``person=``), the unit is a person with any number of rows, and the relation says
``"add-remove, all rows of a person"``. A person counts once: each of j rows adds its vector divided by j, of norm at most
C / j, so the person adds at most C, and noise is that of data with one row per person (``vault.rows.persons``).

*Somebody with more rows than declared*, j of them, is protected by ceil(j/k) times the mu: by as many steps to neighbours.

Tests: tests/vault/test_rows_per_person.py, tests/audit/test_persons_audit.py.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from .. import _checks
from ..errors import InvalidInput

Neighbours: TypeAlias = str
"""A relation that :func:`check_neighbours` has seen."""
NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace-one")
"""The relations of rows."""
MOST_ROWS_PER_PERSON = 10**6
_OF_PERSONS = re.compile(r"(add-remove|replace-one), up to ([1-9][0-9]{0,6}) rows per person")
WHOLE_PERSON = ", all rows of a person"
"""What follows the relation where rows carry their person's name."""


def check_neighbours(neighbours: str) -> Neighbours:
    """The neighbour relation, if it is one of ours.

    Examples
    --------
    >>> check_neighbours("add-remove, up to 3 rows per person")
    'add-remove, up to 3 rows per person'
    >>> check_neighbours("substitute")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: neighbours is 'substitute'; choose 'add-remove' or 'replace-one'
    """
    if isinstance(neighbours, str):
        found = _OF_PERSONS.fullmatch(neighbours)
        if found is not None and 2 <= int(found[2]) <= MOST_ROWS_PER_PERSON:
            return neighbours
        if neighbours.removesuffix(WHOLE_PERSON) in NEIGHBOURS:
            return neighbours
    return _checks.choice("neighbours", neighbours, NEIGHBOURS)


def relation_of(neighbours: str, rows_per_person: int = 1, *, whole_person: bool = False) -> Neighbours:
    """The relation of all rows of one person, of whom there are at most ``rows_per_person``; of one row for 1.

    ``whole_person``: rows carry their person's name, and a person counts once, whatever the number of rows.

    Examples
    --------
    >>> relation_of("add-remove", 3)
    'add-remove, up to 3 rows per person'
    >>> relation_of("replace-one", 1)
    'replace-one'
    >>> relation_of("add-remove", whole_person=True)
    'add-remove, all rows of a person'
    """
    checked = check_neighbours(neighbours)
    if whole_person or is_whole_person(checked):
        if rows_per_person != 1 or rows_per_person_of(checked) != 1:
            raise InvalidInput(
                f"rows_per_person is {max(rows_per_person, rows_per_person_of(checked))!r}, and person= is given too; with "
                "person= a person may have any number of rows: leave rows_per_person out"
            )
        return kind_of(checked) + WHOLE_PERSON
    count = _checks.whole("rows_per_person", rows_per_person, most=MOST_ROWS_PER_PERSON, of="a PrivateData")
    said = rows_per_person_of(checked)
    if said > 1 and count not in (1, said):
        raise InvalidInput(
            f"rows_per_person is {count}, and neighbours is {neighbours!r}; say it once: neighbours={kind_of(checked)!r}"
        )
    most = max(count, said)
    return kind_of(checked) if most == 1 else f"{kind_of(checked)}, up to {most} rows per person"


def kind_of(neighbours: Neighbours) -> str:
    """Whether the unit comes and goes, ``"add-remove"``, or is exchanged, ``"replace-one"``.

    Examples
    --------
    >>> kind_of("replace-one, up to 4 rows per person")
    'replace-one'
    """
    return check_neighbours(neighbours).partition(",")[0]


def is_exchange(neighbours: Neighbours) -> bool:
    """Whether the unit is exchanged for another one."""
    return kind_of(neighbours) == "replace-one"


def is_whole_person(neighbours: Neighbours) -> bool:
    """Whether the unit is a person who counts once, with any number of rows.

    Examples
    --------
    >>> is_whole_person("replace-one, all rows of a person"), is_whole_person("add-remove, up to 3 rows per person")
    (True, False)
    """
    return check_neighbours(neighbours).endswith(WHOLE_PERSON)


def rows_per_person_of(neighbours: Neighbours) -> int:
    """How many rows the unit has at most that count one each; 1 where all rows of a person together count once.

    Examples
    --------
    >>> rows_per_person_of("add-remove"), rows_per_person_of("add-remove, up to 12 rows per person")
    (1, 12)
    """
    found = _OF_PERSONS.fullmatch(check_neighbours(neighbours))
    return 1 if found is None else int(found[2])


def sensitivity_factor(neighbours: Neighbours) -> int:
    """How far one neighbour step moves a sum to which every row adds a vector of norm at most 1.

    Examples
    --------
    >>> sensitivity_factor("replace-one"), sensitivity_factor("add-remove, up to 3 rows per person")
    (2, 3)
    """
    return rows_per_person_of(neighbours) * (2 if is_exchange(neighbours) else 1)


def change_in_words(neighbours: Neighbours) -> str:
    """What a promise is for.

    Examples
    --------
    >>> change_in_words("add-remove")
    'adding or removing any one row'
    >>> change_in_words("replace-one, up to 3 rows per person")
    'replacing all rows of any one person (at most 3)'
    """
    change = "replacing" if is_exchange(neighbours) else "adding or removing"
    return f"{change} {unit_in_words(neighbours)}"


def unit_in_words(neighbours: Neighbours) -> str:
    """Whose data a promise is about.

    Examples
    --------
    >>> unit_in_words("add-remove, up to 3 rows per person")
    'all rows of any one person (at most 3)'
    >>> unit_in_words("add-remove, all rows of a person")
    'all rows of any one person (who counts once)'
    """
    if is_whole_person(neighbours):
        return "all rows of any one person (who counts once)"
    most = rows_per_person_of(neighbours)
    return "any one row" if most == 1 else f"all rows of any one person (at most {most:,})"


AGGREGATE = "open the data with person=, the column that names whose row it is, or make one row of each person's rows"


def check_unit_is_a_row(neighbours: Neighbours, why: str, remedy: str) -> None:
    """Refuse what is proven for a unit of one row alone.

    Examples
    --------
    >>> check_unit_is_a_row("add-remove, all rows of a person", "a history is about rows", "leave it out")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: a history is about rows, and here the promise is about all rows of any one person (who \
counts once); leave it out. Nothing was charged
    """
    if neighbours not in NEIGHBOURS:
        raise InvalidInput(
            f"{why}, and here the promise is about {unit_in_words(neighbours)}; {remedy}. Nothing was charged"
        )


def check_unit_counts_once(neighbours: Neighbours, why: str, remedy: str = AGGREGATE) -> None:
    """Refuse what is proven for units that count once: a row, or a person whose rows are known to be theirs.

    Examples
    --------
    >>> check_unit_counts_once("add-remove, all rows of a person", "a part is a hash")
    >>> check_unit_counts_once(relation_of("add-remove", 3), "a part is a hash of a row", "ask the whole data")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: a part is a hash of a row, and here a person has up to 3 rows (rows_per_person); ask the \
whole data. Nothing was charged
    """
    if (most := rows_per_person_of(neighbours)) > 1:
        raise InvalidInput(
            f"{why}, and here a person has up to {most} rows (rows_per_person); {remedy}. Nothing was charged"
        )
