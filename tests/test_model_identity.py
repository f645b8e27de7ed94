"""A model is the same model after it was saved and loaded, in another process, and after it was asked."""

import functools
import json
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from model_kinds import FEATURES, KINDS, is_rich, rows, scaled
from vitrail.model import Model
from vitrail.model.content_walk import content_digest
from vitrail.model.files import unpickled

RAW = FEATURES.read(rows()[:50])
# Names of kinds, and of each a pickle of the object and the file that its user has.
ELSEWHERE = """
import json, pathlib, pickle, sys
from vitrail.model import Model
from vitrail.model.files import is_pickled, unpickled
found = {}
for name, (pickled, file, options) in json.loads(sys.argv[1]).items():
    if pickled:
        found[name] = Model(pickle.loads(pathlib.Path(pickled).read_bytes()), **options).digest()
    if file:
        path = pathlib.Path(file)
        found[name + " file"] = Model(unpickled(path) if is_pickled(path) else path, **options).digest()
print(json.dumps(found))
"""


def in_another_process(given):
    """Digests of models, in a process that hashes texts in another way."""
    ran = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, json.dumps(given)],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout.splitlines()[-1])


def test_every_kind_is_the_same_in_another_process_and_after_it_was_asked(tmp_path):
    given, expected = {}, {}
    for name, make in KINDS.items():
        (folder := tmp_path / name).mkdir()
        trained = make(folder)
        model = Model(trained.model, **trained.options)
        before = model.digest()
        assert before is not None
        model.check(FEATURES)
        model.predict(FEATURES, RAW)
        assert model.digest() == before == Model(trained.model, **trained.options).digest(), name
        pickled = ""
        if name != "mlflow_pyfunc":  # its own folder is how it is kept
            (path := folder / "object.pkl").write_bytes(pickle.dumps(trained.model))
            pickled, expected[name] = str(path), before
        if trained.file is not None:
            loaded = [unpickled(trained.file) if trained.words else trained.file for _ in range(2)]
            digests = {Model(one).digest() for one in loaded}
            assert len(digests) == 1, name
            expected[f"{name} file"] = digests.pop()
            if trained.file.suffix in (".skops", ".joblib", ".pkl"):  # the object itself, and not another form of it
                assert expected[f"{name} file"] == before, name
        given[name] = pickled, str(trained.file or ""), trained.options
    assert in_another_process(given) == expected


def test_the_memory_between_the_fields_of_nodes_is_no_content():
    nodes = np.dtype([("child", "<i8"), ("goes_left", "u1")], align=True)
    some, others = np.zeros(3, nodes), np.zeros(3, nodes)
    others.view(np.uint8)[9:16] = 255
    assert some.tobytes() != others.tobytes()
    assert content_digest(some) == content_digest(others)
    assert content_digest(some[0]) == content_digest(others[0])
    inner = np.dtype([("nodes", nodes, (2,)), ("n", "<i4")])
    nested = [np.zeros(2, inner) for _ in range(2)]
    nested[1].view(np.uint8)[10:16] = 7
    assert content_digest(nested[0]) == content_digest(nested[1])
    others["child"][1] = 5
    assert content_digest(some) != content_digest(others)
    renamed = some.astype([("child", "<i8"), ("goes_right", "u1")])
    assert content_digest(renamed) != content_digest(some)


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(5, random_state=np.random.RandomState(1)), MLPClassifier((3,))]
)
def test_a_skops_file_is_the_same_model_whenever_it_is_opened(estimator, tmp_path):
    import skops.io

    estimator.set_params(**({"max_iter": 5} if isinstance(estimator, MLPClassifier) else {}))
    fitted = estimator.fit(scaled()[:200], is_rich()[:200])
    skops.io.dump(fitted, file := tmp_path / "model.skops")
    assert Model(file).digest() == Model(file).digest() == Model(fitted).digest() is not None


def test_threads_and_memory_maps_are_no_content(tmp_path):
    forest = RandomForestClassifier(5, random_state=0).fit(scaled(), is_rich())
    digest = Model(forest).digest()
    joblib.dump(forest, file := tmp_path / "forest.joblib")
    assert Model(joblib.load(file, mmap_mode="r")).digest() == digest
    assert Model(forest.set_params(n_jobs=2)).digest() == digest


class Remembers:
    """An estimator in the manner of people's own: with a set, a cached property, and a way back to itself."""

    def __init__(self, words, limit=0.5):
        self.words, self.limit, self.n_features_in_ = words, limit, FEATURES.n_features
        self.parts = [{"whole": self}]

    @functools.cached_property
    def weights(self):
        return np.arange(FEATURES.n_features) * self.limit

    def predict_proba(self, x):
        second = (x @ self.weights > 0) * 1.0
        return np.stack([1 - second, second], axis=1)


def test_what_an_own_class_remembers_of_predicting_is_no_content():
    model = Model(Remembers({"a", "b", "c"}), inputs="features")
    before = model.digest()
    assert before is not None
    model.predict(FEATURES, RAW)
    assert "weights" in vars(model.predictor.wrapped)
    assert model.digest() == before
    assert Model(pickle.loads(pickle.dumps(Remembers({"c", "b", "a"}))), inputs="features").digest() == before
    assert Model(Remembers({"a", "b", "d"}), inputs="features").digest() != before
    assert Model(Remembers({"a", "b", "c"}, 0.6), inputs="features").digest() != before


def test_looking_at_a_partial_does_not_change_it():
    one, other = functools.partial(np.clip, a_min=0), functools.partial(np.clip, a_min=0)
    assert vars(other) == {}
    assert content_digest(one) == content_digest(other) != content_digest(functools.partial(np.clip, a_min=1))


def test_a_sparse_matrix_is_its_numbers():
    dense = np.array([[0.0, 1, 2], [3, 0, 0]])
    rows_first = scipy.sparse.csr_matrix(dense)
    shuffled = scipy.sparse.csr_matrix(([2.0, 1, 3], [2, 1, 0], [0, 2, 3]), shape=(2, 3))
    assert content_digest(rows_first) == content_digest(shuffled)
    assert shuffled.indices.tolist() == [2, 1, 0]  # it is left as it is
    assert content_digest(scipy.sparse.csr_matrix(dense * 2)) != content_digest(rows_first)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], (1, 2)),
        ([1], [True]),
        ([1], [1.0]),
        (["ab", "c"], ["a", "bc"]),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ([[1], 2], [[1, 2]]),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.array(["a", None], object), np.array(["a", "None"], object)),
        (np.float64(1), np.float32(1)),
        (np.random.RandomState(1), np.random.RandomState(2)),
        (np.random.Generator(np.random.PCG64(1)), np.random.Generator(np.random.PCG64(2))),
        (LogisticRegression(C=1.0), LogisticRegression(C=2.0)),
        (np.log, np.log1p),
    ],
)
def test_what_differs_has_other_digests(one, other):
    assert content_digest(one) == content_digest(pickle.loads(pickle.dumps(one))) is not None
    assert content_digest(one) != content_digest(other)


def test_trees_that_differ_have_other_digests():
    digests = {Model(DecisionTreeClassifier(max_depth=depth).fit(scaled(), is_rich())).digest() for depth in (2, 3, 4)}
    assert len(digests) == 3
