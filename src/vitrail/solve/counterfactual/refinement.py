"""Answers that say no more than they must: changes undone, numbers taken back, and a choice of different ones. Public.

*A change is redundant* if undoing it, alone or with one other, keeps the wanted class. An answer has none: single changes
are undone, the largest first, as many at once as the model lets go; then pairs; then each number goes back towards the
person's as far as the model agrees (whole numbers to the last unit); and all of it again until nothing moves. The last step
is always undoing. One model call serves all people and answers. Linked columns are undone together. Where undoing breaks an
order of two columns, the other one is moved along if it may be; if it may not, the change is needed.

Where very many columns vary (pictures), the smallest changes are undone first, by a binary search on their number; of more
changes than ``PAIRED`` single ones are undone, and not pairs.
"""

from __future__ import annotations

import numpy as np

from ..._types import Bools, Floats, Indices
from .search import REFINED, Candidates, Search, candidates, first_of_each, nearest_few

# Changes up to which pairs are undone too.
PAIRED = 64
# Parts that an interval of a number is cut into, each time; how often, at most; and when a fraction of the way is no more.
PARTS, STEPS, CLOSE = 16, 6, 2.0**-12
# Numbers of an answer that are taken back one by one, at most.
TAKEN_BACK = 16
# Times that undoing and taking back follow each other, at most.
ROUNDS = 5


def find(search: Search, points: Indices, total: int, extra: Floats | None) -> list[Floats]:
    """For each of these points up to ``total`` valid rows that change different columns, the best first.

    See :func:`~vitrail.solve.counterfactual.search.candidates` for what is given.
    """
    alike, moves = candidates(search, points, total, extra)
    valid = nearest_few(search, alike.joined(moves), max(REFINED, 2 * total))
    if search.is_wide:  # undone roughly first, exactly only what is told
        rough = _together(search, _smallest(search, valid))
        picked = [_chosen(search, rough, int(point), total) for point in points]
        valid = Candidates(np.repeat(points, [len(rows) for rows in picked]), np.concatenate(picked))
    refined, farthest = refine(search, valid), np.full(len(search.points), np.inf)
    if not (search.plausibility_weight or search.is_wide):
        nearest = undo(search, nearest_few(search, alike, 1))
        farthest[nearest.point] = search.amounts(nearest).sum(axis=1)
    return [_chosen(search, refined, int(point), total, farthest[point]) for point in points]


def refine(search: Search, start: Candidates) -> Candidates:
    """The candidates with no change that can be undone and no number that can be taken back, one for each set of columns."""
    best = undo(search, start)
    best = best.take(first_of_each(best.point, search.changed(best), search.amounts(best).sum(axis=1)))
    active = np.arange(len(best.rows))
    for _ in range(ROUNDS):
        smaller = take_back(search, best.take(active))
        moved = (smaller.rows != best.rows[active]).any(axis=1)
        active = active[moved]
        if not len(active):
            break
        best.rows[active] = undo(search, smaller.take(moved)).rows
    return best


# --- undoing -------------------------------------------------------------------------------------------------------------


def undo(search: Search, start: Candidates) -> Candidates:
    """Undo single changes and pairs of them, until the model agrees to none."""
    best = Candidates(start.point, start.rows.copy())
    active = np.arange(len(best.rows))
    while len(active):
        singles = active
        while len(singles):
            singles = _undo_singles(search, best, singles)
        active = _undo_pairs(search, best, active)
    return best


