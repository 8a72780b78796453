from dataclasses import replace

import pytest
import torch
from torch import nn

from facetwalk.experiments.adversarial.attacks import ATTACKS, check_budget
from facetwalk.experiments.adversarial.data_sets import DATA_SETS, STAND_IN
from facetwalk.experiments.adversarial.goals import Goal, Judge, random_targets
from facetwalk.experiments.adversarial.measuring import record_of, run_attack
from facetwalk.experiments.adversarial.networks import IMAGENET
from facetwalk.experiments.adversarial.step_cost import measure_cost, variables
from facetwalk.experiments.adversarial.victims import Victim, find_victims
from facetwalk.objectives import CrossEntropy
from facetwalk.types import InputError
from facetwalk.zoo import MnistCnn, Normalize, WideResNet50_2, fresh_net

BY_NAME = {attack.name: attack for attack in ATTACKS}


@pytest.fixture(scope="module")
def victim() -> Victim:
    (found,), missing = find_victims(STAND_IN, None, None, 12, "cpu")
    assert not missing
    return found


@pytest.mark.parametrize(("budget", "targeted"), [(40, True), (200, False)])
def test_every_attack_but_fgsm_has_the_same_gradients(victim, budget, targeted):
    few = replace(
        victim, images=victim.images[:2], labels=victim.labels[:2], targets=victim.targets[:2]
    )
    for attack in ATTACKS:
        found = run_attack(few, attack, targeted, budget, seed=0)
        expected = 1 if attack.name == "FGSM" else budget
        assert found.gradients.tolist() == [expected] * 2, attack.name
        assert bool(few.space.contains(found.x).all())


@pytest.mark.parametrize("budget", [-2, 0, 1, 41, 150, 1001])
def test_a_budget_that_does_not_come_out_even_is_refused(budget):
    with pytest.raises(InputError, match="the budget must be a multiple of 100"):
        check_budget(budget)


@pytest.mark.parametrize("targeted", [False, True])
def test_fgsm_is_its_formula(victim, targeted):
    x = victim.images.clone().requires_grad_()
    classes = victim.targets if targeted else victim.labels
    loss = nn.functional.cross_entropy(victim.model(x), classes, reduction="sum")
    (gradient,) = torch.autograd.grad(-loss if targeted else loss, x)
    expected = (victim.images + 0.2 * gradient.sign()).clamp(0, 1)
    found = run_attack(victim, BY_NAME["FGSM"], targeted, 40, seed=0)
    judge = victim.goal(targeted).judge
    moved = judge(victim.logits(expected)) >= judge(victim.logits(victim.images))
    assert moved.any()
    assert torch.allclose(found.x[moved], expected[moved], atol=1e-6)
    assert torch.equal(found.x[~moved], victim.images[~moved])


@pytest.mark.parametrize("targeted", [False, True])
def test_records_say_what_a_fresh_look_at_the_points_says(victim, targeted):
    found = run_attack(victim, BY_NAME["ours"], targeted, 100, seed=1)
    record = record_of(victim, found, targeted)
    with torch.no_grad():
        logits = [victim.model(x[None]).double()[0] for x in found.x]
    if targeted:
        goals = victim.targets.tolist()
        reached = [int(row.argmax()) == goal for row, goal in zip(logits, goals, strict=True)]
        losses = [float(row.log_softmax(0)[goal]) for row, goal in zip(logits, goals, strict=True)]
    else:
        goals = victim.labels.tolist()
        reached = [int(row.argmax()) != goal for row, goal in zip(logits, goals, strict=True)]
        losses = [-float(row.log_softmax(0)[goal]) for row, goal in zip(logits, goals, strict=True)]
    assert 0 < sum(reached) < 12
    assert record["success"] == pytest.approx(sum(reached) / 12)
    assert record["objective"] == pytest.approx(sum(losses) / 12, abs=1e-4)
    assert record["gradients"] == 100


def test_an_image_that_is_wrong_before_counts_for_every_attack(victim):
    wrong = replace(victim, labels=(victim.labels + 1) % 10)
    untouched = run_attack(wrong, BY_NAME["FGSM"], False, 40, seed=0)
    back = replace(untouched, x=victim.images + 0)
    for found in (untouched, back):
        record = record_of(wrong, found, targeted=False)
        assert record["reached_before"] == record["success"] == 1.0


