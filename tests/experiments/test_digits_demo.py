from dataclasses import replace

import pytest
import torch

from facetwalk.experiments.digits_demo import EPS, Attack, DemoResult, methods, run
from facetwalk.maximize import Problem, maximize
from facetwalk.objectives import CrossEntropy
from facetwalk.solvers import AdrGd
from facetwalk.spaces import LinfBall
from facetwalk.types import InputError
from facetwalk.zoo import digits_net


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run(images=4, evaluations=10, seed=5)


@pytest.mark.parametrize("evaluations", [10, 300])
def test_every_method_but_fgsm_has_the_same_gradients(evaluations):
    fgsm, *others = methods(evaluations)
    assert (fgsm.solver.steps, fgsm.starts) == (1, 1)
    for method in others:
        each = method.solver.steps * method.solver.gradients_per_step
        assert each * method.starts == evaluations


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
    problem = Problem(digits_net(), CrossEntropy(result.labels), space)
    for attack in result.attacks:
        method = attack.method
        x0 = "sample" if method.starts > 1 else "center"
        again = maximize(problem, solver=method.solver, starts=method.starts, x0=x0, seed=5)
        assert torch.equal(attack.x, again.x)
        assert torch.allclose(attack.cross_entropy, again.value)
        assert bool((attack.cross_entropy >= again.initial_value - 1e-6).all())


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
    ("fooled", "end"),
    [
        (
            [0, 2, 1, 1, 1, 1, 0],
            "ADR-GD (paper) fools 1 of 4 images and Sign 2: ADR-GD loses by 1 image.",
        ),
        (
            [0, 1, 1, 1, 1, 2, 4],
            "ADR-GD (released-attack) fools 4 of 4 images and Sign 1: ADR-GD wins by 3 images.",
        ),
        (
            [0, 0, 0, 0, 3, 3, 0],
            "ADR-GD (paper) fools 3 of 4 images and APGD (5 starts) 3: ADR-GD ties at 3 images.",
        ),
    ],
)
def test_the_verdict_says_who_wins(result, fooled, end):
    assert made_up(result, fooled).verdict == f"With 10 gradients an image, {end}"


def test_the_strongest_fools_most_and_then_has_the_highest_loss(result):
    assert made_up(result, [0, 1, 2, 4, 3, 0, 0]).strongest.method.name == "APGD"

    def louder(attack: Attack) -> Attack:
        return replace(attack, logits=attack.logits * 2)

    tied = made_up(result, [0, 3, 3, 0, 0, 0, 0])
    attacks = list(tied.attacks)
    attacks[2] = louder(attacks[2])
    assert replace(tied, attacks=tuple(attacks)).strongest.method.name == "Sign (5 starts)"


@pytest.mark.parametrize("images", [-1, 0, 501])
def test_images_that_there_are_not_are_refused(images):
    with pytest.raises(InputError, match="images must be from 1 to"):
        run(images=images, evaluations=10)
