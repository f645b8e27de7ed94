"""Networks trained at once are what they would be alone, and explanations by backpropagation are what they are called."""

import functools
import warnings

import captum.attr
import numpy as np
import pytest
import torch
from captum.attr._utils.lrp_rules import EpsilonRule

from vitrail.audit import targets
from vitrail.audit.shadow import Networks, descend, glorot, halves
from vitrail.audit.targets import RELEVANCE_EPSILON
from vitrail.errors import InvalidInput

torch.set_num_threads(1)


def alone(matrices, place, activation):
    """One of the networks as an ordinary torch module."""
    parts = []
    for layer in range(0, len(matrices), 2):
        linear = torch.nn.Linear(matrices[layer].shape[1], matrices[layer].shape[2]).double()
        with torch.no_grad():
            linear.weight.copy_(matrices[layer][place].T)
            linear.bias.copy_(matrices[layer + 1][place, 0])
        parts += [linear, torch.nn.Tanh() if activation == "tanh" else torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("name", ["adam", "adagrad", "sgd"])
def test_every_network_is_trained_as_plain_torch_trains_it_alone(name, activation):
    """The same start and rows, weighted: whether one or three are trained, and by whom, makes no difference."""
    generator = torch.Generator().manual_seed(0)
    matrices = [matrix.double() for matrix in glorot(3, (5, 7, 6, 4), "cpu", generator)]
    modules = [alone(matrices, place, activation) for place in range(3)]
    points = torch.randn((24, 5), generator=generator, dtype=torch.float64)
    classes = torch.randint(0, 4, (24,), generator=generator)
    counts = torch.rand(24, generator=generator, dtype=torch.float64)
    index = torch.stack([torch.randperm(24, generator=generator)[:16] for _ in range(3)])
    rates = {"learning_rate": 0.05, "weight_decay": 1e-2, "learning_rate_decay": 1e-2}
    how = Networks(activation=activation, optimizer=name, epochs=5, batch_size=16, **rates)
    descend(matrices, (points, classes, counts), index, how, generator, lambda units: None)
    for place, module in enumerate(modules):
        optimizer = {
            "adam": lambda own: torch.optim.Adam(own, lr=0.05, weight_decay=1e-2),
            "adagrad": lambda own: torch.optim.Adagrad(own, lr=0.05, lr_decay=1e-2, weight_decay=1e-2),
            "sgd": lambda own: torch.optim.SGD(own, lr=0.05, weight_decay=1e-2),
        }[name](module.parameters())
        rows = index[place]
        for _ in range(5):
            optimizer.zero_grad()
            each = torch.nn.functional.cross_entropy(module(points[rows]), classes[rows], reduction="none")
            (each * counts[rows]).mean().backward()
            optimizer.step()
        for layer, linear in enumerate(module[::2]):
            assert torch.allclose(matrices[2 * layer][place], linear.weight.T, atol=1e-12)
            assert torch.allclose(matrices[2 * layer + 1][place, 0], linear.bias, atol=1e-12)


@pytest.fixture(scope="module")
def trained():
    generator = np.random.default_rng(1)
    points = generator.normal(size=(120, 6))
    labels = (points[:, 0] * points[:, 1] > 0).astype(int)
    recipe = Networks(hidden=(16, 8), activation="relu", epochs=20, learning_rate=1e-2)
    return recipe.fit(points, labels, [np.arange(60), np.arange(60, 120)]), points, labels


def test_networks_learn(trained):
    networks, points, labels = trained
    assert len(networks.modules) == 2
    assert networks.accuracy(points[:60], labels[:60])[0] > 0.75
    assert networks.predict(points).sum(axis=2) == pytest.approx(1.0)


def test_halves_are_complementary():
    chosen, inside = halves(6, 40, 20, seed=3)
    assert [len(one) for one in chosen] == [20] * 6
    assert (inside.sum(axis=0) == 3).all()


FINE_PATH = functools.partial(targets.integrated_gradients, steps=400)
ADAPTERS = {
    "gradient": targets.gradient,
    "input x gradient": targets.input_x_gradient,
    "integrated gradients": FINE_PATH,
    "guided backpropagation": targets.guided_backpropagation,
    "layer relevance": targets.layer_relevance,
    "smooth gradient": functools.partial(targets.smooth_gradient, samples=5),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_explanations_of_many_networks_are_those_of_each(trained, name):
    networks, points, _ = trained
    module = networks.modules[1]
    found = networks.explain(points[:7], ADAPTERS[name])[1]
    assert found.shape == (7, 6)
    assert np.allclose(found, ADAPTERS[name](module)(points[:7]), atol=1e-9)
    assert np.allclose(networks.only(1).predict(points[:7])[0], targets.predictions(module)(points[:7]))


def test_the_gradient_is_a_difference_quotient(trained):
    networks, points, _ = trained
    one, step = networks.only(0), 1e-6
    found = one.explain(points[:5])[0]
    chosen = one.predict(points[:5])[0].argmax(axis=1)
    for feature in range(6):
        shift = np.eye(6)[feature] * step
        ends = [one.predict(points[:5] + side * shift)[0][np.arange(5), chosen] for side in (1, -1)]
        assert np.allclose(found[:, feature], (ends[0] - ends[1]) / (2 * step), atol=1e-5)


def test_integrated_gradients_add_up_from_the_baseline_to_the_point(trained):
    networks, points, _ = trained
    one = networks.only(0)
    chosen = one.predict(points)[0].argmax(axis=1)
    gap = one.predict(points)[0][np.arange(120), chosen] - one.predict(0 * points)[0][np.arange(120), chosen]
    assert np.abs(one.explain(points, FINE_PATH)[0].sum(axis=1) - gap).max() < 0.02


def test_relevance_adds_up_to_the_logit_without_biases():
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 6, bias=False), torch.nn.ReLU(), torch.nn.Linear(6, 3, bias=False)
    ).double()
    points = np.random.default_rng(2).normal(size=(10, 4))
    logits = module(torch.as_tensor(points)).detach().numpy()
    assert np.allclose(targets.layer_relevance(module)(points).sum(axis=1), logits.max(axis=1), atol=1e-3)


