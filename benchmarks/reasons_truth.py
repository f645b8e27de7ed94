"""Interventional Shapley values of three kinds of model, compiled, one player per column: the judge of reasons.py.

For a person z and a background row b the game is v(S) = f(z on S, b elsewhere); values are means over background rows.
Nothing here is the library's own code: it judges that code. Columns in which z and b are the same to the model have no
part in the game and are skipped, which is exact.

- ``TreeSum`` without a link (a forest's probability, a boosted margin, a regression): exact. At a leaf that is reached with
  n columns from z and k from b, a column of z gains value * (n-1)! k! / (n+k)!, one of b loses value * n! (k-1)! / (n+k)!;
  background rows that walk together are counted together.
- A boosted probability, a network: permutations. Every background row has its own random order of columns, and its reverse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

MOST_COLUMNS = 64
STACK = 4096


@dataclass(frozen=True)
class TreeSum:
    """``link(base + sum of trees)``; nodes of all trees one after another, thresholds as ranks within their column."""

    cuts: tuple[np.ndarray, ...]
    feature: np.ndarray
    rank: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    roots: np.ndarray
    base: float
    logistic: bool
    single: bool
    """Whether the trees read their rows in single precision, as scikit-learn's forests do."""

    def codes(self, raw: np.ndarray) -> np.ndarray:
        """For every value, how many thresholds of its column it passes: all that the trees see of it."""
        rows = raw.astype(np.float32).astype(np.float64) if self.single else raw
        return np.column_stack([np.searchsorted(cuts, rows[:, j]) for j, cuts in enumerate(self.cuts)]).astype(np.int16)

    def predict(self, raw: np.ndarray) -> np.ndarray:
        found = self.base + _sums(self.codes(raw), self.feature, self.rank, self.left, self.right, self.value, self.roots)
        return 1 / (1 + np.exp(-found)) if self.logistic else found

    def margin(self) -> TreeSum:
        """The same before the link."""
        return TreeSum(*(getattr(self, name) for name in self.__dataclass_fields__ if name not in ("logistic", "single")),
                       logistic=False, single=self.single)  # fmt: skip

    def values(self, people: np.ndarray, background: np.ndarray, orders: int = 1, seed: int = 0) -> np.ndarray:
        """(people, columns); exact without a link, else from some orders per background row and their reverses."""
        z, b = self.codes(people), self.codes(background)
        nodes = (self.feature, self.rank, self.left, self.right, self.value, self.roots)
        if not self.logistic:
            factorials = np.array([math.factorial(n) for n in range(MOST_COLUMNS)], dtype=np.float64)
            return _exact(z, np.ascontiguousarray(b.T), *nodes, factorials)
        return _boosted(z, b, *nodes, self.base, orders, seed)


def tree_sum(estimator: object, n_columns: int) -> TreeSum:
    """Read a fitted forest or histogram gradient boosting of scikit-learn."""
    boosted = hasattr(estimator, "_predictors")
    parts = []
    if boosted:
        for (predictor,) in estimator._predictors:  # type: ignore[attr-defined]
            nodes = predictor.nodes
            assert not nodes["is_categorical"].any()
            feature = np.where(nodes["is_leaf"], -1, nodes["feature_idx"].astype(np.int64))
            parts.append((feature, nodes["num_threshold"], nodes["left"], nodes["right"], nodes["value"]))
        base = float(np.ravel(estimator._baseline_prediction)[0])  # type: ignore[attr-defined]
    else:
        trees = [tree.tree_ for tree in estimator.estimators_]  # type: ignore[attr-defined]
        for tree in trees:
            outputs = tree.value[:, 0, :]
            outputs = outputs[:, 1] / outputs.sum(axis=1) if outputs.shape[1] == 2 else outputs[:, 0]
            feature = np.where(tree.children_left < 0, -1, tree.feature)
            parts.append((feature, tree.threshold, tree.children_left, tree.children_right, outputs / len(trees)))
        base = 0.0
    roots = np.concatenate(([0], np.cumsum([len(part[0]) for part in parts])))[:-1]
    feature = np.concatenate([part[0] for part in parts])
    threshold = np.concatenate([part[1] for part in parts]).astype(np.float64)
    cuts = tuple(np.unique(threshold[feature == j]) for j in range(n_columns))
    rank = np.zeros(len(feature), dtype=np.int16)
    for j, column_cuts in enumerate(cuts):
        rank[feature == j] = np.searchsorted(column_cuts, threshold[feature == j])
    left, right = (
        np.concatenate([part[i].astype(np.int64) + root for part, root in zip(parts, roots, strict=True)]) for i in (2, 3)
    )
    logistic = boosted and hasattr(estimator, "predict_proba")
    return TreeSum(
        cuts, feature.astype(np.int16), rank, left.astype(np.int32), right.astype(np.int32),
        np.concatenate([part[4] for part in parts]).astype(np.float64), roots.astype(np.int32), base, logistic, not boosted,
    )  # fmt: skip


