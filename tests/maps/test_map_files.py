"""Trained maps in files: read back bit for bit, and refused where they are no longer whole."""

import json

import numpy as np
import pandas as pd
import pytest

import vitrail as vt
from vitrail.errors import DamagedFile

SCHEMA = vt.Schema({"age": vt.Numeric(0, 100, codes=(-9,)), "smoker": vt.Categorical(["no", "yes"])})


def frame(rows, seed=0):
    draw = np.random.default_rng(seed)
    return pd.DataFrame({"age": draw.uniform(0, 100, rows), "smoker": draw.choice(["no", "yes"], rows)})


def trained(**settings):
    people = frame(400)
    model = vt.LocallyLinearClassifier(
        4.0, schema=SCHEMA, classes=["ill", "well"], n_rows_public=400, steps=20, progress=False, device="cpu", **settings
    )
    return model.fit(people, np.where(people["age"] > 60, "ill", "well"))


@pytest.mark.parametrize("settings", [{"n_maps": 2}, {"n_maps": 1, "curves": 0}, {"n_maps": 2, "row_length": 1.0}])
def test_what_is_read_predicts_and_explains_as_what_was_saved(tmp_path, settings):
    model = trained(**settings)
    back = vt.load_maps(vt.save_maps(model, tmp_path / "a.maps"))
    asked = frame(50, seed=1)
    np.testing.assert_array_equal(back.predict_proba(asked), model.predict_proba(asked))
    np.testing.assert_array_equal(back.explain_local(asked).values, model.explain_local(asked).values)
    assert back.guarantee_ == model.guarantee_
    assert back.predict(asked).tolist() == model.predict(asked).tolist()
    assert vt.save_maps(back, tmp_path / "b.maps").read_bytes() == (tmp_path / "a.maps").read_bytes()


def test_pictures_and_arrays_are_kept_as_well(tmp_path):
    draw = np.random.default_rng(0)
    pictures, labels = draw.uniform(0, 1, (60, 64)), np.arange(60) % 3
    filters = vt.PictureFilters((8, 8), size=4)
    model = vt.LocallyLinearClassifier(
        8.0, n_maps=2, filters=filters, bounds=(0, 1), steps=5, progress=False, device="cpu", classes=[0, 1, 2]
    ).fit(pictures, labels)
    back = vt.load_maps(vt.save_maps(model, tmp_path / "a.maps"))
    np.testing.assert_array_equal(back.predict_proba(pictures), model.predict_proba(pictures))
    assert back.filters == filters
    assert back.classes_.tolist() == [0, 1, 2]
    with pytest.raises(vt.errors.InvalidInput, match="outside the declared bounds"):
        back.predict(pictures + 1)


def test_no_noise_is_said_after_reading_too(tmp_path):
    people = frame(100)
    model = vt.LocallyLinearClassifier(float("inf"), schema=SCHEMA, n_maps=1, steps=3, progress=False, device="cpu")
    model.fit(people, people["age"] > 50)
    back = vt.load_maps(vt.save_maps(model, tmp_path / "a.maps"))
    assert np.isinf(back.guarantee_.epsilon)
    assert back.classes_.tolist() == [False, True]


def test_a_model_that_was_not_trained_is_not_saved(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        vt.save_maps(vt.LocallyLinearClassifier(), tmp_path / "a.maps")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda told: told.update(format="something else"), "is no file of maps"),
        (lambda told: told.pop("biases"), "damaged"),
        (lambda told: told["maps"][0][0].pop(), "damaged"),
        (lambda told: told["maps"][0][0].__setitem__(0, "x"), "damaged"),
        (lambda told: told.update(maps=[]), "damaged"),
        (lambda told: told.update(beta=None), "damaged"),
        (lambda told: told.update(classes=["well", "ill"]), "classes"),
        (lambda told: told.update(promise={}), "damaged"),
        (lambda told: told["curves"][0].update(feature=99), "damaged"),
        (lambda told: told.update(schema={"columns": 3}), "damaged"),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path, change, message):
    told = json.loads(vt.save_maps(trained(n_maps=1), tmp_path / "a.maps").read_text())
    change(told)
    (tmp_path / "b.maps").write_text(json.dumps(told))
    with pytest.raises(DamagedFile, match=message):
        vt.load_maps(tmp_path / "b.maps")


def test_what_is_not_there_or_no_json_is_refused(tmp_path):
    with pytest.raises(DamagedFile, match="cannot be read"):
        vt.load_maps(tmp_path / "nothing.maps")
    (tmp_path / "a.maps").write_bytes(b"\x80pickled")
    with pytest.raises(DamagedFile, match="the file of maps"):
        vt.load_maps(tmp_path / "a.maps")
