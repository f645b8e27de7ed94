"""Torch modules on an accelerator: those that no row can make fail there, and no others."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import vitrail as vt  # noqa: E402
from vitrail.model import on_device  # noqa: E402
from vitrail.model.on_device import moved  # noqa: E402
from vitrail.vault.public_facts import PublicFacts  # noqa: E402
from vitrail.vault.rows.predictions import Predictions  # noqa: E402

DEVICES = ["torch", pytest.param("cuda", marks=pytest.mark.gpu)]
WIDTH = 6
SCHEMA = vt.Schema({f"x{i}": vt.Numeric(0.0, 1.0) for i in range(WIDTH)})
PUBLIC = [np.random.default_rng(1).uniform(size=(rows, WIDTH)) for rows in (1, 64, 256)]


@pytest.fixture(autouse=True)
def small_modules_are_moved(monkeypatch):
    monkeypatch.setattr(on_device, "FEWEST_PARAMETERS", 0)


class Head(nn.Module):
    """What some subclasses do with rows, and a linear layer behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, 1)

    def forward(self, rows):
        return torch.sigmoid(self.linear(self.seen(rows)))[:, 0]


class Residual(Head):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.batch, self.drop, self.mix = (
            nn.LayerNorm(WIDTH),
            nn.BatchNorm1d(WIDTH),
            nn.Dropout(),
            nn.Linear(6, 6),
        )

    def seen(self, rows):
        mixed = self.drop(self.batch(self.norm(rows + nn.functional.gelu(self.mix(rows)))))
        return torch.cat([mixed[:, :3], rows[:, 3:].clamp(0.1, 0.9)], dim=1)


class Embeds(Head):
    """An index out of range would end the accelerator's context, and every later row with it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, WIDTH)

    def seen(self, rows):
        return self.table(rows[:, 0].long())


class Branches(Head):
    def seen(self, rows):
        return rows if rows.max() > 0.5 else -rows


class TakesANumber(Head):
    def seen(self, rows):
        return rows * float(rows[0, 0])


class Masks(Head):
    def seen(self, rows):
        rows = rows.clone()
        rows[rows > 0.5] = 0.5
        return rows


class Rolls(Head):
    def seen(self, rows):
        return rows + torch.rand_like(rows)


class BringsBack(Head):
    """Of a single number too: what is on the host can be read by anybody."""

    def seen(self, rows):
        return rows + torch.as_tensor(rows[0, 0].cpu().numpy(), device=rows.device)


MOVED = [
    nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid()),
    Residual(),
    nn.Sequential(nn.Unflatten(1, (1, WIDTH)), nn.Conv1d(1, 4, 3), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(8, 1)),
    nn.Sequential(nn.Unflatten(1, (WIDTH, 1)), nn.Linear(1, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("module", MOVED)
def test_modules_of_products_and_functions_are_moved(device, module):
    there = moved(module.eval(), device, PUBLIC)
    assert there is not None
    assert there is not module
    assert {parameter.device.type for parameter in there.parameters()} == {"cpu" if device == "torch" else "cuda"}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [Embeds, Branches, TakesANumber, Masks, Rolls])
def test_modules_that_look_up_or_branch_are_not(device, kind):
    assert moved(kind().eval(), device, PUBLIC) is None


@pytest.mark.gpu
def test_modules_that_bring_numbers_back_are_not():
    assert moved(BringsBack().eval(), "cuda", PUBLIC) is None


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_compiled_and_tiny_modules_are_not(monkeypatch):
    plain = nn.Sequential(nn.Linear(WIDTH, 1)).eval()
    assert moved(torch.jit.trace(plain, torch.zeros(2, WIDTH)), "torch", PUBLIC) is None
    assert moved(torch.compile(plain), "torch", PUBLIC) is None
    monkeypatch.undo()
    assert moved(plain, "cuda", PUBLIC) is None  # too small to gain: not even looked for


@pytest.mark.parametrize("device", DEVICES)
def test_the_vault_asks_a_module_where_it_was_moved_and_probes_it_there(device, monkeypatch):
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(WIDTH, 32), nn.Tanh(), nn.Linear(32, 1), nn.Sigmoid())
    model = vt.Model(module, range=(0, 1), inputs="features")
    places = []
    run = on_device.run
    monkeypatch.setattr(on_device, "run", lambda *given: (places.append(given[2]), run(*given))[1])
    facts = PublicFacts(SCHEMA, None, 300, "add-remove", 64, device=device)
    digest, predictions = model.digest(), Predictions(facts)
    predictions.admit(model)
    predictions.admit_packs(model)
    assert device in places
    places.clear()
    rows = SCHEMA.probe_rows(64)
    together, ways = predictions.of(model, rows, 0), predictions.of_altered(model, np.repeat(rows[:, None], 5, axis=1))
    assert set(places) == {device}
    assert np.array_equal(ways, np.repeat(together[:, None], 5, axis=1))  # in every bit, alone and in packs
    assert np.allclose(together, model.predict(SCHEMA, rows), atol=1e-6)
    assert model.digest() == digest
    assert model.predictor.device == "cpu"


def test_a_module_that_stays_is_asked_on_the_processor():
    facts = PublicFacts(SCHEMA, None, 300, "add-remove", 64, device="torch")
    model, predictions = vt.Model(Embeds(), range=(0, 1), inputs="features"), Predictions(facts)
    predictions.admit(model)
    assert predictions._admitted[id(model)].asked is model


def test_a_module_that_says_something_else_there_stays(monkeypatch):
    run = on_device.run
    monkeypatch.setattr(
        on_device, "run", lambda module, rows, device: run(module, rows, device) + 0.01 * (device == "torch")
    )
    model = vt.Model(MOVED[0], range=(0, 2), inputs="features")
    assert model.on_device(SCHEMA, "torch", (64,)) is model
    assert vt.Model(lambda rows: rows[:, 0], range=(0, 1), inputs="features").on_device(SCHEMA, "torch", (64,)) is not None