@njit(cache=True)
def _leaf(row, node, feature, rank, left, right):
    while feature[node] >= 0:
        node = left[node] if row[feature[node]] <= rank[node] else right[node]
    return node


@njit(cache=True)
def _sums(rows, feature, rank, left, right, value, roots):
    found = np.zeros(len(rows))
    for i in range(len(rows)):
        for root in roots:
            found[i] += value[_leaf(rows[i], root, feature, rank, left, right)]
    return found


@njit(cache=True)
def _exact(people, columns, feature, rank, left, right, value, roots, factorials):
    """``columns`` is the background by column. A stack entry: a node, the rows there, columns taken from z and from b."""
    n_columns, n_rows = columns.shape
    found = np.zeros((len(people), n_columns))
    order = np.empty(n_rows, dtype=np.int32)
    nodes, starts, ends = np.empty(STACK, np.int32), np.empty(STACK, np.int32), np.empty(STACK, np.int32)
    mine, theirs = np.empty(STACK, np.uint64), np.empty(STACK, np.uint64)
    one = np.uint64(1)
    for person in range(len(people)):
        z = people[person]
        for root in roots:
            for i in range(n_rows):
                order[i] = i
            nodes[0], starts[0], ends[0], mine[0], theirs[0] = root, 0, n_rows, 0, 0
            depth = 1
            while depth > 0:
                depth -= 1
                node, start, end, of_z, of_b = nodes[depth], starts[depth], ends[depth], mine[depth], theirs[depth]
                j = feature[node]
                if j < 0:
                    _share(found[person], value[node] * (end - start), of_z, of_b, factorials)
                    continue
                bit = one << np.uint64(j)
                z_left = z[j] <= rank[node]
                if of_z & bit:
                    nodes[depth] = left[node] if z_left else right[node]
                    depth += 1
                    continue
                middle, last = start, end  # rows that go left come first
                column = columns[j]
                while middle < last:
                    if column[order[middle]] <= rank[node]:
                        middle += 1
                    else:
                        last -= 1
                        order[middle], order[last] = order[last], order[middle]
                for side in range(2):
                    first, after = (start, middle) if side == 0 else (middle, end)
                    if first == after:
                        continue
                    child = left[node] if side == 0 else right[node]
                    agrees = z_left == (side == 0)
                    nodes[depth], starts[depth], ends[depth] = child, first, after
                    mine[depth] = of_z
                    theirs[depth] = of_b if agrees or of_b & bit else of_b | bit
                    depth += 1
                    if not agrees and not of_b & bit:
                        nodes[depth] = left[node] if z_left else right[node]
                        starts[depth], ends[depth] = first, after
                        mine[depth], theirs[depth] = of_z | bit, of_b
                        depth += 1
    return found / n_rows


