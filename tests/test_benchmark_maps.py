"""What the benchmarks of maps stand on: the clip of the networks beside them, and curves as the library has them."""

import numpy as np
import pytest
import torch

from benchmark_scripts import script
from vitrail.maps.tables import SIZE, TILT, WAVES, waves

script("bench_data", "benchmarks")
script("locally_linear_splits", "benchmarks/papers")
script("locally_linear_images", "benchmarks/papers")
networks = script("locally_linear_networks", "benchmarks/papers")
tuning = script("locally_linear_table_tuning", "benchmarks/papers")


@pytest.mark.parametrize("size", ["small", "large"])
def test_gradients_are_clipped_row_by_row(size):
    generator = torch.Generator().manual_seed(0)
    net = networks.network(torch, size)
    x, y = torch.rand(6, 784, generator=generator), torch.randint(10, (6,), generator=generator)
    expected, lengths = [torch.zeros_like(p) for p in net.parameters()], []
    for row in range(len(x)):
        loss = torch.nn.functional.cross_entropy(net(x[row : row + 1]), y[row : row + 1])
        gradient = torch.autograd.grad(loss, list(net.parameters()))
        lengths.append(float(torch.sqrt(sum((g * g).sum() for g in gradient))))
        for total, g in zip(expected, gradient, strict=True):
            total += g * min(1.0, networks.CLIP / lengths[-1])
    assert max(lengths) > networks.CLIP
    for found, wanted in zip(networks.clipped_sum(torch, net, x, y), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_defaults_were_searched_with_the_curves_of_the_library():
    places = np.linspace(0, 1, 9)
    plan = tuning.Plan("cosines", WAVES, SIZE, TILT, 150, 1)
    np.testing.assert_allclose(tuning.curves(places, plan), waves(places, WAVES), rtol=1e-12, atol=1e-12)
    assert plan.count in {one.count for one in tuning.PLANS}
    assert plan.size in {one.size for one in tuning.PLANS}
