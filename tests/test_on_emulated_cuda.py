"""On an imitated GPU all is computed where it belongs, and comes out as on a CPU.

`test_cuda.py` asks a real one, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import gymnasium
import numpy as np
import pytest
import torch
from emulated_cuda import emulated_cuda, needs_no_gpu
from torch import Tensor, nn

import facetwalk as fw
from facetwalk import control, normals, objectives, robustness, sites, solvers
from facetwalk.exact import proving
from facetwalk.objectives import CrossEntropy, Linear, Margin, Output, TargetedMargin
from facetwalk.solvers import AdrGd, Auto, Sign
from facetwalk.zoo import StackedNetworks, random_network, uniform_network

pytestmark = needs_no_gpu

T = TypeVar("T")


def on_both(work: Callable[[str], T]) -> tuple[T, T]:
    """The same work on the CPU and on the device."""
    here = work("cpu")
    with emulated_cuda():
        return here, work("cuda")


def at(device: str, where: str) -> str:
    """Where something lies that need not lie with a model on this device."""
    return where if device == "cuda" else "cpu"


def assert_same(here: Any, there: Any, *names: str) -> None:
    """These tensors are on the device, and as on the CPU."""
    for name in names:
        one, other = getattr(here, name), getattr(there, name)
        assert other.is_cuda, name
        torch.testing.assert_close(other.cpu(), one, rtol=1e-6, atol=1e-6)


def convolutions() -> nn.Module:
    """Max pooling, which is not affine, and clamps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(36, 8),
            nn.Hardtanh(-1, 1),
            nn.Linear(8, 4),
        ).eval()