@njit(cache=True)
def _share(found, value, of_z, of_b, factorials):
    one = np.uint64(1)
    n = k = 0
    for j in range(len(found)):
        n += np.int64((of_z >> np.uint64(j)) & one)
        k += np.int64((of_b >> np.uint64(j)) & one)
    gain = value * factorials[n - 1] * factorials[k] / factorials[n + k] if n else 0.0
    loss = value * factorials[n] * factorials[k - 1] / factorials[n + k] if k else 0.0
    for j in range(len(found)):
        if (of_z >> np.uint64(j)) & one:
            found[j] += gain
        elif (of_b >> np.uint64(j)) & one:
            found[j] -= loss


@njit(cache=True)
def _boosted(people, background, feature, rank, left, right, value, roots, base, orders, seed):
    """A leaf counts from where the last of its columns from z comes in an order until the first of those from b does."""
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code
    n_columns = people.shape[1]
    found = np.zeros((len(people), n_columns))
    moving, position = np.empty(n_columns, np.int32), np.empty(n_columns, np.int32)
    up, down = np.empty(n_columns + 2), np.empty(n_columns + 2)
    nodes, mine, theirs = np.empty(STACK, np.int32), np.empty(STACK, np.uint64), np.empty(STACK, np.uint64)
    heights, ends = np.empty(len(value)), np.empty((len(value), 2), np.int32)
    members = np.empty((len(value), MOST_COLUMNS), np.int16)
    one = np.uint64(1)
    for person in range(len(people)):
        z = people[person]
        for b in range(len(background)):
            row = background[b]
            start, leaves = base, 0
            for root in roots:
                nodes[0], mine[0], theirs[0], depth = root, 0, 0, 1
                while depth > 0:
                    depth -= 1
                    node, of_z, of_b = nodes[depth], mine[depth], theirs[depth]
                    j = feature[node]
                    while j >= 0:
                        bit = one << np.uint64(j)
                        to_z = left[node] if z[j] <= rank[node] else right[node]
                        to_b = left[node] if row[j] <= rank[node] else right[node]
                        if to_z == to_b or of_z & bit:
                            node = to_z
                        else:
                            node = to_b
                            if not of_b & bit:
                                nodes[depth], mine[depth], theirs[depth] = to_z, of_z | bit, of_b
                                depth += 1
                                of_b |= bit
                        j = feature[node]
                    if of_z | of_b == 0:
                        start += value[node]
                        continue
                    heights[leaves] = value[node]
                    n = 0
                    for side in range(2):
                        mask, j = of_z if side == 0 else of_b, 0
                        while mask:
                            if mask & one:
                                members[leaves, n] = j
                                n += 1
                            mask >>= one
                            j += 1
                        ends[leaves, side] = n
                    leaves += 1
            n = 0
            for j in range(n_columns):
                if z[j] != row[j]:
                    moving[n] = j
                    n += 1
            for _ in range(orders):
                for i in range(n - 1, 0, -1):
                    other = np.random.randint(i + 1)  # noqa: NPY002
                    moving[i], moving[other] = moving[other], moving[i]
                for i in range(n):
                    position[moving[i]] = i
                up[: n + 2] = 0.0
                down[: n + 2] = 0.0
                for leaf in range(leaves):
                    least_z, most_z, least_b, most_b = n, -1, n, -1
                    for i in range(ends[leaf, 0]):
                        place = position[members[leaf, i]]
                        least_z, most_z = min(least_z, place), max(most_z, place)
                    for i in range(ends[leaf, 0], ends[leaf, 1]):
                        place = position[members[leaf, i]]
                        least_b, most_b = min(least_b, place), max(most_b, place)
                    if most_z < least_b:
                        up[most_z + 1] += heights[leaf]
                        up[least_b + 1] -= heights[leaf]
                    if most_b < least_z:  # the reverse order takes columns from the last to the first
                        down[n - least_z] += heights[leaf]
                        down[n - most_b] -= heights[leaf]
                for way in range(2):
                    changes = up if way == 0 else down
                    margin = start + changes[0]
                    before = 1 / (1 + math.exp(-margin))
                    for i in range(n):
                        margin += changes[i + 1]
                        after = 1 / (1 + math.exp(-margin))
                        found[person, moving[i] if way == 0 else moving[n - 1 - i]] += after - before
                        before = after
    return found / (2 * orders * len(background))


