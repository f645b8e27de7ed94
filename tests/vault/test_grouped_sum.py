"""Groups of rows in processes of their own: what they say stays in the box, what they do stays with them."""

import math
import random
import sys
import threading
import time
from contextlib import closing
from fractions import Fraction

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from error_rates import count_bounds
from vitrail.errors import InvalidInput
from vitrail.vault.questions.group_worker import GroupServer
from vitrail.vault.questions.grouped_sum import _group_call

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})


def rows(values):
    return {"x": np.asarray(values, dtype=float)}


def grouped(fn, size=1, *, groups=1, low=0.0, high=1.0, isolation="none", **options):
    return vt.GroupedSum(fn, size, low=low, high=high, groups=groups, isolation=isolation, **options)


def cells(walk, question, values, mu=1.0):
    """The integer sum over groups, in cells from the middle, of one assignment."""
    walked = walk(rows(values), UNIT)
    plan = question.plan(mu, walked.facts)
    return plan, plan.exact_cells(walked, 8, 1)[0]


def value(walk, question, values):
    """The sum over groups without noise."""
    plan, total = cells(walk, question, values)
    return total * plan.step + question.groups * (question.low + question.high) / 2


ISOLATIONS = ["none", "process"]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_results_are_summed_and_clipped_to_the_box(walk, isolation):
    question = grouped(lambda group: [0.25, 7.0, -7.0, 0.5], 4, low=0, high=[1, 2, 1, 1], isolation=isolation)
    plan, total = cells(walk, question, [0.5])
    assert np.allclose(total * plan.step + (question.low + question.high) / 2, [0.25, 2, 0, 0.5], atol=plan.step)


OUTCOMES = [math.nan, math.inf, [0.1], [0.1] * 3, "no number", None, [], [[0.1, 0.2], [0.3, 0.4]]]


def fails_in_every_way(group):
    """What happens depends on the group's first row."""
    way = round(group.column("x")[0] * 100)
    if way == 98:
        raise KeyError("a private group")
    if way == 99:
        sys.exit(1)
    return OUTCOMES[way] if way < len(OUTCOMES) else [0.5, 0.5]


def test_a_failing_or_empty_group_says_the_default(walk, capfd):
    question = grouped(fails_in_every_way, 2, default=[0.25, 0.75])
    for values in ([way / 100] for way in (*range(len(OUTCOMES)), 98, 99)):
        assert np.allclose(value(walk, question, values), [0.25, 0.75], atol=0.01)
    assert np.allclose(value(walk, question, []), [0.25, 0.75], atol=0.01)
    assert np.allclose(value(walk, question, [0.5]), [0.5, 0.5], atol=0.01)
    assert capfd.readouterr() == ("", "")


def test_a_group_failing_in_its_process_says_the_default(walk, capfd):
    call = _group_call(lambda group: fails_in_every_way(group), walk(rows([0.0]), UNIT).facts)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with closing(GroupServer(call, 20.0)) as server:
        for way in (*range(len(OUTCOMES)), 98, 99):
            said = server(np.array([[way / 100]]))
            assert said is None or said.shape != (2,) or not np.isfinite(said).all()
        assert np.array_equal(server(np.array([[0.5]])), [0.5, 0.5])
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert capfd.readouterr() == ("", "")


def test_only_the_failing_groups_say_the_default(walk):
    def fn(group):
        if (group.column("x") == 0.5).any():
            raise ValueError
        return 1.0

    question = grouped(fn, groups=50, default=0.0)
    for _ in range(20):
        said = value(walk, question, [0.5, *np.linspace(0.6, 1, 3000)])  # so many that no group stays empty
        assert abs(said[0] - 49) <= 50 * 2.0**-10


def test_a_group_that_takes_too_long_is_stopped_and_says_the_default(walk):
    question = grouped(
        lambda group: time.sleep(60) if (group.column("x") == 0.5).any() else 1.0,
        groups=2,
        default=0.0,
        isolation="process",
        timeout_seconds=0.3,
    )
    started = time.monotonic()
    said = value(walk, question, [0.5])
    assert abs(said[0]) < 0.01
    assert time.monotonic() - started < 50  # it did not sleep to the end


