"""A dataset of a service, with the face of local private data: explainers, quotes, the bill. No row is on this machine.

Explainers take it as they take ``vt.PrivateData``. What they would say to a vault is sent as JSON instead
(``explain.elsewhere``, ``serve.kinds``), and a result comes back as the file that ``save`` writes. What takes a function of
the rows is refused with a sentence: a service takes no code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from ..accounting import Cost
from ..accounting.guarantee import question_mu
from ..accounting.neighbours import check_neighbours, rows_per_person_of
from ..errors import DamagedFile, InvalidInput
from ..explain.elsewhere import Elsewhere
from ..explain.row_count import warn_of_contradiction
from ..model import Model
from ..pane.pane import Pane
from ..results.synopsis import Synopsis
from ..schema import Schema
from ..vault import PrivateData, Quote
from .remote_model import RemoteModel
from .remote_statement import RemoteQuote, RemoteStatement, quote_of, statement_of
from .remote_transport import listed

if TYPE_CHECKING:
    from .client import RemoteHouse

QUOTE_SECONDS = 1800.0
"""A quote that looks for a price runs a recipe a dozen times."""
_NO_CODE = (
    "{name}.{method}() takes what would run beside the rows, and a service takes no code; ask for one of its explainers, "
    "such as vt.GlobalReport or vt.marginals, or ask the owner of the rows"
)
_OWN_STEPS = "{name}.{method}() is a step that a service takes itself; call the explainer, with epsilon= or mu="
_NO_PARTS = "{name}.{method}() is not to be had of a service: its questions are about all rows. Ask the owner of the rows"
_OTHER_PERSON = "{name}.{method}() is not to be had of a service: who asks is who shows the token. Connect with theirs"
_CAPS = "{name}.{method}() is for the owner of the rows; they set caps in the house file, or on the service's page"
_KEPT = "{name}.{method}() is not to be had of a service, which keeps what you bought itself; save results with save()"


def models_of(explainer: Any) -> list[Model]:
    """The models that an explainer, or a fit, is about."""
    of = getattr(explainer, "of", None)
    about = explainer if of is None else of[0]
    given = getattr(about, "models", None) or getattr(about, "model", None)
    return [] if given is None else list(given) if isinstance(given, list | tuple) else [given]


def with_models(result: Any, models: list[Model]) -> Any:
    """A result that asks a model, with the caller's: files hold none. One that stays at the service cannot be asked here."""
    if not models or any(isinstance(model, RemoteModel) for model in models):
        return result
    if isinstance(result, Pane):
        return result.with_model(models)
    return replace(result, model=models[0]) if isinstance(result, Synopsis) else result


