import re

import numpy as np
import pytest
import torch

import facetwalk as fw
from facetwalk.experiments.drawing import blank_figure
from facetwalk.zoo import digits, digits_net

DIGITS = ("attack", "digits", "--data", "digits", "--eps", "0.2", "--budget", 60, "--samples", 12)


def some_digits() -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = digits("test")
    return images[:12], labels[:12]


def test_what_is_found_is_what_the_library_finds(run, read_json, tmp_path):
    out, saved = tmp_path / "out.json", tmp_path / "found.npz"
    printed = run(*DIGITS, "--json", out, "--save", saved)
    images, labels = some_digits()
    found = fw.robustness.attack(digits_net(), images, labels, eps=0.2, budget=60)
    data = read_json(out)
    with np.load(saved) as file:
        arrays = dict(file)
    assert data["success"] == found.success.tolist()
    assert data["margin"] == pytest.approx(found.margin.tolist())
    assert np.array_equal(arrays["adversarial"], found.adversarial.numpy())
    assert np.array_equal(arrays["images"], images.numpy())
    assert np.array_equal(arrays["predicted"], found.predicted.numpy())
    assert f"{found.success.float().mean().item():.2%}" in printed


def test_random_targets_are_wrong_classes_that_the_seed_decides(run, read_json, tmp_path):
    out = tmp_path / "out.json"
    seen = []
    for seed in (0, 0, 1):
        run(*DIGITS, "--targets", "random", "--seed", seed, "--json", out)
        seen.append(read_json(out)["margin"])
    assert seen[0] == seen[1] != seen[2]


def test_one_target_for_all(run, read_json, tmp_path):
    out = tmp_path / "out.json"
    run(*DIGITS, "--targets", 3, "--json", out)
    images, labels = some_digits()
    goal = torch.full_like(labels, 3)
    found = fw.robustness.attack(digits_net(), images, labels, eps=0.2, targets=goal, budget=60)
    assert read_json(out)["success"] == found.success.tolist()
    assert read_json(out)["target_classes"] == [3] * 12


def test_images_that_are_the_target_already_are_counted_and_left_out(run, read_json, tmp_path):
    out = tmp_path / "out.json"
    printed = run(*DIGITS, "--targets", 2, "--json", out)
    images, labels = some_digits()
    there = digits_net()(images).argmax(1) == 2
    goal = torch.full_like(labels, 2)
    found = fw.robustness.attack(digits_net(), images, labels, eps=0.2, targets=goal, budget=60)
    assert 0 < there.sum() < 12
    assert f"target without attack, left out {int(there.sum())}\n" in re.sub(" +", " ", printed)
    assert f"success {found.success[~there].float().mean().item():.2%}\n" in re.sub(
        " +", " ", printed
    )
    assert f"mean margin {found.margin[~there].mean().item():.4g}\n" in re.sub(" +", " ", printed)
    assert read_json(out)["target_without_attack"] == there.tolist()
    run(*DIGITS, "--json", out)
    assert read_json(out)["target_without_attack"] is None


def test_where_every_image_is_the_target_already_there_is_no_share(run, refused, tmp_path):
    images, labels = some_digits()
    torch.save(images[labels == 2], tmp_path / "x.pt")
    torch.save(labels[labels == 2], tmp_path / "y.pt")
    files = ("--images", tmp_path / "x.pt", "--labels", tmp_path / "y.pt")
    asked = ("attack", "digits", *files, "--eps", 0.1, "--targets", 2)
    assert "success none\n" in re.sub(" +", " ", run(*asked))
    match = "wrong without an attack, or sees its target there already, so there is none to draw"
    refused(match, *asked, "--figure", tmp_path / "x.png")


def test_the_json_holds_what_the_model_says_of_each_image(run, read_json, tmp_path):
    out = tmp_path / "out.json"
    run(*DIGITS, "--norm", "L2", "--json", out)
    images, labels = some_digits()
    found = fw.robustness.attack(digits_net(), images, labels, eps=0.2, norm="2", budget=60)
    data = read_json(out)
    assert data["norm"] == "2"
    assert data["labels"] == labels.tolist()
    assert data["predicted"] == digits_net()(found.adversarial).argmax(1).tolist()
    sure = digits_net()(found.adversarial).softmax(1).amax(1)
    assert data["confidence"] == pytest.approx(sure.tolist())
    assert data["findings"] == []


