"""A skops file whose numbers lead compiled code astray is refused before anything is predicted; nothing crashes."""

import json
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from model_kinds import FEATURES, LEVELS, is_rich, plain, scaled, with_categories
from vitrail.errors import ModelError
from vitrail.model import Model
from vitrail.model.soundness import refuse_unsound

skops_io = pytest.importorskip("skops.io")
X, Y = scaled()[:300], is_rich()[:300]
FAR = 10**9
# Opens files and asks them, as a question about private rows would. Each line is what a user is told.
OPEN = """
import json, sys
import numpy as np
from vitrail.errors import ModelError
from vitrail.model import Model
for file in sys.argv[1:]:
    print(json.dumps([file, "crashed"]), flush=True)
    try:
        model = Model(file, range=(-9, 9))
        model.predictor(np.zeros((4, model.predictor.expected_width)))
        told = "answered"
    except ModelError as error:
        told = str(error)
    print(json.dumps([file, told]), flush=True)
"""


def with_nodes(estimator, change):
    """The estimator with other numbers in its tree, which is not asked."""
    tree = estimator.tree_
    state = tree.__getstate__()
    change(state)
    tree.__setstate__(state)
    return estimator


def set_node(field, value, node=0):
    def change(state):
        state["nodes"] = state["nodes"].copy()
        state["nodes"][field][node] = value

    return change


def decision_tree(change):
    return with_nodes(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y), change)


def histogram(field, value, frame=False):
    rows, classes = (with_categories()[:600], is_rich()[:600]) if frame else (X, Y)
    model = HistGradientBoostingClassifier(max_iter=3, random_state=0).fit(rows, classes)
    nodes = model._predictors[0][0].nodes
    inner = np.flatnonzero((nodes["is_leaf"] == 0) & ((nodes["is_categorical"] == 1) | (not frame)))
    nodes[field][inner[0]] = value
    return model


def forest_of_wider_trees():
    forest = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, Y)
    forest.estimators_[1] = DecisionTreeClassifier(max_depth=2).fit(np.c_[X, 5 * Y], Y)
    return forest


def boosting_of_more_trees():
    model = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, Y)
    model.estimators_ = np.repeat(model.estimators_, 50, axis=1)
    return model


def boosting_of_a_changed_tree():
    model = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, Y)
    with_nodes(model.estimators_[1, 0], set_node("right_child", FAR))
    return model


def in_bags():
    model = BaggingClassifier(DecisionTreeClassifier(max_depth=3), 2, random_state=0).fit(X, Y)
    with_nodes(model.estimators_[1], set_node("feature", FAR))
    return model


def isolation():
    model = IsolationForest(n_estimators=3, max_features=0.5, random_state=0).fit(X)
    model.estimators_features_[0] = model.estimators_features_[0][:1]
    return model


def dropping_encoder():
    model = HistGradientBoostingClassifier(max_iter=2).fit(with_categories()[:300], Y)
    name, encoder, columns = model._preprocessor.transformers_[1]
    model._preprocessor.transformers_[1] = name, encoder, np.zeros_like(columns)
    return model


def one_hot(change):
    encoder = OneHotEncoder(handle_unknown="ignore").fit(plain()[list(LEVELS)])
    change(encoder)
    return make_pipeline(encoder, LogisticRegression().fit(np.eye(3), [0, 1, 0]))


def sparse_coefficients():
    model = LogisticRegression().fit(X, Y)
    model.sparsify()
    model.coef_.indices[0] = FAR
    return model


def machine(**changes):
    model = SVC(probability=True, random_state=0).fit(X, Y)
    for name, value in changes.items():
        setattr(model, name, value(getattr(model, name)))
    return model


def neighbours():
    return KNeighborsClassifier(algorithm="kd_tree").fit(X, Y)


TAMPERED = {
    "left child far away": (lambda: decision_tree(set_node("left_child", FAR)), "whose node 0 leads to node 1000000000"),
    "right child far away": (lambda: decision_tree(set_node("right_child", FAR)), "leads to node 1000000000"),
    "a negative child": (lambda: decision_tree(set_node("right_child", -7)), "leads to node -7"),
    "a circle": (lambda: decision_tree(set_node("left_child", 0)), "whose node 0 leads to node 0"),
    "one child": (lambda: decision_tree(set_node("right_child", -1)), "has one child"),
    "a column far away": (lambda: decision_tree(set_node("feature", FAR)), "splits on column 1000000000 of"),
    "a negative column": (lambda: decision_tree(set_node("feature", -2)), "splits on column -2 of"),
    "no nodes": (lambda: decision_tree(lambda state: None), "a tree of 0 nodes"),
    "a forest of wider trees": (forest_of_wider_trees, "columns that is given"),
    "boosting of more trees": (boosting_of_more_trees, "50 trees a stage"),
    "boosting of a changed tree": (boosting_of_a_changed_tree, "leads to node 1000000000"),
    "in bags": (in_bags, "splits on column"),
    "isolation": (isolation, "columns that is given 1"),
    "histogram left": (lambda: histogram("left", FAR), "leads to node 1000000000"),
    "histogram circle": (lambda: histogram("right", 0), "leads to node 0"),
    "histogram column": (lambda: histogram("feature_idx", FAR), "splits on column 1000000000"),
    "histogram bits": (lambda: histogram("bitset_idx", FAR, frame=True), "the categories number 1000000000"),
    "histogram categories": (lambda: histogram("is_categorical", 1), "no column has categories"),
    "histogram encoder": (dropping_encoder, "hands on 4 of 7 columns"),
    "one-hot columns": (lambda: one_hot(lambda one: setattr(one, "_n_features_outs", [1] * 4)), "an encoder that writes"),
    "sparse coefficients": (sparse_coefficients, "outside of its shape|may run code: scipy.sparse"),
    "vectors that are not there": (lambda: machine(_n_support=lambda own: own * 0 + FAR), "counts are not those"),
    "coefficients that are not there": (lambda: machine(_dual_coef_=lambda own: own[:, :2]), "_dual_coef_ of the shape"),
    "narrow vectors": (lambda: machine(support_vectors_=lambda own: own[:, :1].copy()), "support_vectors_ of the shape"),
    "neighbours": (neighbours, "holds types that may run code|checks no bounds"),
}