def test_nothing_is_left_behind_for_the_next_group(walk):
    """A counter in a global, in a module and in a default argument: every group finds them fresh."""
    source = "seen = []\ndef fn(group, kept=[]):\n    import math\n    seen.append(1); kept.append(1)\n"
    source += "    math.counter = getattr(math, 'counter', 0) + 1\n    return [len(seen), len(kept), math.counter]\n"
    namespace = {"__name__": "a_module_of_the_user"}
    exec(source, namespace)
    question = grouped(namespace["fn"], 3, groups=6, low=0, high=10, default=1.0, isolation="process")
    assert np.allclose(value(walk, question, np.linspace(0, 1, 100)), 6, atol=0.1)


def test_without_isolation_state_is_the_functions_own_affair(walk):
    seen = []

    def fn(group):
        seen.append(1)
        return len(seen)

    assert value(walk, grouped(fn, groups=3, low=0, high=10, default=0), np.linspace(0, 1, 300))[0] > 5.5  # 1 + 2 + 3


def test_prints_and_warnings_of_a_group_are_not_seen(walk, capfd, recwarn):
    def fn(group):
        import os
        import warnings

        print("a private row", group.column("x"))
        print("a private row", file=sys.stderr)
        os.write(1, b"a private row")
        os.write(2, b"a private row")
        warnings.warn("a private row", stacklevel=1)
        return 0.5

    assert np.allclose(value(walk, grouped(fn, groups=2, isolation="process"), np.linspace(0, 1, 40)), 1, atol=0.01)
    assert capfd.readouterr() == ("", "")
    assert len(recwarn) == 0


def test_every_group_draws_from_seeds_of_its_own():
    def fn(raw):
        return np.array([random.random(), np.random.random(), np.random.default_rng().random()])  # noqa: NPY002

    with closing(GroupServer(fn, 20.0)) as server:
        said = np.array([server(np.zeros((1, 1))) for _ in range(4)])
    assert len(np.unique(said)) == 12


def test_what_a_module_prints_when_it_is_imported_is_not_taken_for_an_answer(tmp_path, monkeypatch, walk):
    (tmp_path / "talkative_module.py").write_text("print('hello ' * 1000)\ndef fn(group):\n    return 0.75\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import talkative_module

    question = grouped(talkative_module.fn, groups=2, isolation="process")
    assert np.allclose(value(walk, question, np.linspace(0, 1, 40)), 1.5, atol=0.01)


def test_a_group_that_kills_its_server_costs_groups_and_nothing_else(walk, capfd):
    def fn(group):
        import os
        import signal

        if (group.column("x") == 0.5).any():
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(1)
        return 1.0

    question = grouped(fn, groups=4, default=0.0, isolation="process", timeout_seconds=10)
    said = value(walk, question, [0.5, 0.1, 0.2, 0.3])
    assert 0 <= round(said[0]) <= 3
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_fails_on_a_public_group_is_said_before_anything_is_charged(private, isolation):
    data = private(rows(np.linspace(0, 1, 50)), UNIT)
    for fn in (
        lambda group: 1 / 0,
        lambda group: [1.0, 2.0],
        lambda group: math.nan,
        lambda group: "text",
        lambda group: group.column("no such column").mean(),
        lambda group: group.predictions(vt.Model(lambda x: x[:, 0] * 5, range=(0, 1))).mean(),
    ):
        with pytest.raises(InvalidInput):
            data.ask(grouped(fn, isolation=isolation), mu=1.0)
    assert data.budget.spent.pico_mu_squared == 0


def test_what_cannot_go_to_another_process_is_said_before_anything_is_charged(private, monkeypatch):
    data = private(rows(np.linspace(0, 1, 50)), UNIT)
    lock = threading.Lock()
    with pytest.raises(InvalidInput, match="isolation='none'"):
        data.ask(grouped(lambda group: 0.5 if lock else 1.0, isolation="process"), mu=1.0)
    with pytest.raises(InvalidInput, match="timeout_seconds"):
        data.ask(grouped(lambda group: time.sleep(0.4) or 0.5, isolation="process", timeout_seconds=0.1), mu=1.0)

    class Gone:
        def __call__(self, group):
            return 0.5

        def __reduce__(self):
            return _vanish, ()

    with pytest.raises(InvalidInput, match="isolation='none'"):
        data.ask(grouped(Gone(), isolation="process"), mu=1.0)
    assert data.budget.spent.pico_mu_squared == 0


def _vanish():
    raise RuntimeError("cannot be loaded")


def test_a_whole_answer_from_processes(private):
    """A real use: a line fitted to every group."""
    schema = vt.Schema({"x": vt.Numeric(0, 1), "y": vt.Numeric(0, 2)})
    generator = np.random.default_rng(2)
    x = generator.random(4000)
    data = private({"x": x, "y": 1.5 * x + 0.05 * generator.random(4000)}, schema, target="y", n_rows_public=4000)

    def slope(group):
        frame = group.frame()
        return np.polyfit(frame["x"], frame["y"], 1)[0]

    release = data.ask(vt.GroupedSum(slope, 1, low=-3, high=3, groups=4), mu=3.0)
    assert abs(release.parts["mean"][0] - 1.5) < 3.5  # seven standard deviations: 6 / 3 / 4 is one
    assert np.allclose(release.parts["mean"] * 4, release.value)


# The box


boxes = st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3)), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(boxes, st.sampled_from([0.01, 1.0, 30.0]), st.sampled_from([1, 7, 10**6]), st.data())
def test_one_group_moves_the_sum_by_at_most_the_charged_diagonal(walk, box, mu, groups, data):
    low = np.array([side[0] for side in box])
    high = low + np.array([side[1] for side in box])
    question = vt.GroupedSum(lambda group: low, len(box), low=low, high=high, groups=groups, isolation="none")
    plan = question.plan(mu, walk(rows([0.0]), UNIT).facts)
    said = [low, high, question.default, high * 2 - low, low * 2 - high]
    said += [low + (high - low) * np.array(data.draw(st.lists(st.floats(-1, 2), min_size=len(box), max_size=len(box))))]
    on_grid = [plan._on_grid(np.asarray(result)) for result in said]
    bound = (Fraction(plan.sensitivity) / Fraction(plan.step)) ** 2
    for first in on_grid:
        for second in on_grid:
            assert sum(int(x) ** 2 for x in first - second) <= bound
    diagonal = float(np.linalg.norm(high - low))
    assert plan.sensitivity <= diagonal * (1 + 2.0**-8)
    assert plan.sensitivity / plan.sigma <= mu
    assert all(sum(int(x) ** 2 for x in first) <= bound / 4 for first in on_grid)


