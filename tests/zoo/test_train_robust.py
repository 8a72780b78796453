import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Generator, Tensor, nn

from facetwalk.zoo import adversarial, train_robust
from facetwalk.zoo.robust import BY_NAME, RobustTraining
from facetwalk.zoo.train_robust import crop_and_flip, measure, radius_factor, rate_factor, train

NAME = "mnist-strided-0.3"


class TinyNet(nn.Sequential):
    """Batch norm, so that the mode matters."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 8, 3, stride=2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(392, 2),
        )


TINY = RobustTraining(
    name="tiny",
    data="cifar10",
    architecture=TinyNet,
    radius=0.1,
    attack_steps=3,
    epochs=6,
    batch_size=50,
    learning_rate=1e-2,
    seed=0,
)


def dark_and_bright(count: int, channels: int = 3, side: int = 16) -> tuple[Tensor, Tensor]:
    """Noise around 0.25 or around 0.75: two classes."""
    generator = Generator().manual_seed(0)
    labels = torch.arange(count) % 2
    noise = torch.rand(count, channels, side, side, generator=generator) * 0.4 - 0.2
    return 0.25 + 0.5 * labels[:, None, None, None] + noise, labels


def robust_loss(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    generator = Generator().manual_seed(1)
    x = adversarial.perturb(net, images, labels, TINY.radius, 10, generator)
    return F.cross_entropy(net(x), labels).item()


@pytest.fixture
def small_mnist(monkeypatch) -> None:
    """Two classes in place of MNIST, and a short attack."""
    monkeypatch.setitem(
        train_robust._READERS, "mnist", lambda folder, split: dark_and_bright(80, 1, 28)
    )
    monkeypatch.setattr(train_robust, "_ATTACK_STEPS", 3)


def test_training_lowers_the_robust_loss_and_prints_nothing_by_itself(capsys):
    images, labels = dark_and_bright(300)
    before = robust_loss(train_robust._fresh_net(TINY).eval(), images, labels)
    lines: list[str] = []
    net = train(TINY, images, labels, lines.append)
    assert not net.training
    assert robust_loss(net, images, labels) < before - 0.3
    assert capsys.readouterr().out == ""
    assert len(lines) == 6
    assert lines[0].startswith("tiny epoch 1/6: loss ")
    assert "at radius 0.050, " in lines[0]
    assert "at radius 0.100, " in lines[-1]


def test_the_seed_decides_the_network_and_the_global_generator_is_untouched():
    images, labels = dark_and_bright(100)
    before = torch.get_rng_state()
    seeds = (0, 0, 1)
    nets = [train(replace(TINY, seed=seed, epochs=2), images, labels) for seed in seeds]
    assert torch.equal(torch.get_rng_state(), before)
    first, same, other = (net(images) for net in nets)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_perturbations_are_made_in_eval_mode(monkeypatch):
    modes = []

    def watched(net, *arguments):
        modes.append(net.training)
        return adversarial.perturb(net, *arguments)

    monkeypatch.setattr(train_robust, "perturb", watched)
    net = train(replace(TINY, epochs=2), *dark_and_bright(100))
    assert modes == [False] * 4
    assert net[1].num_batches_tracked == 4  # pyright: ignore[reportIndexIssue]


def test_crops_are_shifted_and_mirrored_copies():
    images = torch.rand(64, 3, 6, 5, generator=Generator().manual_seed(0))
    padded = F.pad(images, [4] * 4)
    found = set()
    for number, crop in enumerate(crop_and_flip(images, Generator().manual_seed(0))):
        places = [
            (y, x, mirrored)
            for y in range(9)
            for x in range(9)
            for mirrored in (False, True)
            for window in [padded[number, :, y : y + 6, x : x + 5]]
            if torch.equal(crop, window.flip(2) if mirrored else window)
        ]
        assert places
        found.add(places[0])
    assert {y for y, _, _ in found} == {x for _, x, _ in found} == set(range(9))
    assert {mirrored for _, _, mirrored in found} == {False, True}


def test_rate_and_radius_rise_and_only_the_rate_falls():
    assert [rate_factor(done) for done in (0, 0.2, 1)] == [0, 1, 0]
    assert [radius_factor(done) for done in (0, 1 / 6, 1 / 3, 1)] == [0, 0.5, 1, 1]


def test_measuring_counts_what_is_right_before_and_after_the_attack():
    class Brightness(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            mean = x.mean((1, 2, 3))
            return torch.stack([0.5 - mean, mean - 0.5], 1)

    levels = torch.tensor([0.1, 0.45, 0.52, 0.7])
    images = levels[:, None, None, None].expand(4, 3, 16, 16)
    measured = measure(TINY, Brightness(), images, torch.tensor([0, 0, 1, 0]))
    assert measured["clean_accuracy"] == 0.75
    assert measured["robust_accuracy"] == 0.25
    assert (measured["test_images"], measured["attacked_images"]) == (4, 4)


@pytest.mark.usefixtures("small_mnist")
def test_the_command_writes_weights_and_a_record(tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    arguments = [NAME, "--data", "a b", "--out", str(out), "--images", "60", "--epochs", "2"]
    train_robust.main(arguments)
    training = replace(BY_NAME[NAME], epochs=2)
    images, labels = dark_and_bright(80, 1, 28)
    expected = train(training, images[:60], labels[:60])
    written = load_file(out / f"{NAME}.safetensors")
    assert all(torch.equal(written[name], value) for name, value in expected.state_dict().items())
    record = json.loads((out / f"{NAME}.json").read_text())
    assert record["training"]["seed"] == training.seed
    assert (record["training"]["epochs"], record["training"]["images"]) == (2, 60)
    assert record["test"] == measure(training, expected, images[:60], labels[:60])
    assert record["command"].startswith(f"python -m facetwalk.zoo.train_robust {NAME} --data 'a b'")
    assert record["torch"] == torch.__version__
    assert record["seconds"] > 0
    assert "threads" in record["machine"]
    assert f"{NAME}: clean accuracy " in capsys.readouterr().out


def test_the_command_names_missing_data(tmp_path: Path):
    with pytest.raises(SystemExit, match="error: there is no train-images-idx3-ubyte"):
        train_robust.main([NAME, "--data", str(tmp_path), "--out", str(tmp_path)])


def test_the_command_without_safetensors_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(SystemExit, match=r"facetwalk\[demo\]"):
        train_robust.main([NAME, "--data", str(tmp_path), "--out", str(tmp_path)])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["mnist"], "invalid choice: 'mnist'"),
        ([NAME, "--epochs", "0"], "--epochs: invalid"),
        ([NAME, "--images", "many"], "--images: invalid"),
        ([NAME, "--device", "cuda"], "no CUDA device can be used here"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, match, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        train_robust.main([*options, "--data", "in", "--out", "out"])
    assert match in capsys.readouterr().err
