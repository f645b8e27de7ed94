"""An explainer is a conversation with the vault, written once.

A *recipe* is a generator: it yields an :class:`Ask` (a question and its share of the price), receives the :class:`Release`,
plans the next question from it, and returns a result. Who is on the other side decides what that means:

===================  ================================================================================================
the vault            ``Conversation.explain``: the whole price is reserved against account, part and cap in one transaction;
                     every question is booked against it, looked at, stored, delivered
a stand-in           ``Conversation.quote``: the same result and bands, from nobody's rows, free; from few rows a rehearsal
an auditor's rows    ``Conversation.on``: the real mechanisms on rows of the auditor's own, without a ledger
a service            no conversation: the explainer is described to whoever holds the data (``elsewhere``)
===================  ================================================================================================

*The price* is a whole number of the ledger's units (trillionths of mu squared, or of epsilon: ``Currency``). A question gets
the units between the running sums of shares before and after it (:class:`Split`), so the questions of a recipe whose shares
add up to 1 cost exactly the price, and never more on any path. What a finished recipe did not book is given back.
*Resuming.* A recipe is deterministic given its answers. Its identity (what is explained, options, points, model, price,
dataset) names the conversation, and the step number names the question in it. A stored answer of that step is delivered
whatever the last bits of the question are this time; a step that was booked and not stored is computed again with fresh
noise, because nothing of it had left the vault. A question with a ``key`` of its own (histograms: they are about no model)
is known by that key instead, so that other recipes at the same price use the same answer.

Tests: tests/explain/test_recipe.py, test_recipe_crashes.py, and the table of explainers, test_every_explainer.py.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar, cast

import numpy as np

from .. import _checks
from .._types import Floats
from ..accounting import Cost, JsonValue, epsilon_of, rounded_up
from ..accounting.cost import PICO
from ..accounting.guarantee import Guarantee
from ..accounting.neighbours import Neighbours, rows_per_person_of, sensitivity_factor
from ..accounting.releases import Release
from ..errors import InvalidInput, ModelError, VitrailError
from ..model import Model
from ..model.raised import raised_by_a_model
from ..progress import one_bar
from ..schema import Schema
from .elsewhere import elsewhere
from .row_count import warn_of_contradiction
from .sampled import sampled_question
from .split import MU, Currency, Split, price_of_units

if TYPE_CHECKING:
    from ..results.marginals import Marginals
    from ..vault import PrivateData, PublicRows, Question
    from .quoted import Quoted

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

PUBLIC_ROWS = 10**6
"""No limit to how many public rows a recipe asks the model about, beyond its own."""
N_CORNERS = 3
"""Probe rows of a schema at the beginning that are no draws."""
QUOTE_DRAWS = 7
"""Bands of a single query point vary from draw to draw more than those of whole curves."""
REHEARSAL_ROWS, REHEARSED_PUBLIC_ROWS = 64, 64
"""Rows of the stand-in that a recipe is tried on before its first charge, and those that the model is asked about."""


@dataclass(frozen=True)
class Ask:
    """A question of a recipe, and its share of the recipe's price (of mu squared).

    Attributes
    ----------
    question : Question
        What is asked of the vault.
    share : float
        Of the price of the recipe that yields it; all shares of a recipe add up to at most 1.
    label : str
        What the bill calls it.
    """

    question: Question
    share: float
    label: str = ""


class Promised(Protocol):
    """Anything that has a price and carries a promise: a release, or a result that was made of releases."""

    @property
    def cost(self) -> Cost:
        """What was charged for it."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """The promise."""
        ...


Recipe: TypeAlias = Generator[Ask, Release, R]
Given: TypeAlias = float | None
"""A price or an accuracy: one of several is given."""
Goal: TypeAlias = str | None


def scaled(inner: Recipe[R], share: float, label: str = "") -> Recipe[R]:
    """A recipe inside another one: its questions take their shares of ``share``, and ``label`` if they have none.

    The inner recipe must have been made with ``terms.scaled(share)``, so that it plans with what it will get.

    Examples
    --------
    >>> def inner():
    ...     yield Ask("a question", 0.5)
    ...     return "done"
    >>> next(scaled(inner(), 0.5)).share
    0.25
    """
    try:
        ask = next(inner)
        while True:
            ask = inner.send((yield replace(ask, share=ask.share * share, label=ask.label or label)))
    except StopIteration as stop:
        return cast("R", stop.value)


def sampled(recipe: Recipe[R], rate: float) -> Recipe[R]:
    """The same recipe, every question of which is about a sample of the rows; one that has a smaller rate keeps it."""
    try:
        ask = next(recipe)
        while True:
            ask = recipe.send((yield replace(ask, question=sampled_question(ask.question, rate))))
    except StopIteration as stop:
        return cast("R", stop.value)


@dataclass(frozen=True)
class Terms:
    """What a recipe may know of the other side: public facts, and its price.

    Attributes
    ----------
    dataset : str
        Its name.
    schema : Schema
        All columns, the target included.
    target, n_rows_public, neighbours
        As declared: the column that is no feature, the row count, the relation (``accounting.neighbours``).
    delta : float
        At which epsilons are stated.
    mu, epsilon : float
        The price of the whole recipe, in the currency of its questions; the other is 0.
    public_rows : int
        About how many public rows the model may be asked at most, in each step of the post-processing. Small in a rehearsal.
    sampling_rate : float
        With which probability each row is looked at, anew for every question: answers, and their noise, are scaled by one
        over it, and what the choice of the rows adds is the recipe's to know.
    """

    dataset: str
    schema: Schema
    target: str | None
    n_rows_public: int
    neighbours: Neighbours
    delta: float
    mu: float
    public_rows: int = PUBLIC_ROWS
    sampling_rate: float = 1.0
    epsilon: float = 0.0

    @classmethod
    def of(cls, data: PrivateData, mu: float) -> Terms:
        """The terms of a private dataset at a price."""
        return cls(data.name, data.schema, data.target, data.n_rows_public, data.neighbours, data.delta, mu)

    @property
    def feature_schema(self) -> Schema:
        """The columns that models see: all but the target."""
        return self.schema if self.target is None else self.schema.without(self.target)

    @property
    def mu_of_a_row(self) -> float:
        """What the price is worth to sums that plan their own noise: it has to cover all rows of a person, and a sample."""
        return self.mu * self.sampling_rate / rows_per_person_of(self.neighbours)

    def scaled(self, share: float) -> Terms:
        """The terms of a recipe inside this one, for ``share`` of mu squared."""
        return replace(self, mu=self.mu * math.sqrt(share), epsilon=self.epsilon * share)

    def noise_of_mean(self, share: float = 1.0) -> float:
        """Noise standard deviation of the mean over rows of a quantity of L2 bound 1, bought for ``share``."""
        return sensitivity_factor(self.neighbours) / (self.mu * math.sqrt(share)) / (self.n_rows_public * self.sampling_rate)

    def promise(self, *used: Promised) -> Guarantee:
        """The promise for what all these reveal together, each release behind them counted once."""
        return Guarantee.together((release.guarantee for release in used), self.delta, self.neighbours)


def sigma_of(release: Release) -> float:
    """The standard deviation of the noise on each coordinate of a released sum."""
    assert release.sigma is not None
    return release.sigma


def cost_of(releases: Sequence[Promised]) -> Cost:
    """What these cost together."""
    return sum((release.cost for release in releases), Cost())


Side: TypeAlias = Callable[[Ask, int, int], Release]
"""Answers an ask, given its price in whole ledger units (``price_of_units``) and its step."""


def drive(recipe: Recipe[R], units: int, answer: Side) -> R:
    """Run a recipe to its end against another side."""
    split, step = Split(units), 0
    try:
        ask = next(recipe)
        while True:
            ask, step = recipe.send(answer(ask, split.next(ask.share), step)), step + 1
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        recipe.close()


@dataclass(frozen=True)
class Conversation(Generic[R]):
    """One thing to be explained: a recipe, and what makes it the same as another one.

    Attributes
    ----------
    data : PrivateData
        Whose rows.
    recipe : callable
        Makes the generator, from the terms.
    label : str
        What the bill calls it.
    identity : mapping or None
        Public JSON values that tell this recipe from every other. None where the model has no name: asking again is new.
    models : tuple of Model
        Public models that the recipe asks: tried on public rows before the first charge.
    rehearsal : callable, optional
        The same recipe about less (a few of the points), to be rehearsed in its place.
    """

    data: PrivateData
    recipe: Callable[[Terms], Recipe[R]]
    label: str
    identity: Mapping[str, JsonValue] | None
    models: tuple[Model, ...] = ()
    rehearsal: Callable[[Terms], Recipe[R]] | None = None
    seen: Marginals | None = field(default=None, repr=False)
    """Released histograms that a quote may stand on; those that this analyst has bought if None."""
    quote_draws: int = 1
    """Draws of the noise that the half-width of a quote is the median of."""
    sampling_rate: float = 1.0
    """Of every question that the recipe asks about rows (``sampled``)."""
    currency: Currency = MU

    def terms(self, price: float) -> Terms:
        """What the recipe may know, at a price in its currency."""
        return Terms.of(self.data, price) if self.currency == MU else replace(Terms.of(self.data, 0.0), epsilon=price)

    # --- the vault ---------------------------------------------------------------------------------------------------

    def explain(self, *, epsilon: Given = None, mu: Given = None) -> R:
        """Have the conversation with the vault: rehearse, reserve the price, ask, give back what was not booked."""
        data, price = self.data, self.currency.price(epsilon, mu, self.data.delta)
        units = math.floor(Fraction(price) ** 2 * PICO) if mu is not None else self.currency.units(price)
        if units < 1:
            raise InvalidInput(f"mu is {price!r}, too small to buy anything; ask for more")
        with one_bar(self.label) as phase:
            if (name := self._name(units)) is None or not data.has_begun(name):
                with phase("rehearsal on public rows", 0.0):
                    self.rehearse(price)
            reservation, booked = data.reserve(self.currency.cost(units), recipe=name, label=self.label), Cost()

            def answer(ask: Ask, step_units: int, step: int) -> Release:
                nonlocal booked
                paid, cost = price_of_units(ask.question, step_units), self.currency.cost(step_units)
                with phase(label := ask.label or self.label, ask.share):
                    release = data.ask_reserved(reservation, ask.question, price=paid, booked=cost, step=step, label=label)
                booked += release.cost
                return release

            try:
                result = self.run(self.terms(price), units, answer)
            except Exception as error:
                self._say_what_was_charged(error, booked)
                raise
            finally:
                if name is None:  # it cannot be resumed, so nobody will ever book the rest
                    data.finish(reservation)
        if name is not None:
            data.finish(reservation)
        warn_of_contradiction(result)
        return result

    def _name(self, units: int) -> str | None:
        """The name of the conversation at this price; the dataset's own facts are added by the vault."""
        if self.identity is None:
            return None
        named = [self.identity, units, *([self.sampling_rate] if self.sampling_rate < 1 else [])]
        return hashlib.sha256(json.dumps(named, sort_keys=True, allow_nan=False).encode()).hexdigest()

    def _say_what_was_charged(self, error: Exception, booked: Cost) -> None:
        """A model, or this library, fails after the first charge: what was paid, and that it is not lost."""
        if booked == Cost() or (isinstance(error, VitrailError) and not isinstance(error, ModelError)):
            return
        epsilon = rounded_up((epsilon_of(booked.mu, self.data.delta) if booked.mu else 0.0) + booked.block_epsilon)
        kept = "" if self.identity is None else ": asking again at the same price goes on from there"
        said = f"Epsilon {epsilon} was charged before that, and stays charged. What was released is kept{kept}"
        if isinstance(error, ModelError):
            error.args = (f"{error}. {said}",)
        else:
            error.add_note(said)

    def inside(self, terms: Terms, share: float) -> Recipe[R]:
        """The recipe inside another one, for ``share`` of the price: questions without a label get this one's."""
        return scaled(self.recipe(terms.scaled(share)), share, self.label)

    def begun(self, terms: Terms) -> Recipe[R]:
        """The recipe, every question of which is about a sample of the rows where there is one."""
        return sampled(self.recipe(replace(terms, sampling_rate=self.sampling_rate)), self.sampling_rate)

    def run(self, terms: Terms, units: int, answer: Side) -> R:
        """Run the recipe against another side. What its public models raise is told in a sentence about them."""
        try:
            return drive(self.begun(terms), units, answer)
        except VitrailError:
            raise
        except Exception as error:
            if not self.models or not raised_by_a_model(error):
                raise
            names = " and ".join(model.name for model in self.models)
            raise ModelError(f"{names} fails on public rows: {type(error).__name__}: {error}") from error

    # --- a stand-in --------------------------------------------------------------------------------------------------

    def rehearse(self, price: float) -> R:
        """Run the recipe on a few rows that are nobody's: what is wrong with model, shapes or options is said, free."""
        from .quoted import stand_in, try_model

        for model in self.models:
            try_model(model, self.data.feature_schema)
        terms = replace(self.terms(price), public_rows=REHEARSED_PUBLIC_ROWS)
        rehearsed = replace(self, recipe=self.rehearsal or self.recipe)
        return rehearsed.run(terms, self.currency.units(price), stand_in(terms, REHEARSAL_ROWS))

    def quote(self, *, epsilon: Given = None, mu: Given = None, half_width: Given = None, verdict: Goal = None) -> Quoted[R]:
        """What it would cost and how good it would be: the same result, from nobody's rows. Reads no row, charges nothing.

        ``epsilon`` or ``mu`` is the price; or it is searched for, to an accuracy ``half_width`` or ``verdict="clear"``.
        """
        from .quoted import quote_asked

        return quote_asked(self, epsilon=epsilon, mu=mu, half_width=half_width, verdict=verdict)

    # --- an auditor's rows -------------------------------------------------------------------------------------------

    def on(self, rows: PublicRows, *, epsilon: Given = None, mu: Given = None) -> tuple[R, tuple[Release, ...]]:
        """With rows of one's own, at any price: the result, and every release it was made of. No ledger."""
        releases, any_mu = list[Release](), mu is not None and epsilon is None and not self.currency.in_epsilon
        price = _checks.positive("mu", mu) if any_mu else self.currency.price(epsilon, mu, self.data.delta)

        def answer(ask: Ask, units: int, step: int) -> Release:
            releases.append(rows.ask(ask.question, mu=price_of_units(ask.question, units), delta=self.data.delta))
            return releases[-1]

        return self.run(self.terms(price), self.currency.units(price), answer), tuple(releases)


