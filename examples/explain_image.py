"""Why is this a boot? Pictures explained by patches and by superpixels, one class or all of them, from private pictures.

Run it with ``python examples/explain_image.py``; add ``--figure boot.png`` to see the heat map. The pictures are shoes of
Fashion-MNIST (MIT licence, see examples/data/README.md) and stand in for private ones.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.neural_network import MLPClassifier

import vitrail as vt

DATA = Path(__file__).parent / "data" / "shoes.parquet"
PUBLIC = 400  # so many pictures play the public ones: they train the model, and one of them is explained
WHITE = 15


def main() -> None:
    """Train on public pictures, explain one of them from the private ones."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--figure", help="where to save the heat map, such as boot.png")
    arguments = parser.parse_args()

    table = pq.read_table(DATA)
    images = np.frombuffer(b"".join(table["image"].to_pylist()), dtype=np.uint8).reshape(-1, 28, 28)
    kinds = np.array(table["kind"].to_pylist())
    network = MLPClassifier((30,), alpha=1.0, max_iter=600, random_state=0)
    network.fit(images[:PUBLIC].reshape(-1, 28 * 28) / WHITE, kinds[:PUBLIC])
    boot = images[:PUBLIC][kinds[:PUBLIC] == "ankle boot"][3]

    # Every pixel is a column, because the model needs them all; the explanation speaks of 49 patches.
    patches = vt.Picture((28, 28), patches=(4, 4), high=WHITE)
    data = vt.PrivateData(
        patches.rows(images[PUBLIC:]),
        patches.schema(),
        name="shoes",
        n_rows_public=2000,
        budget=vt.Budget(epsilon=4.0, delta=1e-6),
        ledger="memory",  # public data: the bill may be forgotten
    )
    model = vt.Model(network, output="ankle boot", inputs="features")
    explain = vt.LocalLinear(data, model, view=patches)
    print("Price tag:", explain.quote(patches.rows(boot), epsilon=1.0))
    e = explain(patches.rows(boot), epsilon=1.0)
    print(f"{len(e.certain())} of {len(e.columns)} patches speak louder than the noise. The loudest (line, column):")
    for one in e.top(3):
        print(f"  {one.column}: {one.value:+.3f}, {e.band_claim.band} {one.lower:+.3f} to {one.upper:+.3f}")
    print("Promise:", e.guarantee)

    # Regions that follow the outlines of the explained picture, and all three classes from one release.
    regions = vt.Picture.around(boot, 25, high=WHITE)
    classes = [vt.Model(network, output=kind, inputs="features") for kind in network.classes_]
    found = vt.LocalClasses(data, classes, view=regions)(regions.rows(boot), epsilon=1.0)
    place = found["ankle boot"].columns.index(found["ankle boot"].top(1)[0].column)
    print(f"\nWhat {found['ankle boot'].columns[place]} says for each class, all for epsilon 1.0 together:")
    for kind, one in found.items():
        print(f"  {kind}: {one.values[0, place]:+.3f}")
    print(data.budget.bill().sentence)

    if arguments.figure:
        found["ankle boot"].plot.image(regions, image=boot).savefig(arguments.figure)


if __name__ == "__main__":
    main()