def _undo_singles(search: Search, best: Candidates, lines: Indices) -> Indices:
    """Undo changes of these rows, in place, as many as go together; returns the rows that changed."""
    changed = search.changed(best.take(lines))
    sizes = search.rules.by_player(search.amounts(best.take(lines)))
    # The last change that is left cannot be undone: nobody is in the wanted class before.
    which, player = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])
    may = _agreed(search, best, lines[which], np.eye(changed.shape[1], dtype=np.bool_)[player])[1]
    which, player = which[may], player[may]
    if not len(which):
        return lines[:0]
    # The largest 1, 2, 4, ... changes that can be undone alone, together.
    order = np.lexsort((-sizes[which, player], which))
    which, player = which[order], player[order]
    rank, count = np.arange(len(which)) - np.searchsorted(which, which), np.bincount(which, minlength=len(lines))
    ranks = np.full(changed.shape, changed.shape[1])
    ranks[which, player] = rank
    # To the first length that holds all of a row's, whatever the other rows have: nobody's answer depends on who else asks.
    lengths = 2 ** np.arange(int(count.max()).bit_length() + 1)
    row, length = np.nonzero((count[:, None] > 0) & (lengths < 2 * count[:, None]))
    masks = ranks[row] < lengths[length][:, None]
    rows, agreed = _agreed(search, best, lines[row], masks)
    row, rows = row[agreed], rows[agreed]
    last = np.append(row[1:] != row[:-1], True)  # the longest one of each row
    best.rows[lines[row[last]]] = rows[last]
    return np.asarray(lines[row[last]])


def _undo_pairs(search: Search, best: Candidates, lines: Indices) -> Indices:
    """Undo the largest pair of changes of each of these rows that the model lets go, in place; the rows that changed."""
    changed = search.changed(best.take(lines))
    counts = changed.sum(axis=1)
    some = np.flatnonzero((counts > 2) & (counts <= PAIRED))
    pairs = [(line, *pair) for line in some for pair in _pairs(np.flatnonzero(changed[line]))]
    if not pairs:
        return lines[:0]
    which, one, other = np.array(pairs, dtype=np.intp).T
    sizes = search.rules.by_player(search.amounts(best.take(lines)))
    each = np.eye(changed.shape[1], dtype=np.bool_)
    rows, agreed = _agreed(search, best, lines[which], each[one] | each[other])
    size = (sizes[which, one] + sizes[which, other])[agreed]
    which, rows = which[agreed], rows[agreed]
    order = np.lexsort((-size, which))
    first = order[np.unique(which[order], return_index=True)[1]]
    best.rows[lines[which[first]]] = rows[first]
    return np.asarray(lines[which[first]])


def _pairs(players: Indices) -> Indices:
    one, other = np.triu_indices(len(players), 1)
    return np.stack([players[one], players[other]], axis=1)


def _agreed(search: Search, best: Candidates, lines: Indices, undone: Bools) -> tuple[Floats, Bools]:
    """Rows with these players undone, (rows, players), and whether the model and the rules agree to each."""
    of = best.take(lines)
    own = search.points[of.point]
    tried = search.settle(Candidates(of.point, np.where(search.rules.of_players(undone), own, of.rows)))
    fewer, before = search.changed(tried), search.changed(of)
    less = (fewer <= before).all(axis=1) & (fewer != before).any(axis=1)
    less[less] = search.valid(tried.take(less))
    return tried.rows, less


def _smallest(search: Search, start: Candidates) -> Candidates:
    """Undo as many of the smallest changes as the model lets go, by a binary search on their number."""
    own, rows, n_columns = search.points[start.point], start.rows, start.rows.shape[1]
    rank = np.argsort(np.argsort(search.amounts(start), axis=1), axis=1)
    low, high = np.zeros(len(rows)), np.full(len(rows), float(n_columns))
    best = rows.copy()
    for _ in range(int(np.ceil(np.log2(n_columns + 1)))):
        middle = np.floor((low + high + 1) / 2)
        tried = search.settle(Candidates(start.point, np.where(rank < middle[:, None], own, rows)))
        valid = search.valid(tried)
        best[valid] = tried.rows[valid]
        low, high = np.where(valid, middle, low), np.where(valid, high, middle - 1)
    return Candidates(start.point, best)


# --- taking back ---------------------------------------------------------------------------------------------------------


def take_back(search: Search, start: Candidates) -> Candidates:
    """The largest numeric changes of each row moved back, one by one, as far as the model agrees."""
    best, rules = Candidates(start.point, start.rows.copy()), search.rules
    numeric = np.array([levels is None for levels in rules.levels])
    amounts = np.where(numeric & (best.rows != search.points[best.point]), search.amounts(best), 0.0)
    order = np.argsort(-amounts, axis=1, kind="stable")[:, :TAKEN_BACK]
    for place in range(order.shape[1]):
        column = order[:, place]
        lines = np.flatnonzero(amounts[np.arange(len(column)), column] > 0)
        if not len(lines):
            break
        _take_back_one(search, best, lines, column[lines])
    return best


