import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from small_problems import dark_and_bright, same_weights, tiny

from facetwalk.training import Checkpoint, Recipe, train
from facetwalk.types import InputError


class StoppedError(Exception):
    pass


def interrupted_at(share: float):
    def report(done: float, words: str) -> None:
        if done >= share:
            raise StoppedError

    return report


def checkpoint_of(folder: Path, **asked) -> Checkpoint:
    return Checkpoint(folder / "tiny.checkpoint", {"epochs": 6} | asked)


def interrupted(folder: Path, recipe: Recipe, share: float) -> None:
    with pytest.raises(StoppedError):
        train(
            recipe,
            *dark_and_bright(100),
            checkpoint=checkpoint_of(folder),
            report=interrupted_at(share),
        )


@pytest.mark.parametrize("method", ["natural", "fgsm", "pgd", "free"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_an_interrupted_training_ends_with_the_same_weights(method, optimizer, tmp_path):
    recipe = tiny(method=method, optimizer=optimizer)
    images, labels = dark_and_bright(100)
    whole = train(recipe, images, labels)
    before = torch.get_rng_state()
    interrupted(tmp_path, recipe, 0.4)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)  # another process has another global state
    interrupted(tmp_path, recipe, 0.8)
    seen = []
    resumed = train(
        recipe,
        images,
        labels,
        checkpoint=checkpoint_of(tmp_path),
        report=lambda share, words: seen.append(share),
    )
    assert min(seen) >= 0.6
    assert resumed.history == whole.history
    assert same_weights(resumed.net, whole.net)


def test_what_is_finished_is_not_trained_again(tmp_path):
    recipe = tiny()
    images, labels = dark_and_bright(100)
    first = train(recipe, images, labels, checkpoint=checkpoint_of(tmp_path))
    again = train(
        recipe, images, labels, checkpoint=checkpoint_of(tmp_path), report=interrupted_at(0)
    )
    assert same_weights(first.net, again.net)
    assert again.seconds == first.seconds


KILLED = """
import sys, time
sys.path[:0] = {path!r}
from pathlib import Path
from small_problems import TinyNet, dark_and_bright, tiny
from facetwalk.training import Checkpoint, train
from facetwalk.zoo import ARCHITECTURES
ARCHITECTURES["tiny"] = TinyNet
checkpoint = Checkpoint(Path({folder!r}) / "tiny.checkpoint", {{"epochs": 6}})
slowly = lambda share, words: time.sleep(0.2)
train(tiny(epochs=40), *dark_and_bright(100), checkpoint=checkpoint, report=slowly)
"""


def test_a_killed_process_goes_on_where_it_was(tmp_path):
    program = KILLED.format(path=sys.path, folder=str(tmp_path))
    checkpoint = checkpoint_of(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        while not checkpoint.path.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.1)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    recipe = tiny(epochs=40)
    images, labels = dark_and_bright(100)
    shares = []
    resumed = train(
        recipe,
        images,
        labels,
        checkpoint=checkpoint,
        report=lambda share, words: shares.append(share),
    )
    whole = train(recipe, images, labels)
    assert shares[0] > 0
    assert resumed.history == whole.history
    assert same_weights(resumed.net, whole.net)


def test_a_checkpoint_may_be_named_by_a_text(tmp_path):
    Checkpoint(str(tmp_path / "net.checkpoint"), {}).save({"number": 1})
    assert Checkpoint(tmp_path / "net.checkpoint", {}).load() == {"number": 1}


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    interrupted(tmp_path, tiny(), 0.5)
    match = r"tiny\.checkpoint is of another training \(epochs 6 and not 7\): add --restart"
    with pytest.raises(InputError, match=match):
        checkpoint_of(tmp_path, epochs=7).load()


def test_a_checkpoint_of_another_network_or_version_is_refused_in_a_sentence(tmp_path):
    images, labels = dark_and_bright(10, 1, 28)
    other = tiny(data="mnist", architecture="mnist-strided")
    train(other, images, labels, checkpoint=checkpoint_of(tmp_path))
    refused_by_tiny(tmp_path)
    checkpoint_of(tmp_path).save({"weights": 1})
    refused_by_tiny(tmp_path)


def refused_by_tiny(folder: Path) -> None:
    match = r"tiny\.checkpoint does not fit the network that is trained: add --restart"
    with pytest.raises(InputError, match=match) as found:
        train(tiny(), *dark_and_bright(100), checkpoint=checkpoint_of(folder))
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("kind", ["cut off", "noise", "another file", "empty"])
def test_a_broken_checkpoint_is_refused_in_a_sentence(kind, tmp_path):
    checkpoint = checkpoint_of(tmp_path)
    checkpoint.save({"weights": torch.rand(1000)})
    content = checkpoint.path.read_bytes()
    if kind == "another file":
        torch.save([1, 2], checkpoint.path)
    else:
        broken = {"cut off": content[: len(content) // 2], "noise": b"noise" * 9, "empty": b""}
        checkpoint.path.write_bytes(broken[kind])
    with pytest.raises(InputError, match=r"cannot be read as a checkpoint: add --restart") as found:
        checkpoint.load()
    assert "\n" not in str(found.value)


def test_a_write_that_fails_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    checkpoint = checkpoint_of(tmp_path)
    checkpoint.save({"number": 1})

    def failing(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", failing)
    with pytest.raises(InputError, match=r"cannot be written: No space left on device"):
        checkpoint.save({"number": 2})
    assert checkpoint.load() == {"number": 1}