COUNTS = {"no nodes": 0}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What is said of each file, by a process of its own that may crash; it is started again behind a file that did it."""
    folder, said = tmp_path_factory.mktemp("tampered"), {}
    files = {str(folder / f"{number}.skops"): name for number, name in enumerate(TAMPERED)}
    for file, name in files.items():
        skops_io.dump(TAMPERED[name][0](), file)
        if name in COUNTS:
            write_count(file, COUNTS[name])
    while waiting := [file for file, name in files.items() if name not in said]:
        try:
            printed = subprocess.run([sys.executable, "-c", OPEN, *waiting], capture_output=True, timeout=60).stdout
        except subprocess.TimeoutExpired as late:  # a walk in a circle
            printed = late.stdout or b""
        lines = [json.loads(line) for line in printed.splitlines()]
        assert lines
        said |= {files[file]: words for file, words in lines}
    return said


def write_count(file, count):
    """Say another number of nodes in a file."""
    with zipfile.ZipFile(file) as opened:
        parts = {name: opened.read(name) for name in opened.namelist()}
    found = re.search(rb'"node_count": \{[^{}]*"content": "(\d+)"', parts["schema.json"])
    before, after = parts["schema.json"][: found.start(1)], parts["schema.json"][found.end(1) :]
    with zipfile.ZipFile(file, "w") as opened:
        for name, content in (parts | {"schema.json": before + str(count).encode() + after}).items():
            opened.writestr(name, content)


@pytest.mark.parametrize("name", TAMPERED)
def test_a_changed_file_is_refused_with_a_sentence_and_nothing_crashes(name, told):
    assert re.search(TAMPERED[name][1], told[name]), told[name]


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(),
        RandomForestClassifier(4),
        ExtraTreesClassifier(4),
        GradientBoostingClassifier(n_estimators=3),
        HistGradientBoostingClassifier(max_iter=3),
        AdaBoostClassifier(n_estimators=3),
        BaggingClassifier(DecisionTreeClassifier(), 3, max_features=0.5),
        GradientBoostingClassifier(n_estimators=2, init=RandomForestClassifier(3)),
        SVC(probability=True),
        make_pipeline(KBinsDiscretizer(3), LogisticRegression()),
    ],
)
def test_an_honest_file_is_opened(estimator, tmp_path):
    for classes in (Y, np.arange(len(Y)) % 3):
        fitted = estimator.fit(X, classes)
        skops_io.dump(fitted, file := tmp_path / "model.skops")
        model = Model(file, output=1)
        assert np.array_equal(model.predictor(X), fitted.predict_proba(X))


@pytest.mark.parametrize("options", [{"drop": "first"}, {"min_frequency": 40}, {"drop": "if_binary", "max_categories": 3}])
def test_an_honest_encoder_is_opened(options, tmp_path):
    encoder = OneHotEncoder(handle_unknown="ignore", **options)
    fitted = make_pipeline(encoder, LogisticRegression()).fit(plain()[list(LEVELS)], is_rich())
    skops_io.dump(fitted, file := tmp_path / "model.skops")
    Model(file, output=1).check(FEATURES)


def test_an_honest_regressor_is_opened(tmp_path):
    for fitted in (SVR().fit(X, Y), IsolationForest(n_estimators=3, max_features=0.5).fit(X)):
        skops_io.dump(fitted, file := tmp_path / "model.skops")
        Model(file, range=(-9, 9))


def test_sparse_matrices_are_looked_into_where_skops_opens_them():
    sparse = LogisticRegression().fit(scipy.sparse.csr_matrix(X), Y)
    sparse.sparsify()
    refuse_unsound(sparse, "model.skops")
    with pytest.raises(ModelError, match=r"'model.skops' holds a sparse matrix with an index outside of its shape"):
        refuse_unsound(sparse_coefficients(), "model.skops")