class Explainer(ABC):
    """What all explainers have in common: dataclasses, whose fields are data, model and options."""

    data: PrivateData

    def __new__(cls, *args: object, **options: object) -> Self:
        """Remember what it was made with, as it was given: a service is sent that (``given``)."""
        made = super().__new__(cls)
        object.__setattr__(made, "_given", (args, options))
        return made

    def given(self) -> dict[str, Any]:
        """Its arguments by name, before they were checked and completed."""
        args, options = self.__dict__["_given"]
        return dict(inspect.signature(type(self)).bind(*args, **options).arguments)

    def check_inputs(self, *models: object) -> None:
        """Refuse what is neither private data nor a model of ours."""
        from ..vault import PrivateData

        if not isinstance(self.data, PrivateData):
            raise InvalidInput(f"data is {type(self.data).__name__}; give the vt.PrivateData that holds the rows")
        for model in models:
            if not isinstance(model, Model):
                raise InvalidInput(f"model is {type(model).__name__}; wrap it: vt.Model(your_model)")
        if (key := getattr(self, "key", None)) is not None:
            _checks.text("key", key, hint=" that names the model")

    def options_but(self, *unnamed: str) -> dict[str, JsonValue]:
        """The fields that are options, by name: what makes it this question. They must be JSON values."""
        left_out, declared = {"data", "model", "key", *unnamed}, [option.name for option in fields(self)]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in declared if name not in left_out}