class Shortcut(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = convolution(0, 1), convolution(1, 3)
        self.norm, self.pool = nn.BatchNorm2d(3), nn.AvgPool2d(2)
        self.out = random_network((12, 3), 2)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu_(self.norm(self.first((x - 0.3) / 0.5)))
        return self.out(self.pool(torch.relu(x + self.second(x))).flatten(1))


class Mirrored(nn.Module):
    """Intervals do not know what it does to its neurons."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = random_network((3, 6), 0), random_network((6, 1), 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.rsub(torch.relu(self.first(x)), 1.0, alpha=2.0))


def convolution(seed: int, channels: int) -> nn.Conv2d:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Conv2d(channels, 3, 3, padding=1)


def pixels(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0))


class TestExact:
    @pytest.fixture(autouse=True)
    def _highs(self):
        pytest.importorskip("highspy", reason="highspy is not installed")

    def agree(self, work: Callable[[str], fw.exact.Proof]) -> fw.exact.Proof:
        here, there = on_both(work)
        assert_same(here, there, "x")
        assert there.value == pytest.approx(here.value)
        assert there.bound == pytest.approx(here.bound)
        assert (there.proven, there.engine) == (here.proven, here.engine)
        return there

    @pytest.mark.parametrize("engine", ["boxes", "milp"])
    @pytest.mark.parametrize("options", [{}, {"threshold": 2.0}, {"time_limit": 1e-6}], ids=str)
    def test_a_box(self, engine, options):
        net, x0 = uniform_network((4, 14, 10, 1), 0), pixels(1, 4)
        space, goal = fw.Box(-1, 1, shape=(4,)), Output(0)
        options = {"engine": engine, "x0": x0, **options}
        self.agree(lambda device: fw.exact.maximize(net.to(device), space, goal, **options))

    def test_optimised_slopes(self, monkeypatch):
        monkeypatch.setattr(proving, "_EVALUATIONS", 20)
        net, space = uniform_network((12, 24, 16, 1), 0), fw.Box(-0.1, 0.1, shape=(12,))
        options = {"engine": "milp", "threshold": 5.0, "time_limit": None}
        proof = self.agree(
            lambda device: fw.exact.maximize(net.to(device), space, Output(0), **options)
        )
        assert proof.nodes == 0

    def test_what_intervals_do_not_know(self):
        net, space = Mirrored().eval(), fw.Box(-1, 1, shape=(3,))
        proof = self.agree(lambda device: fw.exact.maximize(net.to(device), space, Output(0)))
        assert proof.proven

    @pytest.mark.parametrize("engine", ["boxes", "milp"])
    @pytest.mark.parametrize(
        "goal",
        [
            Margin(torch.tensor([1])),
            TargetedMargin(torch.tensor([1])),
            Linear(torch.eye(3)[None], torch.zeros(1, 3)),
        ],
        ids=lambda goal: type(goal).__name__,
    )
    def test_an_image(self, engine, goal):
        net = Shortcut().eval()

        def proof(device: str) -> fw.exact.Proof:
            image = pixels(1, 1, 4, 4).to(device)
            space = fw.LinfBall(image, eps=0.02, bounds=(0, 1))
            options = {"engine": engine, "gap": 1e-3, "x0": image}
            return fw.exact.maximize(net.to(device), space, goal, **options)

        self.agree(proof)

    def test_a_certificate(self):
        net, space = uniform_network((4, 14, 10, 1), 0), fw.Box(-1, 1, shape=(4,))

        def certificate(device: str) -> fw.exact.Certificate:
            problem = fw.Problem(net.to(device), Output(0), space)
            return fw.exact.local_certificate(problem, torch.zeros(4), 0.2)

        here, there = on_both(certificate)
        assert not there.holds
        assert_same(here, there, "better")
        assert there.proof.bound == pytest.approx(here.proof.bound)


CENTERS = pixels(5, 8).double()
LABELS = torch.arange(5) % 4
SPACES = {
    "box": lambda c: fw.Box(c - 1, c + 0.5, shape=(8,)),
    "linf": lambda c: fw.LinfBall(c, eps=0.3, bounds=(0, 1)),
    "l2": lambda c: fw.L2Ball(c, eps=0.5, bounds=(0, 1)),
    "l1": lambda c: fw.L1Ball(c, eps=0.8, bounds=(torch.zeros(8), torch.ones(8))),
    "ball and box": lambda c: fw.Intersection(fw.L2Ball(c, eps=0.5), fw.Box(0, 1, shape=(8,))),
    "two balls": lambda c: fw.Intersection(fw.L2Ball(c, eps=0.5), fw.LinfBall(c + 0.1, eps=0.3)),
}
RESULT = ("x", "value", "initial_value")


def some_network() -> nn.Module:
    return random_network((8, 20, 15, 4), 1).double()


def agree(problem: Callable[[str], fw.Problem], **options: Any) -> fw.Result:
    here, there = on_both(lambda device: fw.maximize(problem(device), **options))
    assert_same(here, there, *RESULT)
    assert there.status == here.status
    assert torch.equal(there.evaluations.backward, here.evaluations.backward)
    return there


class TestMaximize:
    def problem(self, device: str, goal: Any = None) -> fw.Problem:
        goal = goal or CrossEntropy(LABELS)
        return fw.Problem(some_network().to(device), goal, SPACES["l2"](CENTERS.to(device)))

    @pytest.mark.parametrize("name", solvers.BY_NAME)
    def test_every_solver(self, name):
        steps = {} if name == "fgsm" else {"steps": 12}
        agree(self.problem, solver=solvers.BY_NAME[name](**steps), starts=2, x0="sample")

    @pytest.mark.parametrize("where", ["with the model", "on the host"])
    @pytest.mark.parametrize("kind", SPACES)
    def test_every_space(self, kind, where):
        def problem(device: str) -> fw.Problem:
            centers = CENTERS.to(device if where == "with the model" else "cpu")
            return fw.Problem(some_network().to(device), Output(0), SPACES[kind](centers))

        agree(problem, evaluations=10)

    @pytest.mark.parametrize(
        "goal",
        [
            Margin(LABELS),
            objectives.TargetedDLR(LABELS, (LABELS + 1) % 4),
            objectives.Guided(Margin(LABELS), CrossEntropy(LABELS)),
            objectives.DecisionCost(pixels(5, 4)),
            lambda outputs: outputs.sum(1),
        ],
    )
    def test_populations(self, goal):
        agree(lambda device: self.problem(device, goal), evaluations=80)

    @pytest.mark.parametrize("where", ["cpu", "cuda"])
    def test_starts_seeds_and_thresholds(self, where):
        """They may lie on the host or on the device."""
        given = {"x0": CENTERS, "seed": LABELS, "stop_at": LABELS.double() + 0.5}

        def result(device: str) -> fw.Result:
            own = {name: part.to(at(device, where)) for name, part in given.items()}
            return fw.maximize(self.problem(device), evaluations=100, **own)

        here, there = on_both(result)
        assert_same(here, there, *RESULT)
        assert there.status == here.status

    def test_who_looks_on_sees_the_device(self):
        seen: list[fw.Step] = []
        options = {"evaluations": 60, "callback": lambda step: seen.append(step), "trace": True}
        here, there = on_both(lambda device: fw.maximize(self.problem(device), **options))
        assert_same(here.trace, there.trace, "best")
        half = len(seen) // 2
        for one, other in zip(seen[:half], seen[half:], strict=True):
            assert_same(one, other, "problem", "x", "value", "best")

    @pytest.mark.parametrize("solver", [AdrGd(steps=6), AdrGd(steps=6, normals="probed")])
    def test_images(self, solver):
        net = convolutions()

        def problem(device: str) -> fw.Problem:
            space = fw.LinfBall(pixels(3, 1, 6, 6).to(device), eps=0.1, bounds=(0, 1))
            return fw.Problem(net.to(device), Margin(torch.arange(3)), space)

        with pytest.warns(fw.NotAffineWarning):
            agree(problem, solver=solver)

    def test_each_problem_with_its_own_network(self):
        nets = StackedNetworks([random_network((4, 12, 10, 1), seed).double() for seed in range(4)])
        space = fw.Box(-1, 1, shape=(4,))
        problem = lambda device: fw.Problem(nets.to(device), Output(0), space)  # noqa: E731
        agree(problem, evaluations=100, stop_at=0.5)

    def test_rounded_steps_and_a_budget_in_time(self):
        with emulated_cuda():
            found = fw.maximize(self.problem("cuda"), seconds=0.2, precision="bf16", stop_at=9.0)
        assert found.x.is_cuda


def test_normals_and_facets():
    net, x = convolutions(), pixels(3, 1, 6, 6)

    def measured(device: str) -> list[Tensor]:
        there, at = net.to(device), x.to(device)
        facets = sites.first_facet(there, at, torch.ones_like(at))
        return [facets, *normals.distances(there, at)]

    for here, there in zip(*on_both(measured), strict=True):
        assert there.is_cuda
        torch.testing.assert_close(there.cpu(), here)


class TestRobustness:
    images = pixels(12, 4)
    labels = random_network((4, 8, 3), 0)(images).argmax(1).roll(1)

    @pytest.mark.parametrize("where", ["cpu", "cuda"])
    @pytest.mark.parametrize("norm", ["inf", "2", "1"])
    def test_attacks(self, norm, where):
        def found(device: str) -> robustness.Attack:
            images, labels = (part.to(at(device, where)) for part in (self.images, self.labels))
            net = random_network((4, 8, 3), 0).to(device)
            return robustness.attack(net, images, labels, 0.2, norm=norm, budget=30)

        here, there = on_both(found)
        assert_same(here, there, "adversarial", "margin", "predicted", "success")

    @pytest.mark.parametrize("where", ["cpu", "cuda"])
    def test_evaluations_go_on(self, tmp_path, where):
        attacks = {"sign": Sign(steps=3), "auto": Auto(evaluations=40)}

        def report(device: str) -> robustness.Report:
            images, labels = (part.to(at(device, where)) for part in (self.images, self.labels))
            net, folder = random_network((4, 8, 3), 0).to(device), tmp_path / device
            options = {"attacks": attacks, "folder": folder, "chunk": 7}
            robustness.evaluate(net, images, labels, 0.1, **options)
            lines = (folder / "samples.jsonl").read_text().splitlines(keepends=True)
            (folder / "samples.jsonl").write_text("".join(lines[:7]))
            return robustness.evaluate(net, images, labels, 0.1, **options)

        here, there = on_both(report)
        assert [s.broken_by for s in there.samples] == [s.broken_by for s in here.samples]


class TestControl:
    @pytest.mark.parametrize("aim", ["away", "worst", "costly"])
    def test_observations(self, aim):
        policy, seen = random_network((4, 16, 3), 0), (255 * pixels(6, 4)).byte().numpy()
        here, there = on_both(
            lambda device: control.perturbed(policy.to(device), seen, aim=aim, solver=Sign(steps=5))
        )
        assert_same(here, there, "observations", "actions", "own", "flipped")

    def test_episodes(self):
        policy = random_network((4, 16, 2), 0)

        def episodes(device: str) -> control.Episodes:
            env = gymnasium.make_vec("CartPole-v1", num_envs=2)
            return control.play(policy.to(device), env, 2, attack=Sign(steps=3), eps=0.05)

        here, there = on_both(episodes)
        assert here.returns.tolist() == there.returns.tolist()

    def test_actions(self):
        from stable_baselines3 import TD3

        settings = {"policy_kwargs": {"net_arch": [16]}, "buffer_size": 1, "seed": 0}

        def refined(device: str) -> control.Refined:
            agent = TD3("MlpPolicy", "Pendulum-v1", device=device, **settings)
            return control.refine(agent, np.zeros((5, 3), dtype=np.float32))

        here, there = on_both(refined)
        np.testing.assert_allclose(here.actions, there.actions, rtol=1e-5)