@dataclass(frozen=True)
class Network:
    """Two hidden ReLU layers; what a column adds to the first is its value times one vector, or its level's vector."""

    starts: np.ndarray
    levels: np.ndarray
    vectors: np.ndarray
    bias: np.ndarray
    second: np.ndarray
    second_bias: np.ndarray
    last: np.ndarray
    last_bias: float
    logistic: bool

    def predict(self, raw: np.ndarray) -> np.ndarray:
        first = np.tile(self.bias, (len(raw), 1))
        for j, (start, levels) in enumerate(zip(self.starts, self.levels, strict=True)):
            vectors = self.vectors[start + raw[:, j].astype(np.int64)] if levels else raw[:, [j]] * self.vectors[start]
            first += vectors
        second = np.maximum(np.maximum(first, 0) @ self.second + self.second_bias, 0)
        found = (second @ self.last + self.last_bias).astype(np.float64)
        return 1 / (1 + np.exp(-found)) if self.logistic else found

    def values(self, people: np.ndarray, background: np.ndarray, orders: int = 1, seed: int = 0) -> np.ndarray:
        """(people, columns), from some orders of columns per background row and their reverses."""
        return _network(
            people, background, self.starts, self.levels, self.vectors, self.bias, self.second, self.second_bias, self.last,
            self.last_bias, self.logistic, orders, seed,
        )  # fmt: skip


@njit(cache=True)
def _moved(first, raw, j, sign, starts, levels, vectors):
    if levels[j]:
        vector = vectors[starts[j] + int(raw[j])]
        for k in range(len(first)):
            first[k] += sign * vector[k]
    else:
        vector, factor = vectors[starts[j]], np.float32(sign * raw[j])
        for k in range(len(first)):
            first[k] += factor * vector[k]


@njit(cache=True, fastmath=True)
def _output(first, hidden, second, second_bias, last, last_bias, logistic):
    hidden[:] = second_bias
    for k in range(len(first)):
        height = first[k]
        if height > 0:
            for i in range(len(hidden)):
                hidden[i] += height * second[k, i]
    found = last_bias
    for i in range(len(hidden)):
        found += max(hidden[i], np.float32(0)) * last[i]
    return 1 / (1 + math.exp(-found)) if logistic else found


@njit(cache=True)
def _network(
    people, background, starts, levels, vectors, bias, second, second_bias, last, last_bias, logistic, orders, seed
):
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code
    n_columns = people.shape[1]
    found = np.zeros((len(people), n_columns))
    moving = np.empty(n_columns, dtype=np.int32)
    begin, first, hidden = bias.copy(), bias.copy(), second_bias.copy()
    for b in range(len(background)):
        begin[:] = bias
        for j in range(n_columns):
            _moved(begin, background[b], j, np.float32(1), starts, levels, vectors)
        start = _output(begin, hidden, second, second_bias, last, last_bias, logistic)
        for person in range(len(people)):
            z = people[person]
            n = 0
            for j in range(n_columns):
                if z[j] != background[b, j]:
                    moving[n] = j
                    n += 1
            for _ in range(orders):
                for i in range(n - 1, 0, -1):
                    other = np.random.randint(i + 1)  # noqa: NPY002
                    moving[i], moving[other] = moving[other], moving[i]
                for way in range(2):
                    first[:] = begin
                    before = start
                    for i in range(n):
                        j = moving[i] if way == 0 else moving[n - 1 - i]
                        _moved(first, background[b], j, np.float32(-1), starts, levels, vectors)
                        _moved(first, z, j, np.float32(1), starts, levels, vectors)
                        after = _output(first, hidden, second, second_bias, last, last_bias, logistic)
                        found[person, j] += after - before
                        before = after
    return found / (2 * orders * len(background))
