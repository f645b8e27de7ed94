"""What a clock tells about a failing row, with slots and without.

An ONNX model fails on a narrow interval of one column, in which no public probe row lies. One dataset has one row there, the
other has that row elsewhere. The same number of questions is asked of both, and whoever holds a watch guesses which one it
was, by the best threshold for the times that were seen: the advantage is how far that beats guessing (0: not at all, 1:
always right). Thresholds are chosen on the times themselves, so the advantage of pure noise is above 0 too; the row "the
same rows twice" says how much.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import numpy as np

from running import Row
from vitrail.serve.house import read_house
from vitrail.serve.operation.migrate import upgrade
from vitrail.serve.principal import Principal
from vitrail.serve.service import Service

N_ROWS, FAILING = 20_000, 37.0313
NAMES = ("without", "again", "failing")
DECLARATION = """format = 1
[dataset]
name = "{name}"
source = "{name}.csv"
rows = {rows}
[budget]
epsilon = 50.0
ledger = "ledger.db"
[columns.hours]
kind = "number"
low = 0
high = 80
[columns.age]
kind = "integer"
low = 18
high = 90
"""


def failing_model() -> bytes:
    """0.2 plus half of the age; a look-up outside its table where hours are within 0.0002 of ``FAILING``."""
    from onnx import TensorProto, helper, numpy_helper

    def constant(name: str, values: object, kind: type) -> object:
        return numpy_helper.from_array(np.array(values, dtype=kind), name)

    nodes = [
        helper.make_node("Gather", ["x", "first"], ["hours"], axis=1),
        helper.make_node("Gather", ["x", "second"], ["age"], axis=1),
        helper.make_node("Sub", ["hours", "center"], ["off"]),
        helper.make_node("Abs", ["off"], ["far"]),
        helper.make_node("Less", ["far", "near"], ["bad"]),
        helper.make_node("Cast", ["bad"], ["index"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "index"], ["looked"], axis=0),
        helper.make_node("Mul", ["age", "half"], ["halved"]),
        helper.make_node("Add", ["halved", "looked"], ["y"]),
    ]
    constants = [
        constant("first", [0], np.int64), constant("second", [1], np.int64), constant("center", [FAILING / 80], np.float32),
        constant("near", [0.0002 / 80], np.float32), constant("table", [0.2], np.float32),
        constant("half", [0.5], np.float32),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "failing", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])], constants,
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    content: bytes = made.SerializeToString()
    return content


def write_house(folder: Path, slot: float) -> Path:
    """Three datasets that differ in one row at most."""
    content = failing_model()
    (folder / "model.onnx").write_bytes(content)
    generator = np.random.default_rng(0)
    hours, age = generator.integers(0, 80, N_ROWS).astype(float), generator.integers(18, 91, N_ROWS)
    text = f'format = 1\n[service]\nname = "Timing"\nslot_seconds = {slot}\n[models.model]\nfile = "model.onnx"\n'
    text += f'sha256 = "{hashlib.sha256(content).hexdigest()}"\ninputs = "features"\nrange = [0, 1]\n'
    for name in NAMES:
        hours[N_ROWS // 2] = FAILING if name == "failing" else 41.0
        lines = "\n".join(f"{h},{a}" for h, a in zip(hours, age, strict=True))
        (folder / f"{name}.csv").write_text(f"hours,age\n{lines}\n")
        (folder / f"{name}.toml").write_text(DECLARATION.format(name=name, rows=N_ROWS))
        text += f'[datasets.{name}]\ndeclaration = "{name}.toml"\n'
    path = folder / "house.toml"
    path.write_text(text)
    return path


def advantage(one: np.ndarray, other: np.ndarray) -> float:
    """How far the best threshold beats guessing: the largest distance of the two distributions."""
    cuts = np.unique(np.concatenate((one, other)))
    return float(max(abs((one <= cut).mean() - (other <= cut).mean()) for cut in cuts))


def measure(folder: Path, slot: float, questions: int) -> list[Row]:
    """Seconds until answers are seen, of questions to each of the datasets in turn."""
    folder.mkdir()
    service = Service(read_house(write_house(folder, slot)))
    upgrade(service.ledger.database)
    service.start()
    owner = Principal("owner", "owner", None, may_buy=True, credential="benchmark")
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    for number in range(questions + 2):
        point = {"hours": float(number % 79), "age": 30 + number % 50}
        for name in NAMES:
            began = time.perf_counter()
            asked = {"explainer": "shapley", "model": "model", "points": [point], "mu": 0.01}
            job = service.submit(owner, name, asked)
            while service.is_at_work(job):
                time.sleep(0.0005)
            taken = time.perf_counter() - began
            found = service.job(owner, job.id)
            assert found.state == "done", found
            if number >= 2:  # the first ones open files and compile
                times[name].append(taken if not slot else round(taken / slot) * slot)
    service.stop()
    service.ledger.close()
    seen = {name: np.array(values) for name, values in times.items()}
    plain = seen["without"]
    return [
        {
            "slot_seconds": slot,
            "questions": questions,
            "compared": "the same rows twice" if name == "again" else "one row that fails",
            "ms_without": round(1000 * float(np.median(plain)), 1),
            "ms_with": round(1000 * float(np.median(seen[name])), 1),
            "advantage": round(advantage(plain, seen[name]), 3),
        }
        for name in ("again", "failing")
    ]