def test_targets_are_wrong_classes_and_the_same_for_all(victim):
    labels = torch.arange(3000) % 1000
    targets = random_targets(labels, 1000)
    assert not bool((targets == labels).any())
    assert int(targets.min()) >= 0
    assert int(targets.max()) < 1000
    assert torch.equal(targets, random_targets(labels, 1000))
    assert torch.equal(targets[:10], random_targets(labels[:10], 1000))
    assert torch.equal(victim.targets, random_targets(victim.labels, 10))
    for attack in ATTACKS:
        assert victim.goal(True).targets is victim.targets, attack.name


def test_success_is_worth_more_than_any_loss():
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(4000, 4, generator=generator)
    labels = torch.zeros(4000, dtype=torch.int64)
    for goal in (Goal(labels), Goal(labels, labels + 2)):
        reached, value = goal.margin(logits) > 0, goal.judge(logits)
        assert value[reached].min() > value[~reached].max()
        order = goal.loss(logits)[reached].argsort(stable=True)
        assert bool((value[reached][order].diff() >= -1e-6).all())
    assert isinstance(Goal(labels).judge, Judge)
    assert isinstance(Goal(labels).loss, CrossEntropy)


def fake(data: str, number: int, model: nn.Module, shape: tuple[int, ...]) -> Victim:
    known = DATA_SETS[data]
    labels = torch.zeros(2, dtype=torch.int64)
    model = model.eval().requires_grad_(False)
    return Victim(known, known.networks[number], model, torch.rand(2, *shape), labels, labels + 1)


def test_variables_are_counted_as_in_the_paper():
    assert variables(fake("mnist", 0, MnistCnn(), (1, 28, 28))) == 9_180
    wide = nn.Sequential(Normalize(), WideResNet50_2())
    assert IMAGENET[0].name == "wide_resnet50_2"
    assert variables(fake("imagenet", 0, wide, (3, 224, 224))) == 351_232


def test_vgg19_with_gates_everywhere_has_more_variables_than_the_paper_counts():
    found = variables(fake("cifar10", 0, fresh_net("cifar-vgg19"), (3, 32, 32)))
    assert found == 3_072 + 304_128


def test_the_cost_of_a_step_is_measured(victim):
    record = measure_cost(victim, 1, most_steps=25)
    assert record["steps"] == 25
    assert record["variables"] == 64 + 1600
    assert set(record["ratios"]) == {"ADR-GD (paper)", "ADR-GD (released)"}
    assert all(1 < ratio < 50 for ratio in record["ratios"].values())


def test_a_step_that_takes_too_long_is_not_measured(victim, monkeypatch):
    monkeypatch.setattr("facetwalk.experiments.adversarial.step_cost._PATIENCE", 1e-3)
    record = measure_cost(victim, 1)
    assert record["left_out"].startswith("a step of PGD takes ")
    assert "ratios" not in record


def test_pools_are_no_reason_to_warn():
    layers = (nn.Conv2d(3, 2, 3), nn.ReLU(), nn.MaxPool2d(5), nn.Flatten(), nn.Linear(72, 10))
    victim = fake("cifar10", 0, nn.Sequential(*layers), (3, 32, 32))
    found = run_attack(victim, BY_NAME["ADR-GD (paper)"], False, 4, seed=0)
    assert found.gradients.tolist() == [4, 4]


def test_autoattack_stays_in_the_same_set_and_its_gradients_are_counted(victim):
    pytest.importorskip("pyautoattack")
    from facetwalk.experiments.adversarial.autoattack import run_autoattack

    ours = run_attack(victim, BY_NAME["ours"], False, 100, seed=0)
    fooled = (victim.goal(False).margin(victim.logits(ours.x)) > 0).nonzero().squeeze(1)[:2]
    easy = replace(
        victim,
        images=victim.images[fooled],
        labels=victim.labels[fooled],
        targets=victim.targets[fooled],
    )
    state = torch.random.get_rng_state()
    found = run_autoattack(easy, seed=0)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert bool(easy.space.contains(found.x).all())
    assert record_of(easy, found, targeted=False)["success"] == 1.0
    assert found.gradients.tolist() == [found.gradients[0].item()] * 2
    assert found.gradients[0] > 1
