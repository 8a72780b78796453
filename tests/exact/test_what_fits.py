"""Networks of all makes beside the plain ones that they are, and what does not fit, in words."""

import copy
import sys
import threading
import warnings

import pytest
import torch
from small_networks import brute_force, network
from torch import nn
from torch.nn.utils import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from typer.testing import CliRunner

import facetwalk as fw
from facetwalk import exact
from facetwalk.cli.app import app
from facetwalk.objectives import Linear, Margin, Output, TargetedMargin
from facetwalk.zoo import StackedNetworks

ENGINES = ("boxes", "milp")
THREE = fw.Box(-1, 1, shape=(3,))


def highest(net, objective=None, space=THREE, **options):
    return exact.maximize(net, space, objective or Output(0), gap=1e-4, **options)


def without_relus(*sizes):
    return nn.Sequential(*(part for part in network(*sizes) if isinstance(part, nn.Linear))).eval()


def affine_layers(first, second):
    """`w * x + b` for two pairs of numbers, with a ReLU between them."""
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)).double().eval()
    for layer, (weight, bias) in zip((net[0], net[2]), (first, second), strict=True):
        layer.weight.data.fill_(weight)
        layer.bias.data.fill_(bias)
    return net


@pytest.fixture
def net():
    return network(3, 8, 4, seed=5)


def compiled_within(net):
    inner = torch.compile(nn.Sequential(torch.compile(net[2], backend="eager")), backend="eager")
    return nn.Sequential(torch.compile(net[0], backend="eager"), net[1], inner).eval()


def compiled_in_place(net):
    net.compile(backend="eager")
    return net


@pytest.mark.parametrize(
    "compiled",
    [lambda net: torch.compile(net, backend="eager"), compiled_within, compiled_in_place],
    ids=["whole", "within", "in place"],
)
def test_compiled_networks_are_what_they_were_made_from(net, compiled):
    expected = highest(net)
    made = compiled(copy.deepcopy(net)).eval()
    kinds = [type(part) for part in made.modules()]
    proof = highest(made)
    assert (proof.value, proof.bound) == (expected.value, expected.bound)
    assert [type(part) for part in made.modules()] == kinds


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("runs", [0, 2])
@pytest.mark.parametrize(
    ("norm", "removed"), [(weight_norm, remove_weight_norm), (spectral_norm, remove_spectral_norm)]
)
def test_normed_weights_are_those_that_the_norm_gives(norm, removed, runs):
    made = network(3, 8, 4, seed=6)
    torch.manual_seed(0)  # a spectral norm is estimated from random vectors
    norm(made[0])
    made.eval()
    for _ in range(runs):
        made(torch.zeros(1, 3, dtype=torch.float64))
    before = made[0].weight
    proof = highest(made, Output(1))
    assert made[0].weight is before
    plain = made
    removed(plain[0])
    right = brute_force(plain, -1, 1, torch.eye(4)[1].double().numpy())
    assert proof.proven
    assert proof.value - 1e-6 <= right <= proof.bound + 1e-9