class GlobalExplainer(Explainer, Generic[R_co]):
    """What every explainer of a whole model can do, by having a conversation."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.conversation().label}, not bought yet: call it with epsilon=>"

    @abstractmethod
    def conversation(self) -> Conversation[R_co]:
        """What would be said to the vault."""

    def __call__(self, *, epsilon: Given = None, mu: Given = None) -> R_co:
        """Explain, for a price: ``epsilon`` at the account's delta, or ``mu``.

        Raises
        ------
        BudgetExceeded
            If the account or the analyst's cap cannot pay for all of it. Nothing was charged.
        """
        return (elsewhere(self) or self.conversation()).explain(epsilon=epsilon, mu=mu)

    def quote(
        self, *, epsilon: Given = None, mu: Given = None, half_width: Given = None, verdict: Goal = None
    ) -> Quoted[R_co]:
        """What a price buys, or what an accuracy (``half_width``) or a clear answer (``verdict="clear"``) costs: free."""
        talk = elsewhere(self) or self.conversation()
        return talk.quote(epsilon=epsilon, mu=mu, half_width=half_width, verdict=verdict)


class LocalExplainer(Explainer, Generic[R_co]):
    """What every explainer of public points can do, by having a conversation about them."""

    model: Model

    @abstractmethod
    def conversation(self, points: object) -> Conversation[R_co]:
        """What would be said to the vault about these points; whatever is wrong with them is an error."""

    def read_points(self, points: object) -> tuple[Floats, Floats]:
        """Public points as a raw matrix, and the model's outputs there; an error says what is wrong with either."""
        from .quoted import public_outputs

        model, schema = self.model, self.data.feature_schema
        raw = schema.read_points(points)
        if len(raw) == 0:
            raise InvalidInput("there are no points to explain; give at least one")
        model.check(schema)
        return raw, public_outputs(model, schema, raw, "the points", "at point {}".format)

    def __call__(self, points: object, *, epsilon: Given = None, mu: Given = None) -> R_co:
        """Explain these points together, for a price: ``epsilon`` at the account's delta, or ``mu``.

        Parameters
        ----------
        points : dictionary, data frame, array
            One public point or several, in the schema's columns. What does not fit the schema is an error.
        epsilon, mu : float
            The price of all of them together. One that does not fit is refused, and nothing is charged.
        """
        return (elsewhere(self, points) or self.conversation(points)).explain(epsilon=epsilon, mu=mu)

    def quote(
        self, points: object = None, *,
        epsilon: Given = None, mu: Given = None, half_width: Given = None, verdict: Goal = None,
    ) -> Quoted[R_co]:  # fmt: skip
        """What a price buys, or what an accuracy (``half_width``) or a clear answer (``verdict="clear"``) costs: free.

        ``points`` are those to be explained; one point drawn from the schema if not given.
        """
        if points is None:
            schema = self.data.feature_schema
            points = schema.frame(schema.probe_rows(N_CORNERS + 1)[N_CORNERS:])
        talk = elsewhere(self, points) or replace(self.conversation(points), quote_draws=QUOTE_DRAWS)
        return talk.quote(epsilon=epsilon, mu=mu, half_width=half_width, verdict=verdict)


def key_of(kind: str, version: int, **facts: JsonValue) -> str:
    """The key of a question that is about no model: other recipes at the same price use the same answer."""
    return json.dumps({"kind": kind, "version": version, **facts}, sort_keys=True)


def points_identity(raw: Floats) -> JsonValue:
    """Public points as a small JSON value: shape and hash."""
    content = np.ascontiguousarray(raw, dtype="<f8")
    return [*content.shape, hashlib.sha256(content.tobytes()).hexdigest()]
