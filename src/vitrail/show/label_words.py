"""The questions of NIST SP 800-226 (Guidelines for Evaluating Differential Privacy Guarantees), and what is true of Vitrail.

Sentences about the library are those of docs/guarantees.md, word for word (tests/show/test_label.py compares them): a limit
is written down once, there. What is true of one result, pane or account is said by ``show.label``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Tier: TypeAlias = Literal["guarantee", "mechanism", "deployment"]


class LabelQuestion(NamedTuple):
    """A question: its name in files, what is asked, and what is true of everything that Vitrail releases."""

    name: str
    asked: str
    tier: Tier
    library: tuple[str, ...] = ()


NEIGHBOURS = {
    "add-remove": "the dataset with the row against the dataset without it.",
    "replace-one": (
        "the dataset with the row against the dataset with some other row in its place. The number of rows is then not "
        "protected."
    ),
}
NEIGHBOURS_OF_PERSONS = {
    "add-remove": "the dataset with all rows of a person against the dataset without them.",
    "replace-one": (
        "the dataset with all rows of a person against the dataset with those of some other person in their place. The "
        "number of people is then not protected."
    ),
}
READ_OFF_ROWS = "Read off the rows by the owner's decision, free and exact; no promise covers these facts:"
FOR_THE_OWNER = "Not answered: Vitrail does not know it, the owner of the data does."
"""Where nothing is known; ``answers=`` puts the owner's own words in its place."""

QUESTIONS = (
    LabelQuestion("privacy-parameters", "Epsilon and delta", "guarantee"),
    LabelQuestion(
        "unit-of-privacy",
        "The unit of privacy",
        "guarantee",
        (
            "The unit is one row, or all rows of one person: because rows say whose they are (person=), or because the "
            "owner declares how many a person has at most (rows_per_person=). Without either, somebody with k rows is "
            "protected by a guarantee k times as weak in mu (k * mu).",
        ),
    ),
    LabelQuestion("neighbours", "The neighbour relation", "guarantee"),
    LabelQuestion(
        "protects",
        "Whose rows are protected",
        "guarantee",
        (
            "If those rows, or others that need protection, also trained the model, then the model's own outputs may reveal "
            "them, and no explainer can undo that",
        ),
    ),
    LabelQuestion(
        "composition",
        "Composition, and the budget",
        "guarantee",
        (
            "A question is refused once the sum of all mu squared would pass the mu squared of the budget. Such a filter is "
            "sound although each question may depend on all earlier answers.",
        ),
    ),
    LabelQuestion(
        "post-processing",
        "What further use reveals",
        "guarantee",
        (
            "Whatever is computed from releases alone (an explanation, a plot, a report, a saved file) is covered and costs "
            "nothing more; a new question to the data is charged.",
        ),
    ),
    LabelQuestion("mechanism", "The mechanisms", "mechanism"),
    LabelQuestion(
        "public",
        "What is taken to be public",
        "mechanism",
        (
            "What is declared is public. A schema, a row count or a list of classes copied from the rows is a leak that no "
            "mechanism here sees.",
        ),
    ),
    LabelQuestion(
        "utility",
        "How accurate it is",
        "mechanism",
        ("Bands are not part of the promise. How often they hold is measured (bands), on few datasets.",),
    ),
    LabelQuestion(
        "bias",
        "Which rows count",
        "mechanism",
        (
            "A row counts where the schema can read all of it: a missing value follows its column's policy",
            "On a private row, what raises an exception, leaves its declared range or returns NaN is clipped or counts "
            "zero, and nobody is told.",
        ),
    ),
    LabelQuestion(
        "hyperparameters",
        "How bounds and other settings were chosen",
        "mechanism",
        (
            "For the same reason everything else that a program might read off the data is declared beforehand or paid for: "
            "bounds and categories (the schema), classes, bin edges, clipping bounds, the number of iterations.",
        ),
    ),
    LabelQuestion(
        "floating-point",
        "Floating-point arithmetic",
        "mechanism",
        (
            "Sums, those of training included, are sums of integers on a declared grid, and the noise is rounded to the "
            "same grid, so the published attacks on floating-point noise and summation do not apply to releases.",
        ),
    ),
    LabelQuestion(
        "randomness",
        "Where randomness comes from",
        "mechanism",
        (
            "Randomness comes from the operating system. A machine whose generator is broken or was restored from a "
            "snapshot in the middle of a draw gives no guarantee.",
        ),
    ),
    LabelQuestion(
        "trust-model",
        "The trust model",
        "deployment",
        (
            "The promise is made to the people whose rows these are. It holds against the analyst who asks, all analysts "
            "together, and everyone who reads what they publish. It is not a promise against the owner of the data, who has "
            "the rows anyway.",
        ),
    ),
    LabelQuestion(
        "side-channels",
        "Timing and other side channels",
        "deployment",
        (
            "A release takes as long as its model does, and that can depend on rows.",
            "Do not let untrusted analysts measure fine timings; answer in fixed time slots if they could.",
            "Memory use, cache behaviour, power, page faults, swap and network traffic of the machine are not covered.",
        ),
    ),
    LabelQuestion(
        "access-control",
        "Security and access control",
        "deployment",
        (
            "Rows are in the process's memory while a vault is open. A debugger, a core dump, a swap file or other code in "
            "the same Python process can read them: the boundary between packages guards against mistakes, not against "
            "hostile code.",
            "The ledger is a file of the owner's. It is append-only and hash-chained, so a changed, missing or added entry "
            "is found, and one file holds everything after each charge.",
        ),
    ),
    LabelQuestion("data-collection", "Data collection exposure", "deployment"),
)
