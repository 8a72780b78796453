"""Trains an image classifier."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from facetwalk.models import untouched_random_state
from facetwalk.progress import Report
from facetwalk.training.augmentation import crop_and_flip
from facetwalk.training.checkpoint import ANEW, Checkpoint
from facetwalk.training.inputs import as_examples, require_images, require_recipe
from facetwalk.training.recipe import Recipe
from facetwalk.training.run_state import RunState
from facetwalk.training.schedules import radius_factor, rate_factor
from facetwalk.types import InputError, ModelError


@dataclass(frozen=True, eq=False)
class Trained:
    """A network in eval mode, and how its training went."""

    net: nn.Module
    history: list[dict[str, float]]
    """`loss` and `accuracy` of each pass, on the images as the method perturbed them."""
    seconds: float
    """Of training, without those that an interruption lost."""


def train(
    recipe: Recipe,
    images: Tensor,
    labels: Tensor,
    *,
    checkpoint: Checkpoint | None = None,
    report: Report = lambda share, text: None,
) -> Trained:
    """A network trained on images `(N, C, H, W)` in [0, 1] and labels `(N,)`, on their device.

    On a CPU the seed decides every weight, whether the training was interrupted or not. The global
    random state is untouched.

    Args:
        checkpoint: where to go on from, and to save to after each pass over the data.
        report: gets the share that is done, and words on the pass before.

    >>> from facetwalk.training import recipe_of
    >>> from dataclasses import replace
    >>> images, labels = torch.rand(20, 1, 28, 28), torch.arange(20) % 10
    >>> trained = train(replace(recipe_of("mnist-natural"), epochs=2), images, labels)
    >>> trained.net(images).shape, len(trained.history)
    (torch.Size([20, 10]), 2)
    """
    require_recipe(recipe)
    require_images(images)
    with torch.enable_grad(), untouched_random_state(images.device):
        run = RunState(recipe, images.device)
        images, labels = as_examples(run.net, images, labels, recipe.architecture)
        run.dropout.manual_seed(recipe.seed)
        if checkpoint is not None:
            _go_on(run, checkpoint)
        began = time.perf_counter() - run.seconds
        while len(run.history) < recipe.passes:
            run.history.append(_pass(recipe, run, images, labels, report))
            run.seconds = time.perf_counter() - began
            if not math.isfinite(run.history[-1]["loss"]):
                raise ModelError(
                    f"training {recipe.name} diverged in pass {len(run.history)}: its loss is no "
                    "number; use a smaller learning rate"
                )
            if checkpoint is not None:
                checkpoint.save(run.snapshot())
        return Trained(run.net.eval(), run.history, run.seconds)


def _go_on(run: RunState, checkpoint: Checkpoint) -> None:
    """Put the run where its checkpoint was made, if there is one."""
    state = checkpoint.load()
    if state is None:
        return
    try:
        run.restore(state)
    # What another network or another version saved raises errors of every kind.
    except Exception as error:
        raise InputError(
            f"{checkpoint.path} does not fit the network that is trained: {ANEW}"
        ) from error


def _pass(
    recipe: Recipe, run: RunState, images: Tensor, labels: Tensor, report: Report
) -> dict[str, float]:
    """One pass over the data. It waits for the device only at its end."""
    photographs = recipe.data == "cifar10"
    autocast = torch.autocast(
        images.device.type, torch.bfloat16, enabled=photographs and images.is_cuda
    )
    words = _words(recipe, run.history)
    batches = -(-len(images) // recipe.batch_size)
    totals = torch.zeros(2, device=images.device)
    order = torch.randperm(len(images), generator=run.generator, device=images.device)
    for batch, rows in enumerate(order.split(recipe.batch_size)):
        x, y = images[rows], labels[rows]
        if photographs:
            x = crop_and_flip(x, run.generator)
        for repeat in range(recipe.repeats):
            done = (len(run.history) + (batch + repeat / recipe.repeats) / batches) / recipe.passes
            report(done, words)
            for group in run.optimizer.param_groups:
                group["lr"] = recipe.learning_rate * rate_factor(done)
            radius = recipe.radius * radius_factor(done)
            with autocast:
                perturbed = run.method.prepare(run.net, x, y, radius)
                logits = run.net.train()(perturbed)
                loss = F.cross_entropy(logits, y)
            run.optimizer.zero_grad()
            loss.backward()
            run.method.learn(radius)
            run.optimizer.step()
            totals += torch.stack([loss.detach() * len(y), (logits.argmax(1) == y).sum()])
    mean_loss, accuracy = (totals / (len(images) * recipe.repeats)).tolist()
    return {"loss": mean_loss, "accuracy": accuracy}


def _words(recipe: Recipe, history: list[dict[str, float]]) -> str:
    words = f"pass {len(history) + 1} of {recipe.passes}"
    if history:
        words += f", loss {history[-1]['loss']:.3f}, accuracy {history[-1]['accuracy']:.1%}"
    return words