def test_the_charge_does_not_depend_on_the_neighbour_relation(walk):
    question = grouped(lambda group: 0.5)
    plans = [question.plan(1.0, walk(rows([0.0]), UNIT, neighbours=n).facts) for n in ("add-remove", "replace-one")]
    assert plans[0] == plans[1]


def test_every_row_goes_to_exactly_one_group_at_random(walk):
    seen = []

    def fn(group):
        seen.append(group.column("x").copy())
        return 0.5

    values = np.arange(400) / 400
    value(walk, grouped(fn, groups=10), values)
    assert np.array_equal(np.sort(np.concatenate(seen)), values)
    sizes = [len(group) for group in seen]
    assert len(sizes) == 10
    fewest, most = count_bounds(400, 1 / 10, of=10)
    assert fewest <= min(sizes) <= max(sizes) <= most
    first = [set(group) for group in seen]
    seen.clear()
    value(walk, grouped(fn, groups=10), values)
    assert [set(group) for group in seen] != first


@pytest.mark.parametrize(
    "options",
    [
        {"low": 1, "high": 1},
        {"low": 1, "high": 0},
        {"low": -1e308, "high": 1e308},
        {"low": 0, "high": 5e-324},
        {"low": 0, "high": math.inf},
        {"low": math.nan, "high": 1},
        {"low": [0, 0, 0], "high": 1},
        {"low": "a", "high": 1},
        {"low": 0, "high": 1, "default": 2},
        {"low": 0, "high": 1, "default": math.nan},
        {"low": 0, "high": 1, "groups": 0},
        {"low": 0, "high": 1, "groups": 2.5},
        {"low": 0, "high": 1, "timeout_seconds": 0},
        {"low": 0, "high": 1, "isolation": "thread"},
        {"low": 0, "high": 1, "size": 0},
    ],
)
def test_impossible_boxes_are_refused(options):
    options = {"size": 2, **options}
    with pytest.raises(InvalidInput):
        vt.GroupedSum(lambda group: 0.0, **options)


def test_a_box_too_uneven_for_its_noise_is_refused_before_anything_is_charged(private):
    data = private(rows([0.5]), UNIT)
    question = grouped(lambda group: [0, 0], 2, low=0, high=[1e-12, 1.0])
    with pytest.raises(InvalidInput, match="less unequal"):
        data.ask(question, mu=0.01)
    assert data.budget.spent.pico_mu_squared == 0