def test_what_makes_figures_doubtful_is_said(run, read_json, tmp_path):
    (tmp_path / "soft.py").write_text(
        "from torch import nn\nfrom facetwalk.zoo import digits_net\n"
        "def net():\n    return nn.Sequential(digits_net(), nn.Softmax(1))\n"
    )
    model, out = f"{tmp_path / 'soft.py'}:net", tmp_path / "out.json"
    options = ("--data", "digits", "--eps", 0.1, "--samples", 10, "--budget", 40, "--json", out)
    printed = run("attack", model, "--shape", "1,8,8", *options)
    assert "note: the outputs are probabilities" in " ".join(printed.split())
    assert [finding["name"] for finding in read_json(out)["findings"]] == ["softmax"]


def test_pictures_are_drawn(run, tmp_path):
    picture = tmp_path / "attack.png"
    run(*DIGITS, "--figure", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--targets", "seven"), "--targets must be a class or random; it is 'seven'"),
        (("--targets", 12), "targets run from 12 to 12, and the model has classes 0 to 9"),
        (("--figure", "nowhere/x.png"), "there is no folder nowhere"),
        (("--figure", "x.doc"), "x.doc must end with"),
        (("--save", "x.npy"), "--save x.npy must end with .npz"),
        (("--bounds", 1, 0), "--bounds must be a lowest and a highest value; they are 1 and 0"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(refused, options, message):
    refused(re.escape(message), *DIGITS, *options)


def test_inputs_that_are_no_images_are_refused_before_the_work(refused, tmp_path):
    torch.save(torch.rand(4, 3), tmp_path / "x.pt")
    torch.save(torch.zeros(4, dtype=torch.int64), tmp_path / "y.pt")
    files = ("--images", tmp_path / "x.pt", "--labels", tmp_path / "y.pt")
    out = tmp_path / "out.json"
    options = ("--eps", 0.1, "--figure", tmp_path / "x.png", "--json", out)
    refused("only images", "attack", "random:3,8,4", *files, *options)
    assert not out.exists()


def test_targets_of_a_model_with_one_output_are_refused(refused, tmp_path):
    torch.save(torch.rand(4, 3), tmp_path / "x.pt")
    torch.save(torch.zeros(4, dtype=torch.int64), tmp_path / "y.pt")
    files = ("--images", tmp_path / "x.pt", "--labels", tmp_path / "y.pt")
    refused("one output", "attack", "random:3,8,1", *files, "--eps", 0.1, "--targets", "random")


@pytest.fixture
def half_wrong(tmp_path) -> tuple[object, ...]:
    """Options for digits, whose first four labels are wrong."""
    images, labels = some_digits()
    torch.save(images, tmp_path / "x.pt")
    torch.save(torch.where(torch.arange(12) < 4, (labels + 1) % 10, labels), tmp_path / "y.pt")
    files = ("--images", tmp_path / "x.pt", "--labels", tmp_path / "y.pt")
    return ("attack", "digits", *files, "--eps", 0.2, "--budget", 60)


def test_images_that_are_wrong_without_an_attack_are_counted_and_not_drawn(
    run, read_json, half_wrong, tmp_path, monkeypatch
):
    drawn = []

    def draw(pictures, *more):
        drawn.append(pictures)
        return blank_figure(1, 1)

    monkeypatch.setattr("facetwalk.cli.attack_command.draw_attack", draw)
    printed = run(*half_wrong, "--figure", tmp_path / "x.png", "--json", tmp_path / "out.json")
    assert re.search(r"wrong without attack +4\n", printed)
    assert read_json(tmp_path / "out.json")["wrong_without_attack"] == [True] * 4 + [False] * 8
    (pictures,) = drawn
    images, labels = some_digits()
    assert torch.equal(pictures.images, images[4:])
    assert torch.equal(pictures.labels, labels[4:])
    truth = torch.load(tmp_path / "y.pt")
    found = fw.robustness.attack(digits_net(), images, truth, 0.2, budget=60)
    assert torch.equal(pictures.adversarial, found.adversarial[4:])
    assert torch.equal(pictures.predicted, found.predicted[4:])


def test_targets_are_drawn_and_images_that_have_them_already_are_not(run, tmp_path, monkeypatch):
    drawn = []

    def draw(pictures, *more):
        drawn.append(pictures)
        return blank_figure(1, 1)

    monkeypatch.setattr("facetwalk.cli.attack_command.draw_attack", draw)
    run(*DIGITS, "--targets", 2, "--figure", tmp_path / "x.png")
    (pictures,) = drawn
    images, _ = some_digits()
    assert torch.equal(pictures.images, images[digits_net()(images).argmax(1) != 2])
    assert pictures.targets.tolist() == [2] * len(pictures.images)


def test_where_no_image_is_right_there_is_nothing_to_draw(refused, half_wrong, tmp_path):
    out = ("--samples", 4, "--figure", tmp_path / "x.png")
    refused("gets every one of these images wrong without an attack", *half_wrong, *out)