def test_guided_signals_are_positive_only():
    """With positive weights below, a guided gradient cannot be negative."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).double()
    with torch.no_grad():
        module[0].weight.abs_()
    points = np.random.default_rng(3).normal(size=(10, 4))
    assert (targets.guided_backpropagation(module, of="logit")(points) >= 0).all()
    assert (targets.gradient(module, of="logit")(points) < 0).any()


def test_smooth_gradients_without_noise_are_gradients(trained):
    module = trained[0].modules[0]
    points = trained[1][:5]
    assert np.allclose(targets.smooth_gradient(module, sigma=0.0, samples=2)(points), targets.gradient(module)(points))
    assert not np.allclose(targets.smooth_gradient(module, sigma=0.5)(points), targets.gradient(module)(points))


def test_pictures_go_through_convolutions():
    torch.manual_seed(1)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(18, 3)
    )
    pictures = np.random.default_rng(4).uniform(size=(3, 1, 8, 8))
    for adapter in (targets.gradient, targets.guided_backpropagation, targets.layer_relevance, targets.integrated_gradients):
        found = adapter(module)(pictures)
        assert found.shape == (3, 64)
        assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Networks(activation="sigmoid"), "activation is"),
        (lambda: Networks(optimizer="lion"), "optimizer is"),
        (lambda: Networks(explain="lime"), "explain is"),
        (lambda: Networks(epochs=0), "epochs is 0"),
        (lambda: targets.gradient(torch.nn.Linear(2, 2), of="loss"), "of is"),
        (lambda: Networks().fit(np.zeros((9, 2)), np.arange(9) % 2, [np.arange(3), np.arange(4)]), "equally large"),
        (lambda: targets.guided_backpropagation(torch.nn.Linear(2, 2))(np.zeros((2, 2))), "activation layers"),
        (lambda: targets.layer_relevance(Column(1))(np.zeros((2, 2))), "Sequential"),
        (
            lambda: targets.layer_relevance(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Softmax(1)))(
                np.zeros((2, 2))
            ),
            "softmax",
        ),
        (lambda: targets.captum(3), "captum"),
        (lambda: targets.captum(captum.attr.Saliency(lambda points: points)), "torch.nn.Module"),
        (lambda: targets.captum(RELEVANCE, return_convergence_delta=True)(np.zeros((3, 2))), "attributions alone"),
        (lambda: targets.lime(3, len, width=2), "LimeTabularExplainer"),
    ],
)
def test_bad_recipes_are_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


RELEVANCE = captum.attr.LRP(torch.nn.Sequential(torch.nn.Linear(2, 2)))


def test_attributions_explain_the_predicted_class_the_asked_one_or_the_only_output():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
    rows = np.random.default_rng(0).normal(size=(1500, 4))  # more than are asked at once
    saliency = captum.attr.Saliency(module)
    np.testing.assert_allclose(
        targets.captum(saliency, abs=False)(rows), targets.gradient(module, of="logit")(rows), atol=1e-15
    )
    second = torch.nn.Sequential(module, torch.nn.Flatten(), Column(1))
    asked = targets.captum(saliency, abs=False, target=1)(rows)
    alone = targets.captum(captum.attr.Saliency(second), abs=False)(rows)
    np.testing.assert_allclose(asked, alone, atol=1e-15)
    assert not np.allclose(asked, targets.captum(saliency, abs=False)(rows))


def dense():
    layers = (torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    return torch.nn.Sequential(*layers).double(), np.random.default_rng(0).normal(size=(60, 6))


def convolutional():
    first = torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2)
    second = torch.nn.Conv2d(4, 4, 3), torch.nn.ReLU(), torch.nn.AvgPool2d(2)
    layers = (*first, *second, torch.nn.Flatten(), torch.nn.Linear(4, 3))
    return torch.nn.Sequential(*layers).double(), np.random.default_rng(0).normal(size=(30, 1, 8, 8))


@pytest.mark.parametrize("make", [dense, convolutional])
def test_explanations_are_captums_of_every_output_by_itself(make):
    """Ours hand captum the sum over points, guide by hooks of our own, and set its rules layer by layer."""
    torch.manual_seed(0)
    module, points = make()
    theirs, attr = targets.captum, captum.attr
    probabilities = torch.nn.Sequential(module, torch.nn.Softmax(dim=-1))
    middle = {"n_steps": 32, "method": "riemann_middle"}
    pairs = [
        (theirs(attr.Saliency(module), abs=False), targets.gradient(module, of="logit")),
        (theirs(attr.Saliency(probabilities), abs=False), targets.gradient(module)),
        (theirs(attr.InputXGradient(module)), targets.input_x_gradient(module, of="logit")),
        (theirs(attr.IntegratedGradients(module), **middle), targets.integrated_gradients(module, of="logit")),
        (theirs(attr.GuidedBackprop(module)), targets.guided_backpropagation(module, of="logit")),
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Setting backward hooks on ReLU")
        for expected, found in pairs:
            np.testing.assert_allclose(found(points), expected(points), atol=1e-13)
    found = targets.layer_relevance(module)(points)
    assert not any(hasattr(layer, "rule") for layer in module)  # the audited module is left alone
    for layer in module:
        if isinstance(layer, torch.nn.ReLU):
            layer.inplace = False
        else:
            layer.rule = EpsilonRule(RELEVANCE_EPSILON)
    np.testing.assert_allclose(found, theirs(attr.LRP(module))(points), atol=1e-13)


def test_positive_signals_and_relevance_pass_through_activations_of_every_kind():
    """captum guides through ReLU alone and refuses to hand relevance through what it does not know."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Softplus(), torch.nn.Linear(6, 3)).double()
    with torch.no_grad():
        module[0].weight.abs_()
        module[0].bias.zero_()
        module[2].bias.zero_()
    points = np.random.default_rng(3).normal(size=(10, 4))
    assert (targets.guided_backpropagation(module, of="logit")(points) >= 0).all()
    assert (targets.gradient(module, of="logit")(points) < 0).any()
    logits = module(torch.as_tensor(points)).detach().numpy()
    assert np.allclose(targets.layer_relevance(module)(points).sum(axis=1), logits.max(axis=1), atol=1e-3)


class Column(torch.nn.Module):
    """One output, as a number per row."""

    def __init__(self, column):
        super().__init__()
        self.column, self.layer = column, torch.nn.Identity()

    def forward(self, values):
        return self.layer(values)[:, self.column]


def test_shap_explainers_are_targets():
    import shap

    rows = np.random.default_rng(5).normal(size=(60, 3))
    explainer = shap.explainers.Exact(lambda x: np.column_stack([x[:, 0], -x[:, 1]]), rows[:20])
    found = targets.shap(explainer)(rows[:10])
    assert found.shape == (10, 3)
    larger = rows[:10, 0] > -rows[:10, 1]
    assert np.allclose(found[larger][:, 1:], 0, atol=1e-9)


def test_lime_answers_become_rows():
    class Answer:
        def as_map(self):
            return {1: [(2, 0.5), (0, -1.0)]}

    class Explainer:
        def explain_instance(self, row, predict, top_labels, num_features):
            assert (top_labels, num_features) == (1, 3)
            return Answer()

    assert targets.lime(Explainer(), len, width=3)(np.zeros((2, 3))).tolist() == [[-1.0, 0.0, 0.5]] * 2