class Remembering(nn.Module):
    """Keeps what it computed, as networks do that show their features."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        self.features = self.net(x)
        return self.features


def test_networks_that_remember_what_they_computed_are_proven(net):
    expected, remembering = highest(net), Remembering(net).eval()
    remembering(torch.ones(1, 3, dtype=torch.float64))
    assert highest(remembering).value == expected.value
    assert remembering.features.requires_grad


def test_what_cannot_be_copied_is_said_in_words(net):
    net.lock = threading.Lock()
    with pytest.raises(
        fw.ModelError, match=r"the network cannot be copied.*: TypeError: cannot pi"
    ):
        highest(net)


def test_torchscript_is_refused(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scripted = torch.jit.script(net)
    with pytest.raises(fw.ModelError, match="TorchScript module, which nothing can be proven of"):
        highest(scripted)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("objective", [Output(1), Output(1, sign=-1), Margin(torch.tensor([0]))])
def test_the_maximum_of_an_affine_network_is_at_a_corner(engine, objective):
    affine = without_relus(3, 5, 4)
    space = fw.Box(torch.tensor([-1.0, 0.5, 0.2]), torch.tensor([2.0, 0.6, 0.2]))
    corners = torch.cartesian_prod(*torch.cat([space.low, space.high]).double().T)
    best = objective(affine(corners)).max().item()
    proof = highest(affine, objective, space, engine=engine)
    assert proof.proven
    assert proof.value == pytest.approx(best, abs=1e-9)
    assert best <= proof.bound <= best + 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_a_specification_of_an_affine_network_is_the_smallest_of_its_rows(engine):
    weights = torch.tensor([[[1.0, -1.0], [-1.0, 1.0]]])
    unsafe = Linear(weights, torch.tensor([[0.25, 0.5]]))  # min(d + 0.25, 0.5 - d) is 0.375
    affine = nn.Linear(2, 2, bias=False).eval()
    affine.weight.data.copy_(torch.eye(2))
    proof = highest(affine, unsafe, fw.Box(-1, 1, shape=(2,)), engine=engine)
    assert proof.proven
    assert proof.value == pytest.approx(0.375, abs=2e-4)


def test_a_point_of_an_affine_network_is_certified():
    affine = without_relus(3, 1)
    task = fw.Problem(affine, Output(0), THREE)
    best = affine[0].weight.detach()[0].sign()
    assert exact.local_certificate(task, best, 0.5).holds
    assert not exact.local_certificate(task, 0 * best, 0.5).holds


def test_a_network_that_only_bends_elsewhere_is_refused_by_name():
    with pytest.raises(fw.ModelError, match="the network uses Sigmoid where nothing is proven"):
        highest(nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()).eval())


def test_outputs_without_a_second_dimension_are_one_output(net):
    flat = nn.Sequential(*net, nn.Linear(4, 1).double(), nn.Flatten(0)).eval()
    assert flat(torch.zeros(2, 3, dtype=torch.float64)).shape == (2,)
    assert highest(flat).value == pytest.approx(highest(flat[:-1].eval()).value, abs=1e-4)


def test_a_proof_does_not_care_for_inference_mode(net):
    expected = highest(net)
    with torch.inference_mode():
        task = fw.Problem(net, Output(0), fw.Box(-1, 1, shape=(3,)))
        proof = highest(net, space=task.space)
        assert exact.local_certificate(task, proof.x.float(), 0.1).holds
    assert proof.value == expected.value


SPECIFICATION = Linear(torch.ones(1, 2, 3), torch.zeros(1, 2))


@pytest.mark.parametrize(
    ("objective", "match"),
    [
        (Output(4), "output 4 was asked for, and the model has 4 outputs"),
        (Output(-5), "output -5 was asked for, and the model has 4 outputs"),
        (Margin(torch.tensor([9])), "labels run from 9 to 9, and the model has classes 0 to 3"),
        (Margin(torch.tensor([-1])), "labels run from -1 to -1, and the model has classes 0 to 3"),
        (TargetedMargin(torch.tensor([4])), "labels run from 4 to 4, and the model has classes 0"),
        (SPECIFICATION, "the specification is on 3 outputs, and the model has 4"),
    ],
)
def test_objectives_that_do_not_fit_the_outputs_are_refused(net, objective, match):
    with pytest.raises(fw.InputError, match=match):
        highest(net, objective)


MAXIMA = {
    "torch.maximum": lambda a, b: torch.maximum(a, b),
    "torch.maximum of named ones": lambda a, b: torch.maximum(input=a, other=b),
    "torch.max": lambda a, b: torch.max(a, b),
    "max": lambda a, b: a.max(other=b),
    "minus the minimum": lambda a, b: -torch.minimum(-a, -b),
    "minus the min": lambda a, b: -(-a).min(-b),
    "clamp": lambda a, b: a.clamp(min=b),
    "minus the clip": lambda a, b: -torch.clip(-a, max=-b),
}


class Maxout(nn.Module):
    """The sum of the larger ones of two layers' outputs, and of a far guard: a convex function."""

    def __init__(self, larger):
        super().__init__()
        self.one, self.other = network(3, 6, 1, seed=1)[0], network(3, 6, 1, seed=2)[0]
        self.larger = larger

    def forward(self, x):
        found = self.larger(self.one(x), self.other(x))
        return self.larger(found, torch.full_like(found, -2000)).sum(1, keepdim=True)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("spelling", MAXIMA)
