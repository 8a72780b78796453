"""The network of IMPALA for Procgen's images, in the layout of RADIAL-RL's published policies."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from facetwalk.messages import reason
from facetwalk.types import InputError, MissingExtraError
from facetwalk.zoo.checkpoints import from_safetensors, load_weights

ACTIONS = 15


class _Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.model = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.model(x)


class ImpalaPolicy(nn.Module):
    """Logits `(B, actions)` of images `(B, 3, 64, 64)` in [0, 1]; a policy of Procgen's games.

    The last layer also has an output for the value, which `forward` leaves out. It goes by two
    names, as in the published weights.

    >>> ImpalaPolicy()(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 15])
    """

    input_shape = (3, 64, 64)

    def __init__(self, actions: int = ACTIONS) -> None:
        super().__init__()
        self.logits_fc = nn.Linear(256, actions + 1)
        parts: list[nn.Module] = []
        for before, after in ((3, 16), (16, 32), (32, 32)):
            parts += [
                nn.Conv2d(before, after, 3, padding=1),
                nn.MaxPool2d(3, stride=2, padding=1),
                _Residual(after),
                _Residual(after),
            ]
        head = [nn.Flatten(), nn.ReLU(), nn.Linear(2048, 256), nn.ReLU(), self.logits_fc]
        self.model = nn.Sequential(*parts, *head)

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)[:, :-1]


def impala_policy(path: Path | str) -> ImpalaPolicy:
    """The policy whose state dict a file holds, torch's or `.safetensors`, in eval mode; its
    channels lie side by side in memory, which makes it faster.

    >>> impala_policy("nowhere.pt")
    Traceback (most recent call last):
    facetwalk.types.InputError: nowhere.pt cannot be read (FileNotFoundError: ...
    """
    try:
        weights = _read(Path(path))
    except MissingExtraError:
        raise
    except Exception as error:
        raise InputError(f"{path} cannot be read ({reason(error)})") from error
    biases = weights.get("logits_fc.bias") if isinstance(weights, dict) else None
    if not isinstance(biases, Tensor) or biases.ndim != 1:
        raise InputError(f"{path} holds no policy: logits_fc.bias is missing")
    with torch.random.fork_rng(devices=[]):
        fresh = ImpalaPolicy(len(biases) - 1)
    return _side_by_side(load_weights(fresh, weights))


def coinrun_policy() -> ImpalaPolicy:
    """The policy of CoinRun that this project ships, as `impala_policy` gives others.

    `facetwalk.training.policies` made it; the record of how lies beside its weights.

    >>> coinrun_policy()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 15])
    """
    file = resources.files("facetwalk.zoo").joinpath("weights", "coinrun-ppo.safetensors")
    weights = from_safetensors(file.read_bytes(), "a policy that ships")
    with torch.random.fork_rng(devices=[]):
        fresh = ImpalaPolicy()
    return _side_by_side(load_weights(fresh, weights))


def _side_by_side(policy: ImpalaPolicy) -> ImpalaPolicy:
    return policy.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def _read(path: Path) -> Any:
    if path.suffix == ".safetensors":
        return from_safetensors(path.read_bytes(), "a .safetensors file")
    return torch.load(path, "cpu", weights_only=True)
