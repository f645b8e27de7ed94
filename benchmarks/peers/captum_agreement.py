"""captum's explanations, through the adapter ``vt.audit.targets.captum``, beside our own of the same networks.

    pip install --no-deps -r benchmarks/peers/requirements-no-deps.txt
    python benchmarks/peers/captum_agreement.py

Prints a table and writes nothing: the largest difference over all points and features, as a share of the largest value. Both
networks are random, of 64-bit floats. SmoothGrad draws noise of its own in both; beside it stands what two seeds of ours
differ by. Exits with 1 if anything that should agree does not.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import captum
import numpy as np
import torch
from captum.attr import LRP, GuidedBackprop, InputXGradient, IntegratedGradients, NoiseTunnel, Saliency
from captum.attr._utils.lrp_rules import EpsilonRule

import vitrail as vt
from vitrail.audit.backpropagation import RELEVANCE_EPSILON

SAMPLES, SIGMA, STEPS = 2000, 0.15, 32
ROUNDING = 1e-12
Explain = Callable[[object], np.ndarray]


def dense() -> tuple[torch.nn.Sequential, np.ndarray]:
    torch.manual_seed(0)
    layers = (torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    return torch.nn.Sequential(*layers).double(), np.random.default_rng(0).normal(size=(200, 6))


def convolutional() -> tuple[torch.nn.Sequential, np.ndarray]:
    torch.manual_seed(0)
    layers = (
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(4, 4, 3),
        torch.nn.ReLU(),
        torch.nn.AvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(4, 3),
    )
    return torch.nn.Sequential(*layers).double(), np.random.default_rng(0).normal(size=(50, 1, 8, 8))


def relevance(module: torch.nn.Sequential, epsilon: float | None) -> Explain:
    """captum's LRP. It takes its rules off the modules when it is done, so they are set anew for every call."""

    def look(points: object) -> np.ndarray:
        for layer in module:
            if not isinstance(layer, torch.nn.ReLU) and (epsilon is not None or isinstance(layer, torch.nn.Flatten)):
                layer.rule = EpsilonRule() if epsilon is None else EpsilonRule(epsilon)
        return vt.audit.targets.captum(LRP(module))(points)

    return look


def pairs(module: torch.nn.Sequential) -> dict[str, tuple[Explain, Explain, float]]:
    """By name: theirs, ours, and the largest share by which they may differ."""
    theirs, ours = vt.audit.targets.captum, vt.audit.targets
    with_softmax = torch.nn.Sequential(module, torch.nn.Softmax(dim=-1))
    middle = {"n_steps": STEPS, "method": "riemann_middle"}
    noise = {"nt_type": "smoothgrad", "nt_samples": SAMPLES, "nt_samples_batch_size": 20, "stdevs": SIGMA, "abs": False}
    rough = ours.smooth_gradient(module, of="logit", sigma=SIGMA, samples=SAMPLES)
    again = ours.smooth_gradient(module, of="logit", sigma=SIGMA, samples=SAMPLES, seed=1)
    saliency = ours.gradient(module, of="logit")
    return {
        "Saliency(abs=False)": (theirs(Saliency(module), abs=False), saliency, ROUNDING),
        "Saliency(), ours absolute": (theirs(Saliency(module)), lambda x: np.abs(saliency(x)), ROUNDING),
        "Saliency, of probabilities": (theirs(Saliency(with_softmax), abs=False), ours.gradient(module), ROUNDING),
        "InputXGradient": (theirs(InputXGradient(module)), ours.input_x_gradient(module, of="logit"), ROUNDING),
        f"IntegratedGradients, {STEPS} midpoints": (
            theirs(IntegratedGradients(module), **middle),
            ours.integrated_gradients(module, of="logit", steps=STEPS),
            ROUNDING,
        ),
        "IntegratedGradients, its defaults; ours 2000 steps": (
            theirs(IntegratedGradients(module)),
            ours.integrated_gradients(module, of="logit", steps=2000),
            0.1,
        ),
        "GuidedBackprop": (theirs(GuidedBackprop(module)), ours.guided_backpropagation(module, of="logit"), ROUNDING),
        f"LRP, epsilon rule of {RELEVANCE_EPSILON:g}": (
            relevance(module, RELEVANCE_EPSILON),
            ours.layer_relevance(module),
            1e-9,
        ),
        "LRP, its default rule (epsilon 1e-09)": (relevance(module, None), ours.layer_relevance(module), 0.1),
        f"NoiseTunnel(Saliency), {SAMPLES} draws": (theirs(NoiseTunnel(Saliency(module)), **noise), rough, 0.1),
        "  (ours, two seeds)": (again, rough, 0.1),
    }


def main() -> int:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    warnings.filterwarnings("ignore", message="Setting backward hooks on ReLU")
    print(f"captum {captum.__version__}, torch {torch.__version__}\n\n{'explanation':52}{'dense':>12}{'convolution':>12}")
    cases, wrong = [(*made, pairs(made[0])) for made in (dense(), convolutional())], 0
    for name in cases[0][2]:
        shares = []
        for _, points, found in cases:
            theirs, ours, allowed = found[name]
            expected = ours(points)
            shares.append(float(np.abs(theirs(points) - expected).max() / np.abs(expected).max()))
            wrong += not shares[-1] <= allowed
        print(f"{name:52}" + "".join(f"{share:12.1e}" for share in shares))
    print(f"\n{wrong} of {len(cases) * len(cases[0][2])} differ by more than they should")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
