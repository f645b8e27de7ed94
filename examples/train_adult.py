"""Train what somebody else would have trained, a pipeline on census rows, and pick a person: for the README's commands."""

import json
from pathlib import Path

import pandas as pd
import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

DATA = Path(__file__).parent / "data"

rows = pd.read_csv(DATA / "adult.csv")
people, income = rows.drop(columns="income"), rows["income"]
encode = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
codes = make_column_transformer((encode, make_column_selector(dtype_exclude="number")), remainder="passthrough")
model = make_pipeline(codes, HistGradientBoostingClassifier(max_iter=50, random_state=0)).fit(people, income)

skops.io.dump(model, "model.skops")
Path("person.json").write_text(json.dumps(people.iloc[0].to_dict(), default=int))
print("model.skops and person.json were written.")
