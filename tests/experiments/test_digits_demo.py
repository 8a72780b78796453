from dataclasses import replace

import pytest
import torch

from facetwalk.experiments.digits_demo import EPS, DemoResult, methods, run
from facetwalk.maximize import maximize
from facetwalk.objectives import CrossEntropy, Margin
from facetwalk.problem import Problem
from facetwalk.solvers import AdrGd, Auto
from facetwalk.spaces import LinfBall
from facetwalk.types import InputError
from facetwalk.zoo import digits_net


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run(images=4, evaluations=10, seed=5)


@pytest.mark.parametrize("evaluations", [10, 300])
def test_every_method_but_fgsm_has_the_same_gradients(evaluations):
    auto, fgsm, *others = methods(evaluations)
    assert auto.solver == Auto(evaluations=evaluations)
    assert auto.starts == 1
    assert (fgsm.solver.evaluations, fgsm.starts) == (1, 1)
    for method in others:
        assert method.solver.evaluations * method.starts == evaluations


def test_the_gradients_are_counted(result):
    for attack in result.attacks:
        expected = 1 if attack.method.name == "FGSM" else 10
        assert attack.gradients.tolist() == [expected] * 4
        assert attack.ran.evaluations * attack.method.starts == expected


def test_every_method_has_run_before_the_first_is_timed(monkeypatch):
    ran = []

    def noted(problem, *, solver, **options):
        ran.append(type(solver))
        return maximize(problem, solver=solver, **options)

    monkeypatch.setattr("facetwalk.experiments.digits_demo.maximize", noted)
    run(images=1, evaluations=20)
    each = [type(method.solver) for method in methods(20)]
    assert ran == each + each


def test_adr_gd_keeps_its_best_point_like_the_others():
    presets = [m.solver for m in methods(20) if isinstance(m.solver, AdrGd)]
    assert [solver.record_only_noise_steps for solver in presets] == [False, False]
    expected = AdrGd.for_experiment("mnist-untargeted", "released-attack")
    changed = {"steps": 10, "record_only_noise_steps": False, "normals": "probed"}
    assert presets[1] == replace(expected, **changed)
    assert presets[0] == replace(AdrGd.for_experiment("mnist-untargeted"), **changed)


@pytest.mark.parametrize("evaluations", [-10, 0, 15, 1])
def test_gradients_that_do_not_come_out_even_are_refused(evaluations):
    with pytest.raises(InputError, match="positive multiple of 10"):
        methods(evaluations)


def test_attacks_are_those_of_maximize(result):
    space = LinfBall(result.images, EPS, bounds=(0, 1))
    for attack in result.attacks:
        method = attack.method
        problem = Problem(digits_net(), method.objective(result.labels), space)
        x0 = "sample" if method.starts > 1 else "center"
        again = maximize(problem, solver=method.solver, starts=method.starts, x0=x0, seed=5)
        assert torch.equal(attack.x, again.x)
        assert torch.allclose(attack.margin, again.value)
        assert bool((attack.margin >= again.initial_value - 1e-6).all())
        assert attack.ran == again.solver


def test_every_method_is_judged_by_the_margin_and_rivals_climb_what_suits_them():
    labels, logits = torch.tensor([0]), torch.tensor([[1.0, 2.0, 4.0]])
    climbs = {"Auto": Margin, "FGSM": CrossEntropy, "Sign": CrossEntropy, "APGD": CrossEntropy}
    for method in methods(10):
        objective = method.objective(labels)
        assert objective(logits).item() == 3.0
        guide = getattr(objective, "guide", objective)
        assert type(guide) is climbs.get(method.name.split()[0], Margin)


def test_fooled_images_are_misclassified(result):
    for attack in result.attacks:
        wrong = digits_net()(attack.x).argmax(1) != result.labels
        assert torch.equal(attack.fooled, wrong)


def made_up(result: DemoResult, fooled: list[int]) -> DemoResult:
    """The same methods, with so many of the four images fooled by each."""
    attacks = []
    for attack, count in zip(result.attacks, fooled, strict=True):
        logits = torch.nn.functional.one_hot(result.labels, 10).float()
        logits[:count] *= -1
        attacks.append(replace(attack, logits=logits))
    return replace(result, attacks=tuple(attacks))


@pytest.mark.parametrize(
    ("fooled", "rival"),
    [
        ([1, 0, 2, 1, 1, 0], "Sign (10 starts), fools 2, mean margin 0.000."),
        ([1, 0, 0, 0, 3, 0], "ADR-GD (paper), fools 3, mean margin 0.500."),
        ([1, 4, 0, 3, 0, 0], "FGSM, fools 4, mean margin 1.000."),
    ],
)
def test_the_verdict_compares_our_default_with_the_best_other_method(result, fooled, rival):
    assert made_up(result, fooled).verdict == (
        "With 10 gradients an image, our default fools 1 of 4 images, mean margin -0.500; "
        f"the best other method, {rival}"
    )


def test_of_rivals_that_fool_as_many_the_one_with_the_larger_margin_counts(result):
    tied = made_up(result, [0, 0, 3, 3, 0, 0])
    attacks = list(tied.attacks)
    assert ", Sign (10 starts), fools 3" in tied.verdict
    attacks[3] = replace(attacks[3], logits=attacks[3].logits * 2)
    assert ", APGD (10 starts), fools 3" in replace(tied, attacks=tuple(attacks)).verdict


@pytest.mark.parametrize("images", [-1, 0, 501])
def test_images_that_there_are_not_are_refused(images):
    with pytest.raises(InputError, match="images must be from 1 to"):
        run(images=images, evaluations=10)
