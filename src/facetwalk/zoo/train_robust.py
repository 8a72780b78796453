"""Trains robust image classifiers: `python -m facetwalk.zoo.train_robust NAME... --data FOLDER`."""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from facetwalk.data import cifar10, mnist
from facetwalk.types import FacetwalkError, MissingExtraError
from facetwalk.zoo.adversarial import accuracy, attack_success, perturb
from facetwalk.zoo.robust import BY_NAME, RobustTraining

_WARM_UP = 0.2
"""Share of the training in which the learning rate rises; then it falls to zero."""
_RAMP = 1 / 3
"""Share in which the radius grows; at full radius from the start small networks stay constant."""
_CROP_MARGIN = 4
_ATTACKED_IMAGES = 1000
_ATTACK_STEPS = 100
_ATTACK_RESTARTS = 2

_READERS = {"mnist": mnist, "cifar10": cifar10}


def crop_and_flip(images: Tensor, generator: Generator) -> Tensor:
    """Images `(B, C, H, W)`, each shifted by up to 4 pixels and half of them mirrored."""
    count, _, height, width = images.shape
    device = images.device
    shift_y, shift_x = torch.randint(
        2 * _CROP_MARGIN + 1, (2, count, 1), generator=generator, device=device
    )
    mirrored = torch.rand(count, 1, generator=generator, device=device) < 0.5
    rows = shift_y + torch.arange(height, device=device)
    columns = shift_x + torch.arange(width, device=device)
    columns = torch.where(mirrored, columns.flip(1), columns)
    numbers = torch.arange(count, device=device)[:, None, None]
    padded = F.pad(images, [_CROP_MARGIN] * 4)
    return padded[numbers, :, rows[:, :, None], columns[:, None, :]].movedim(3, 1)


def train(
    training: RobustTraining,
    images: Tensor,
    labels: Tensor,
    report: Callable[[str], object] = lambda words: None,
) -> nn.Module:
    """A network trained on perturbed images `(N, C, H, W)` and labels `(N,)`, in eval mode.

    It is on the device of the images. On a CPU the seed decides every weight. `report` gets a
    line after each epoch.
    """
    start = time.perf_counter()
    net = _fresh_net(training).to(images.device)
    natural = training.data == "cifar10"
    if natural:
        net.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    autocast = torch.autocast(
        images.device.type, torch.bfloat16, enabled=natural and images.is_cuda
    )
    generator = Generator(images.device).manual_seed(training.seed)
    batches = -(-len(images) // training.batch_size)
    optimizer = torch.optim.Adam(net.parameters(), training.learning_rate, fused=True)
    for epoch in range(training.epochs):
        order = torch.randperm(len(images), generator=generator, device=images.device)
        totals = torch.zeros(2, device=images.device)
        for batch, rows in enumerate(order.split(training.batch_size)):
            done = (epoch + batch / batches) / training.epochs
            optimizer.param_groups[0]["lr"] = training.learning_rate * rate_factor(done)
            radius = training.radius * radius_factor(done)
            x, y = images[rows], labels[rows]
            if natural:
                x = crop_and_flip(x, generator)
            with autocast:
                x = perturb(net.eval(), x, y, radius, training.attack_steps, generator)
                logits = net.train()(x)
                loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            totals += torch.stack([loss.detach() * len(y), (logits.argmax(1) == y).sum()])
        mean_loss, robust_accuracy = (totals / len(images)).tolist()
        reached = training.radius * radius_factor((epoch + 1) / training.epochs)
        report(
            f"{training.name} epoch {epoch + 1}/{training.epochs}: loss {mean_loss:.3f}, "
            f"robust accuracy {robust_accuracy:.1%} at radius {reached:.3f}, "
            f"{time.perf_counter() - start:.0f} s"
        )
    return net.eval()


def rate_factor(done: float) -> float:
    """The learning rate, as a share of its highest, once a share `done` of training is over.

    >>> [rate_factor(done) for done in (0.1, 0.2, 0.6)]
    [0.5, 1.0, 0.5]
    """
    return min(done / _WARM_UP, (1 - done) / (1 - _WARM_UP))


def radius_factor(done: float) -> float:
    """The radius, as a share of the full one, once a share `done` of training is over."""
    return min(1, done / _RAMP)


def _fresh_net(training: RobustTraining) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        return training.architecture()


def measure(
    training: RobustTraining, net: nn.Module, images: Tensor, labels: Tensor
) -> dict[str, float]:
    """What `net` is worth on test images `(N, C, H, W)` with labels `(N,)`."""
    attacked = min(_ATTACKED_IMAGES, len(images))
    success = attack_success(
        net,
        images[:attacked],
        labels[:attacked],
        radius=training.radius,
        steps=_ATTACK_STEPS,
        restarts=_ATTACK_RESTARTS,
        generator=Generator(images.device).manual_seed(0),
    )
    return {
        "clean_accuracy": accuracy(net, images, labels),
        "test_images": len(images),
        "robust_accuracy": 1 - success,
        "attacked_images": attacked,
        "attack_steps": _ATTACK_STEPS,
        "attack_restarts": _ATTACK_RESTARTS,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the named networks; write weights, and beside them what they are worth."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _options(arguments)
    command = shlex.join(["python", "-m", "facetwalk.zoo.train_robust", *arguments])
    for name in options.names:
        training = BY_NAME[name]
        if options.epochs is not None:
            training = replace(training, epochs=options.epochs)
        try:
            _make(training, options, command)
        except FacetwalkError as error:
            raise SystemExit(f"error: {error}") from error


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("facetwalk.zoo.train_robust", description=main.__doc__)
    parser.add_argument(
        "names", nargs="+", metavar="NAME", choices=BY_NAME, help=", ".join(BY_NAME)
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of MNIST or CIFAR-10")
    parser.add_argument("--out", type=Path, required=True, help="folder for what is made")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--images", type=_positive, help="use only so many images of each split")
    parser.add_argument("--epochs", type=_positive, help="instead of those of the network")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("no CUDA device can be used here: leave out --device")
    return options


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def _make(training: RobustTraining, options: argparse.Namespace, command: str) -> None:
    try:
        from safetensors.torch import save
    except ImportError as error:
        raise MissingExtraError("saving robust networks", "demo") from error
    read = _READERS[training.data]
    (images, labels), test = (
        [part[: options.images].to(options.device) for part in read(options.data, split)]
        for split in ("train", "test")
    )
    torch.backends.cudnn.benchmark = options.device == "cuda"
    start = time.perf_counter()
    net = train(training, images, labels, partial(print, flush=True))
    seconds = time.perf_counter() - start
    measured = measure(training, net, *test)
    print(
        f"{training.name}: clean accuracy {measured['clean_accuracy']:.1%}, robust accuracy "
        f"{measured['robust_accuracy']:.1%} at radius {training.radius:.3f}",
        flush=True,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.cpu().contiguous() for name, tensor in net.state_dict().items()}
    (options.out / f"{training.name}.safetensors").write_bytes(save(weights))
    settings = {key: value for key, value in vars(training).items() if key != "architecture"}
    record = {
        "training": {**settings, "images": len(images)},
        "test": measured,
        "seconds": round(seconds, 1),
        "command": command,
        "torch": torch.__version__,
        "machine": _machine(options.device),
    }
    (options.out / f"{training.name}.json").write_text(json.dumps(record, indent=1) + "\n")


def _machine(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {torch.get_num_threads()} threads"


if __name__ == "__main__":
    main()