def _take_back_one(search: Search, best: Candidates, lines: Indices, column: Indices) -> None:
    """Search each row's column for the value nearest to the person's that the model agrees to, in place."""
    group = search.rules.players[search.rules.players[:, column].argmax(axis=0)]  # what moves along with the column
    point = best.point[lines]
    own = search.points[point]
    refused, agreed = own[np.arange(len(lines)), column].copy(), best.rows[lines, column]
    narrow = np.where(search.rules.whole[column], 1.0, CLOSE * np.abs(agreed - refused))
    steps = np.arange(1, PARTS) / PARTS
    for _ in range(STEPS):
        open_ = np.flatnonzero(np.abs(agreed - refused) > narrow)
        if not len(open_):
            break
        values = refused[open_, None] + steps * (agreed - refused)[open_, None]
        wide = np.repeat(open_, len(steps))
        rows = np.where(group[wide], own[wide], best.rows[lines[wide]])
        rows[np.arange(len(wide)), column[wide]] = values.ravel()
        tried = search.settle(Candidates(point[wide], rows))
        nearer = (np.abs(tried.rows - own[wide]) <= np.abs(best.rows[lines[wide]] - own[wide])).all(axis=1)
        nearer |= _same_but(group[wide], tried.rows, best.rows[lines[wide]]) & (tried.rows != own[wide]).any(axis=1)
        nearer[nearer] = search.valid(tried.take(nearer))
        valid = nearer.reshape(len(open_), -1)
        first = np.where(valid.any(axis=1), valid.argmax(axis=1), len(steps))
        told = tried.rows[np.arange(len(wide)), column[wide]].reshape(valid.shape)
        has = first < len(steps)
        kept = (np.arange(len(open_)) * len(steps) + first)[has]
        best.rows[lines[open_[has]]] = tried.rows[kept]
        agreed[open_[has]] = told[has, first[has]]
        back = np.flatnonzero(first > 0)
        refused[open_[back]] = values[back, first[back] - 1]


def _same_but(group: Bools, rows: Floats, others: Floats) -> Bools:
    """Whether rows differ in linked columns only, which have no amounts to compare."""
    return np.asarray(((rows == others) | group).all(axis=1) & (group.sum(axis=1) > 1))


def _together(search: Search, start: Candidates) -> Candidates:
    """Take all numeric changes back by one fraction, as far as the model agrees."""
    best, own = start.rows.copy(), search.points[start.point]
    numeric = np.array([levels is None for levels in search.rules.levels])
    low, high = np.zeros(len(best)), np.ones(len(best))
    for _ in range(STEPS):
        middle = (low + high) / 2
        moved = np.where(numeric, own + middle[:, None] * (start.rows - own), start.rows)
        tried = search.settle(Candidates(start.point, moved))
        valid = search.valid(tried)
        best[valid] = tried.rows[valid]
        low, high = np.where(valid, low, middle), np.where(valid, middle, high)
    return Candidates(start.point, best)


# --- choosing ------------------------------------------------------------------------------------------------------------


def _chosen(search: Search, refined: Candidates, point: int, total: int, farthest: float = np.inf) -> Floats:
    """The best answer, then each time the best of those that change other columns, the less so the more they share.

    The first one is no farther than ``farthest``, if any is not.
    """
    own = refined.take(refined.point == point)
    cost, changed, far = search.cost(own), search.changed(own), search.amounts(own).sum(axis=1) > farthest * (1 + 1e-9)
    order = np.argsort(cost, kind="stable")
    first = order[np.sort(np.unique(changed[order], axis=0, return_index=True)[1])]
    cost, changed, far = cost[first], changed[first], far[first]
    picked: list[int] = []
    shared = np.zeros(len(first))
    while len(picked) < min(total, len(first)):
        worth = cost * (1 + shared) if picked else np.where(far, np.inf, cost)
        worth[picked] = np.inf
        picked.append(int(worth.argmin()))
        both, either = changed & changed[picked[-1]], changed | changed[picked[-1]]
        shared = np.maximum(shared, both.sum(axis=1) / either.sum(axis=1))
    return np.asarray(own.rows[first[picked]])
