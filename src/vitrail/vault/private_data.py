"""Private rows behind a small face: ask, quote, budget. Nothing here returns a row."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NoReturn, TypeAlias, overload

from .. import _checks
from ..accounting import Basis, Cost, Event, JsonValue
from ..accounting.guarantee import Budget, Guarantee, emptiness
from ..accounting.releases import Release
from ..errors import InvalidInput
from ..ledger import Charge, Part, Replay, Reservation, Statement, open_ledger
from ..ledger.high_water import check_other_budgets
from ..nothing_escapes import answering, opening, stop_if_interrupted
from ..progress import progress
from ..schema import Schema
from .engines.choice import open_with_engine
from .engines.row_pass import RowPass
from .parts import PartRows, digest_of, identity_of, partition
from .public_facts import checked_facts
from .questions.question import Answer, Plan, Question
from .quote import Priced, Quote, Tag, price_tag
from .rows.predictions import Predictions
from .sums.device import check_device
from .training.choice import MapChoice, check_training, trained
from .training.plan import MapTraining
from .training.run import training_rows

KEY_FORMAT = 1
STATE = "account analyst delta engine facts ledger name part past predictions rows version"
Given: TypeAlias = float | None
Goal: TypeAlias = str | None


class PrivateData:
    """Private rows, their public description and their budget.

    Parameters
    ----------
    rows : data frame, array, path, Table, dataset or function
        Anything narwhals reads (pandas, Polars, PyArrow), a dictionary of columns, a NumPy array with columns in schema
        order; or where the rows are, to be streamed: the path of a Parquet or CSV file or of a folder of Parquet files, a
        list of paths, a :class:`Table`, a ``pyarrow.dataset.Dataset``, a ``datasets.Dataset``, a plain scan of Polars, a
        function that takes a list of columns and returns a ``pyarrow.RecordBatchReader``; or a plain scan of Spark, which
        answers where its rows are.
    schema : Schema
        Public bounds and levels. Never read off the rows.
    name : str
        The dataset's name in the bill.
    n_rows_public : int
        The row count everybody may know: sums are divided by it. Declared by the owner, never taken from the rows. Rows,
        not people, also with ``rows_per_person``; with ``person``, people.
    budget : Budget
        The most that may ever be spent on these rows, fixed when the account is first opened.
    target : str, optional
        The column to predict; it is no feature.
    neighbours : {"add-remove", "replace-one"}
        What the promise is about: a row more or less, or a row exchanged; a person's rows, where there may be several.
    rows_per_person : int
        The most rows that one person has. The promise is then about all rows of any one person, and noise is so many times
        larger at the same price. Declared, never checked: see docs/guarantees.md for somebody who has more.
    person : str, optional
        The column that names whose row it is, no column of the schema. The promise is then about all rows of any one person,
        of any number, at no more noise: a person counts once, each of j rows as a j-th, one without a name not at all.
    ledger : str, Path, SqlLedger, optional
        Where the bill is kept: ``"sqlite:///ledger.db"``, a path ending in ``.db``. If not given, the bill ends with the
        process, which is warned of once; ``"memory"`` says that it may.
    analyst : str
        Who asks. Caps may be set per analyst.
    account : str, optional
        The account that pays; the dataset's name if not given. Datasets that share rows must share an account.
    version : str
        Change it when the rows change: stored releases of another version are not replayed.
    block_rows : int, optional
        How many rows a function on rows is shown at a time.
    threads : int
        How many blocks are worked on at once; sums are the same for any number.
    workers : int
        How many processes walk over the rows, each over a share; sums are the same for any number.
    device : str
        "cuda": large exact products and torch models are worked out there; "auto": where there is one. Sums are the same.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"age": np.full(400, 50.0), "smoker": np.array(["yes"] * 100 + ["no"] * 300)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=400, budget=vt.Budget(1.0, 1e-6))
    >>> release = data.ask(vt.BoundedSum(lambda block: block.features, size=3, l2_bound=1.5), epsilon=0.5)
    >>> round(data.budget.spent_epsilon, 3)
    0.5
    >>> data
    PrivateData('patients', 2 columns, declared rows 400)
    """

    __slots__ = tuple(f"_PrivateData__{name}" for name in STATE.split())

    def __init__(
        self,
        rows: object,
        schema: Schema,
        *,
        name: str,
        n_rows_public: int,
        budget: Budget,
        target: str | None = None,
        neighbours: str = "add-remove",
        rows_per_person: int = 1,
        person: str | None = None,
        ledger: object = None,
        analyst: str = "owner",
        account: str | None = None,
        version: str = "1",
        block_rows: int | None = None,
        threads: int = 1,
        workers: int = 1,
        device: str = "cpu",
    ) -> None:
        if not isinstance(budget, Budget):
            raise InvalidInput(f"budget is {budget!r}; declare one: vt.Budget(epsilon=1.0, delta=1e-6)")
        for what, text in (("name", name), ("analyst", analyst), ("version", version), ("account", account or name)):
            _checks.text(what, text)
        about = (schema, target, n_rows_public, neighbours, block_rows, threads, rows_per_person, person)
        self.__facts = checked_facts(*about, check_device(device))
        if (why := emptiness(budget, self.__facts.n_rows_public)) is not None:
            warnings.warn(f"{name}: {why}.", stacklevel=2)
        self.__name, self.__analyst, self.__version = name, analyst, version
        self.__part: Part | None = None
        self.__past: tuple[Statement, Mapping[str, bytes | None]] | None = None
        count = _checks.whole("workers", workers, most=256, of="a PrivateData")
        self.__rows, self.__engine = opening(lambda: open_with_engine(rows, schema, person, count))
        self.__predictions = Predictions(self.__facts)
        check_other_budgets(ledger, account, name, self.__rows.place)
        self.__ledger = open_ledger(ledger)  # type: ignore[arg-type]
        self.__account, self.__delta = account or name, budget.question_delta
        self.__ledger.open_account(self.__account, budget, self.__facts.neighbours, data=self.__rows.place)

    def __repr__(self) -> str:
        return f"PrivateData({self.__name!r}, {len(self.schema)} columns, declared rows {self.n_rows_public})"

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("PrivateData cannot be pickled or copied: it would take the rows out of the vault")

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.__name

    @property
    def schema(self) -> Schema:
        """The declared columns, the target included."""
        return self.__facts.schema

    @property
    def feature_schema(self) -> Schema:
        """The declared columns without the target: what models see."""
        return self.__facts.feature_schema

    @property
    def target(self) -> str | None:
        """The name of the target column."""
        return self.__facts.target

    @property
    def n_rows_public(self) -> int:
        """The declared row count."""
        return self.__facts.n_rows_public

    @property
    def neighbours(self) -> str:
        """The neighbour relation of every promise; where a person may have several rows, it says how many."""
        return self.__facts.neighbours

    @property
    def rows_per_person(self) -> int:
        """How many rows one person has at most that count one each; 1 also where ``person`` names whose row it is."""
        return self.__facts.rows_per_person

    @property
    def person(self) -> str | None:
        """The column that names whose row it is, if any."""
        return self.__facts.person

    @property
    def delta(self) -> float:
        """The delta at which ``epsilon=`` of a question is understood."""
        return self.__delta

    @property
    def budget(self) -> Statement:
        """Spent, remaining, and the bill, whose lines are read when they are asked for."""
        return self.__ledger.statement(self.__account) if self.__past is None else self.__past[0]

    @property
    def analyst(self) -> str:
        """Who asks."""
        return self.__analyst

    @property
    def part(self) -> Part | None:
        """Which part of the rows this is; None for all of them."""
        return self.__part

    def parts(self, count: int, *, name: str) -> tuple[PrivateData, ...]:
        """The rows in disjoint parts, each to be asked like data of its own; together they cost as much as the dearest.

        A row's part is a public hash of its own values: see ``vault/parts.py`` for the argument. Equal rows share a part.

        Parameters
        ----------
        count : int
            How many parts, at least 2. The declared row count of each is this one's, divided.
        name : str
            What the bill calls the partition. Another name or count is another partition, and the two add up.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
        >>> rows = {"age": np.linspace(0, 100, 900)}
        >>> data = vt.PrivateData(rows, schema, name="ages", n_rows_public=900, budget=vt.Budget(1, 1e-6))
        >>> question = vt.BoundedSum(lambda block: block.features, 1, 1.0)
        >>> answers = [part.ask(question, epsilon=0.5) for part in data.parts(3, name="thirds")]
        >>> round(data.budget.spent_epsilon, 3), [line.part.index for line in data.budget.parts]
        (0.5, [0, 1, 2])
        """
        described = partition(self.__facts, self.__name, self.__version, name=name, count=count, of=self.__part)
        return tuple(self.__of(part) for part in described)

    def __of(self, part: Part) -> PrivateData:
        """The same data, less the rows of other parts."""
        made = self.__view()
        made.__facts = replace(self.__facts, n_rows_public=max(1, round(self.n_rows_public / part.count)))
        made.__name, made.__part, made.__predictions = f"{self.__name}, {part}", part, Predictions(made.__facts)
        made.__rows = PartRows(self.__rows, self.schema.n_columns, name=part.name, index=part.index, count=part.count)
        return made

    def for_analyst(self, analyst: str) -> PrivateData:
        """The same rows, asked by somebody else: a view, no copy. Their questions go on their line of the bill.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
        >>> data = vt.PrivateData({"age": np.arange(9.0)}, schema, name="nine", n_rows_public=10, budget=vt.Budget(1, 1e-6))
        >>> _ = vt.marginals(data.for_analyst("alice"), epsilon=0.5)
        >>> round(data.budget.of_analyst("alice").spent_epsilon, 3)
        0.5
        """
        (made := self.__view()).__analyst = _checks.text("analyst", analyst)
        return made

    def as_it_was(self, statement: Statement, kept: Mapping[str, bytes | None]) -> PrivateData:
        """A view for quotes: with the account, and what was kept, as they stood at one moment."""
        (made := self.__view()).__past = statement, kept
        return made

    def __view(self) -> PrivateData:
        made = PrivateData.__new__(PrivateData)
        for name in PrivateData.__slots__:
            setattr(made, name, getattr(self, name))
        return made

    def keep(self, name: str, content: bytes) -> None:
        """Keep what was made from releases alone beside the bill, free, for the analyst who made it.

        It outlives the process with the ledger; the latest content under a name holds. Nothing but post-processing of
        releases belongs here: the ledger is not private.
        """
        self.__ledger.keep(self.__account, analyst=self.__analyst, name=self.__kept_name(name), content=content)

    def kept(self, name: str) -> bytes | None:
        """What this analyst keeps under ``name``; None where there is nothing."""
        if self.__past is not None:
            return self.__past[1].get(name)
        return self.__ledger.kept(self.__account, analyst=self.__analyst, name=self.__kept_name(name))

    def __kept_name(self, name: str) -> str:
        if not isinstance(name, str) or not 0 < len(name) <= 100:
            raise InvalidInput(f"the name to keep something under is {name!r}; it must be text of 1 to 100 characters")
        return f"{name} [{digest_of(self.__identity())}]"

    def cap(self, analyst: str, budget: Budget) -> None:
        """Limit what one analyst may learn, within the dataset's own budget."""
        self.__ledger.cap_analyst(self.__account, analyst, budget)

    @overload
    def quote(self, question: Question, *, epsilon: Given = None, mu: Given = None) -> Quote: ...

    @overload
    def quote(
        self, question: Priced[Tag], *,
        epsilon: Given = None, mu: Given = None, half_width: Given = None, verdict: Goal = None,
    ) -> Tag: ...  # fmt: skip

    def quote(
        self, question: Question | Priced[Tag], *,
        epsilon: Given = None, mu: Given = None, half_width: Given = None, verdict: Goal = None,
    ) -> Quote | Tag:  # fmt: skip
        """What a question or an explainer would cost and how noisy it would be. Reads no row and charges nothing.

        ``half_width`` asks an explainer the other way round: what would bands this narrow cost; and ``verdict="clear"`` what
        an answer would cost that stands out of its noise.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
        >>> data = vt.PrivateData({"age": np.arange(9.0)}, schema, name="nine", n_rows_public=10, budget=vt.Budget(1, 1e-6))
        >>> print(data.quote(vt.BoundedSum(lambda block: block.features, 1, 1.0), epsilon=2.0))
        ... # doctest: +ELLIPSIS
        epsilon 2 at delta 1e-06 (mu 0.448...). Noise: ... It does not fit: the largest question ... is epsilon 1.
        """
        if isinstance(question, Priced):
            return question.quote(epsilon=epsilon, mu=mu, half_width=half_width, verdict=verdict)
        if half_width is not None or verdict is not None:
            raise InvalidInput(
                "half_width= and verdict= are for explainers, which have bands; give a question epsilon= or mu="
            )
        plan = self.__plan(question, epsilon, mu)
        return self.price_tag(plan.event.cost(), plan.sigma)

    def price_tag(self, cost: Cost, sigma: float | None = None) -> Quote:
        """What this cost would promise, add to the account, and whether account and cap can pay for it now."""
        return price_tag(self.budget, cost, sigma, self.n_rows_public, analyst=self.__analyst, part=self.__part)

    def ask(self, question: Question, *, epsilon: Given = None, mu: Given = None) -> Release:
        """Answer a question: probe it on public rows, charge the ledger, then draw noise, then read the rows.

        Parameters
        ----------
        question : BoundedSum, CellCounts, GramSum, ProductSum, Select, GroupedSum or LaplaceSum
            What to ask.
        epsilon : float, optional
            This question's own epsilon, at the account's delta.
        mu : float, optional
            The price as GDP, instead of ``epsilon``. A LaplaceSum has none.

        Returns
        -------
        Release

        Raises
        ------
        BudgetExceeded
            If too little is left. Nothing was charged, and a cheaper question may still fit.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
        >>> data = vt.PrivateData({"age": np.arange(90.0)}, schema, name="ages", n_rows_public=90, budget=vt.Budget(1, 1e-6))
        >>> question = vt.BoundedSum(lambda block: block.features, size=1, l2_bound=1.0, key="mean age")
        >>> first, again = data.ask(question, epsilon=0.6), data.ask(question, epsilon=0.6)
        >>> again.replayed, bool(first.value == again.value)
        (True, True)
        """
        plan = self.__plan(question, epsilon, mu)
        return self.__answer(question, plan, self.__key(question, plan), question.label)

    def __answer(
        self, question: Question, plan: Plan, key: str | None, label: str | None,
        reservation: Reservation | None = None, booked: Cost | None = None,
    ) -> Release:  # fmt: skip
        self.__predictions.begin()
        block_rows = question.probe(self.__facts, self.__predictions)
        if self.__engine is not None and not self.__is_stored(key):
            block_rows = self.__engine.prepare(plan, self.__facts, block_rows)
        described = {"dataset": self.__name, **question.describe(), **({"label": label} if label else {})}
        charge = self.__charge(plan.event, described, key, reservation, booked)
        if isinstance(charge, Replay):
            return Release.from_bytes(charge.release, replayed=True)
        rows = RowPass(self.__rows, self.__facts, self.__predictions, self.__engine)
        answer = plan.shape(answering(lambda: plan.answers(rows, block_rows, draws=1)[0]))
        promise = Guarantee.of(Basis.new(charge.cost), self.delta, self.__facts.neighbours)
        return self.__stored(charge, answer, plan.sigma, promise, question.describe())

    def __charge(
        self, event: Event, question: dict[str, JsonValue], key: str | None,
        reservation: Reservation | None = None, booked: Cost | None = None,
    ) -> Charge | Replay:  # fmt: skip
        """Look at what is plain about the files before a row is, then charge; a stored release needs no files."""
        if not self.__is_stored(key):
            opening(self.__rows.check)
        if isinstance(self.__rows, PartRows) and self.__rows.changed():
            raise InvalidInput(
                "the files were written after they were split, and a row that changed may have changed parts; open the data "
                "again under a new version= and split that. Nothing was charged"
            )
        return self.__ledger.charge(
            self.__account, analyst=self.__analyst, event=event, question=question, key=key, part=self.__part,
            reservation=reservation, booked=booked,
        )  # fmt: skip

    def __is_stored(self, key: str | None) -> bool:
        return key is not None and self.__ledger.is_stored(self.__account, key=key)

    def __stored(
        self, charge: Charge, answer: Answer, sigma: float | None, promise: Guarantee, question: dict[str, JsonValue]
    ) -> Release:
        """The release that is handed out: a racer's, if it was stored first."""
        parts = MappingProxyType(answer.parts)
        release = Release(answer.value, sigma, charge.cost, promise, question, self.__name, parts)
        stored = self.__ledger.store(charge, computed := release.to_bytes())
        return release if stored == computed else Release.from_bytes(stored, replayed=True)

    # --- conversations (explain/recipe.py) ---------------------------------------------------------------------------

    def has_begun(self, recipe: str) -> bool:
        """Whether a conversation of this name was begun over these rows, by anybody."""
        return self.__ledger.has_begun(self.__account, recipe=self.__named(recipe=recipe))

    def reserve(self, cost: Cost, *, recipe: str | None, label: str) -> Reservation:
        """Set the whole price of a conversation aside, against account, part and cap, or refuse it. No row is read."""
        if recipe is None or not self.has_begun(recipe):
            opening(self.__rows.check)  # a source that is gone must not keep a price set aside
        return self.__ledger.reserve(
            self.__account,
            analyst=self.__analyst,
            cost=cost,
            recipe=None if recipe is None else self.__named(recipe=recipe),
            question={"dataset": self.__name, "question": "recipe", "label": label},
            part=self.__part,
        )

    def ask_reserved(
        self, reservation: Reservation, question: Question, *, price: float, booked: Cost, step: int, label: str
    ) -> Release:
        """Answer a step of a conversation, booked against its reservation; a step that was answered before is replayed.

        A question with a key of its own is known by that; any other by the conversation and its step. ``price`` is in mu, or
        in epsilon where the question is; ``booked`` the step's share in whole units, of which it may miss the last.
        """
        plan = question.plan(price, self.__facts)
        key = self.__key(question, plan)
        if key is None and reservation.recipe is not None:
            key = digest_of({"format": KEY_FORMAT, "recipe": reservation.recipe, "step": step})
        return self.__answer(question, plan, key, label, reservation, booked)

    def finish(self, reservation: Reservation) -> None:
        """The conversation is over: what it did not book is given back."""
        self.__ledger.finish(reservation)

    def train(self, training: MapTraining | MapChoice, *, device: str = "auto") -> Release:
        """Train locally linear maps, or choose among runs: charge the training purse, then read the rows.

        ``vt.LocallyLinearClassifier`` and ``vt.tune_locally_linear`` ask it. The release of a run has the parts ``"maps"``
        and ``"biases"``; that of a choice is the number of the chosen run. Asking again is charged again.
        """
        check_training(training, self.__facts)
        device = check_device(device)
        if self.__engine is not None:
            self.__engine.prepare(training, self.__facts, self.__facts.block_rows)
        charge = self.__charge(training.event, training.describe(), None)
        assert not isinstance(charge, Replay)
        with progress("training", training.event.steps) as advance:

            def step(units: int) -> None:
                advance(units)
                stop_if_interrupted()

            def run() -> Answer:
                rows = training_rows(self.__rows, self.__facts, training.curves)
                return trained(training, *rows, device=device, neighbours=self.neighbours, advance=step)

            answer = answering(run)
        basis = Basis.new(charge.cost)
        promise = Guarantee(training.epsilon, training.delta, 0.0, self.__facts.neighbours, "training-data", basis)
        return self.__stored(charge, answer, training.sigma, promise, training.describe())

    def __plan(self, question: Question, epsilon: Given, mu: Given) -> Plan:
        if not isinstance(question, Question):
            raise InvalidInput(
                "a question is a BoundedSum, CellCounts, GramSum, ProductSum, Select, GroupedSum or LaplaceSum, not "
                f"{type(question).__name__}"
            )
        return question.plan(question.price(epsilon, mu, self.delta), self.__facts)

    def __key(self, question: Question, plan: Plan) -> str | None:
        if question.key is None:
            return None
        cost = plan.event.cost()
        price = {"pico_epsilon": cost.pico_epsilon} if question.in_epsilon else {"pico_mu_squared": cost.pico_mu_squared}
        return self.__named(question=question.describe(), identity=question.key, **price)

    def __named(self, **fields: JsonValue) -> str:
        """A name for something about these rows."""
        return digest_of({**self.__identity(), "format": KEY_FORMAT, **fields})

    def __identity(self) -> dict[str, JsonValue]:
        return identity_of(self.__facts, self.__name, self.__version, self.__part)