class RemoteData(PrivateData, Elsewhere):
    """Private data that a service holds: ``house["census"]``, to be given to explainers like local data.

    Parameters
    ----------
    house : RemoteHouse
        The connection.
    facts : mapping
        What the service says of the dataset.
    """

    __slots__ = ("_facts", "_feature_schema", "_house", "_schema")

    def __init__(self, house: RemoteHouse, facts: Mapping[str, Any]) -> None:
        try:
            self._house, self._facts, self._schema = house, dict(facts), Schema.from_json(facts["schema"])
            check_neighbours(self.neighbours)
            target, _ = self.target, (self.name, self.n_rows_public, self.delta)
            self._feature_schema = self._schema if target is None else self._schema.without(target)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"what the service says of the dataset cannot be read: {error}") from error

    def __repr__(self) -> str:
        where = f"declared rows {self.n_rows_public}, at {self._house.address}"
        return f"RemoteData({self.name!r}, {len(self.schema)} columns, {where})"

    def _repr_html_(self) -> str:
        return self.schema._repr_html_()

    def __reduce__(self) -> NoReturn:
        raise InvalidInput(
            "data of a service cannot be pickled or copied: it would take the token along. Connect again there"
        )

    # --- public facts ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The dataset's name."""
        return str(self._facts["name"])

    @property
    def schema(self) -> Schema:
        """The declared columns, the target included."""
        return self._schema

    @property
    def feature_schema(self) -> Schema:
        """The declared columns without the target: what models see."""
        return self._feature_schema

    @property
    def target(self) -> str | None:
        """The name of the target column."""
        target = self._facts.get("target")
        return None if target is None else str(target)

    @property
    def n_rows_public(self) -> int:
        """The declared row count."""
        return int(self._facts["n_rows_public"])

    @property
    def neighbours(self) -> str:
        """The neighbour relation of every promise; where a person may have several rows, it says how many."""
        return str(self._facts["neighbours"])

    @property
    def rows_per_person(self) -> int:
        """How many rows one person has at most that count one each; 1 also where ``person`` names whose row it is."""
        return rows_per_person_of(check_neighbours(self.neighbours))

    @property
    def person(self) -> str | None:
        """The column that names whose row it is, if any and if the service tells it."""
        person = self._facts.get("person")
        return None if person is None else str(person)

    @property
    def delta(self) -> float:
        """The delta at which ``epsilon=`` of a question is understood."""
        return float(self._facts["delta"])

    @property
    def analyst(self) -> str:
        """Who asks: the person whose token was shown."""
        return self._house.person

    @property
    def part(self) -> None:
        """All rows: a service has no parts."""
        return

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the owner approved for these rows, by name."""
        return tuple(str(line["name"]) for line in self._facts.get("models", ()))

    @property
    def budget(self) -> RemoteStatement:  # type: ignore[override]
        """How the account stands now, with the lines that you may see; asked of the service every time."""
        transport, name = self._house.transport, self.name

        def lines(newest: int) -> list[dict[str, Any]]:
            return listed(transport.get("datasets", name, "bill", newest=newest), "lines")

        return statement_of(transport.get("datasets", name, "budget"), lines)

    # --- asking ------------------------------------------------------------------------------------------------------

    def explain(self, explainer: Any, points: object, *, epsilon: float | None, mu: float | None) -> Any:
        """Have the service explain, and wait for it; the same again is the same job there, and free."""
        question_mu(epsilon, mu, self.delta)
        job = self._house.submit(self.name, self._request(explainer, points, epsilon=epsilon, mu=mu))
        result = self._house.collect(job)
        warn_of_contradiction(result)
        return with_models(result, models_of(explainer))

    def price(self, explainer: Any, points: object, **goal: float | str | None) -> RemoteQuote:
        """What the service would ask for it, and what it would be worth. Free."""
        request = self._request(explainer, points, **goal)
        return quote_of(self._house.transport.post("datasets", self.name, "quotes", body=request, patience=QUOTE_SECONDS))

    def _request(self, explainer: Any, points: object, **goal: float | str | None) -> dict[str, Any]:
        """The explainer as JSON, with what is asked of it."""
        from .kinds import described

        given = {name: one if isinstance(one, str) else float(one) for name, one in goal.items() if one is not None}
        request = described(explainer, points)
        if "model" in request:
            request["model"] = self._house.named(explainer, request["model"])
        return {**request, **given}

    def quote(self, question: Any, **goal: Any) -> Any:
        """What an explainer would cost and how good it would be, asked of the service. Free.

        ``half_width`` asks the other way round: what would bands this narrow cost; and ``verdict="clear"`` what an answer
        would cost that stands out of its noise.
        """
        if not hasattr(question, "quote"):
            self._refuse(_NO_CODE, "quote")
        return question.quote(**goal)

    def price_tag(self, cost: Cost, sigma: float | None = None) -> Quote:
        """What this cost would promise, add to the account, and whether account and cap can pay for it now."""
        return self.budget.price_tag(cost, sigma, self.n_rows_public, self.analyst)

    # --- what a service does not do ----------------------------------------------------------------------------------

    def _refuse(self, sentence: str, method: str) -> NoReturn:
        raise InvalidInput(sentence.format(name=self.name, method=method))

    def ask(self, *given: object, **options: object) -> NoReturn:
        """Refused: a question is code."""
        self._refuse(_NO_CODE, "ask")

    def train(self, *given: object, **options: object) -> NoReturn:
        """Refused: training is the owner's."""
        self._refuse(_NO_CODE, "train")

    def parts(self, *given: object, **options: object) -> NoReturn:
        """Refused: questions are about all rows."""
        self._refuse(_NO_PARTS, "parts")

    def for_analyst(self, *given: object, **options: object) -> NoReturn:
        """Refused: the token says who asks."""
        self._refuse(_OTHER_PERSON, "for_analyst")

    def as_it_was(self, *given: object, **options: object) -> NoReturn:
        """Refused: the service looks at the account for its quotes."""
        self._refuse(_OWN_STEPS, "as_it_was")

    def cap(self, *given: object, **options: object) -> NoReturn:
        """Refused: caps are the owner's."""
        self._refuse(_CAPS, "cap")

    def keep(self, *given: object, **options: object) -> NoReturn:
        """Refused: the service keeps what was bought."""
        self._refuse(_KEPT, "keep")

    def kept(self, *given: object, **options: object) -> NoReturn:
        """Refused: the service keeps what was bought."""
        self._refuse(_KEPT, "kept")

    def has_begun(self, *given: object, **options: object) -> NoReturn:
        """Refused: the service holds the conversation."""
        self._refuse(_OWN_STEPS, "has_begun")

    def reserve(self, *given: object, **options: object) -> NoReturn:
        """Refused: the service reserves."""
        self._refuse(_OWN_STEPS, "reserve")

    def ask_reserved(self, *given: object, **options: object) -> NoReturn:
        """Refused: the service asks the steps."""
        self._refuse(_OWN_STEPS, "ask_reserved")

    def finish(self, *given: object, **options: object) -> NoReturn:
        """Refused: the service gives back what is not booked."""
        self._refuse(_OWN_STEPS, "finish")
