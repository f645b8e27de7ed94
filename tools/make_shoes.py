"""Make examples/data/shoes.parquet from Fashion-MNIST (MIT licence).

    python tools/make_shoes.py fashion_mnist.parquet

The source has a line per picture: ``image`` (784 bytes, line by line), ``label`` and ``split``. Kept are the first 800
pictures each of sandals, sneakers and ankle boots of the training part, in their order, with brightness in 16 steps.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KINDS = {5: "sandal", 7: "sneaker", 9: "ankle boot"}
EACH = 800
STEPS = 15
TARGET = Path(__file__).resolve().parents[1] / "examples" / "data" / "shoes.parquet"


def main(source: str) -> None:
    """Choose, coarsen, write."""
    table = pq.read_table(source)
    labels = np.asarray(table["label"])
    training = np.asarray(table["split"].to_pylist()) == "train"
    chosen = np.sort(np.concatenate([np.flatnonzero(training & (labels == label))[:EACH] for label in KINDS]))
    pixels = np.frombuffer(b"".join(table["image"].take(chosen).to_pylist()), dtype=np.uint8).reshape(-1, 784)
    coarse = np.rint(pixels.astype(np.float64) * STEPS / 255).astype(np.uint8)
    made = pa.table(
        {
            "image": pa.array([row.tobytes() for row in coarse], pa.binary()),
            "kind": pa.array([KINDS[label] for label in labels[chosen].tolist()]).dictionary_encode(),
        }
    )
    pq.write_table(made, TARGET, compression="zstd", compression_level=22, use_dictionary=["kind"])
    print(f"{TARGET.name}: {len(made)} pictures, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