def test_maxima_of_two_tensors_are_hinges_however_large_they_are(spelling, engine):
    maxout = Maxout(MAXIMA[spelling]).eval()
    corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0]).double()] * 3)
    best = maxout(corners).max().item()
    proof = highest(maxout, engine=engine)
    assert proof.proven
    assert proof.value == pytest.approx(best, abs=1e-4)
    assert best <= proof.bound + 1e-9


class Pair(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("net", "space", "error", "match"),
    [
        (network(3, 5, 4), fw.Box(-1, 1, shape=(4,)), fw.ModelError, r"shape \(1, 4\) and type"),
        (network(3, 5, 1), THREE, fw.InputError, "logits .* with two classes or more"),
        (Pair().eval(), THREE, fw.ModelError, "must return a tensor with a row for each input"),
        (lambda x: x, THREE, fw.InputError, "must be a torch.nn.Module; it is a function"),
        (
            StackedNetworks([network(3, 5, 4, seed=seed) for seed in range(2)]),
            THREE,
            fw.InputError,
            "a proof is about one problem, and the network describes 2",
        ),
    ],
)
def test_networks_that_do_not_fit_are_refused(net, space, error, match):
    with pytest.raises(error, match=match):
        highest(net, Margin(torch.tensor([0])), space)


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused(net, number):
    net[0].weight.data[0] = number
    with pytest.raises(fw.ModelError, match="weights that are infinite or no numbers"):
        highest(net)


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_that_overflow_are_refused(engine):
    net = affine_layers((1e200, -1e200), (1e200, 0.0))  # 0 up to 1, and 1e400 at 2
    for low in (-2, 1.5):
        with pytest.raises(fw.ModelError, match="the network's numbers overflow somewhere"):
            highest(net, space=fw.Box(low, 2, shape=(1,)), engine=engine)


def test_a_specification_must_be_finite(net):
    unsafe = Linear(torch.ones(1, 2, 4), torch.tensor([[0.0, torch.inf]]))
    with pytest.raises(fw.InputError, match="a specification must have finite weights and offsets"):
        highest(net, unsafe)


def test_a_network_that_fails_on_one_input_is_refused():
    together = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=False)).eval()
    said = r"fails on an input of shape \(1, 3\) .* Expected more"
    with pytest.raises(fw.ModelError, match=said):
        highest(together)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_linear_bounds_settle_needs_no_program(monkeypatch, net, engine):
    monkeypatch.setitem(sys.modules, "highspy", None)
    proof = highest(net, engine=engine, threshold=1e6)
    assert proof.bound <= 1e6
    assert proof.nodes == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("far", [1e7, 1e30])
def test_far_guards_cost_values_no_digits_and_bounds_no_truth(engine, far):
    class Guarded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network(3, 6, 1, seed=1)

        def forward(self, x):
            y = self.net(x)
            return torch.maximum(y, torch.full_like(y, -far))

    guarded = Guarded().eval()
    right = brute_force(guarded.net, -1, 1, torch.eye(1)[0].double().numpy())
    proof = highest(guarded, engine=engine)
    assert proof.value == guarded.net(proof.x[None]).item()
    assert proof.value - 1e-6 <= right <= proof.bound
    assert proof.proven is (far == 1e7)


@pytest.mark.parametrize(
    ("objective", "match"),
    [("output:7", "output 7 was asked for"), ("margin:9", "labels run from 9 to 9")],
)
def test_the_command_says_it_in_one_sentence(objective, match):
    command = ["optimum", "random:3,8,4", "--box", "-1", "1", "--objective", objective]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert match in result.stderr
    assert result.stderr.count("\n") == 1
