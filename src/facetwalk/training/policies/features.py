"""IMPALA's network within a policy of Stable-Baselines3; importing this needs the extra."""

from __future__ import annotations

from typing import Any, Literal

import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from facetwalk.zoo import ImpalaPolicy

_FITS_CACHES = 256
"""Images at once on a CPU: larger batches leave its caches between one layer and the next."""


class ImpalaFeatures(BaseFeaturesExtractor):
    """All of `zoo.ImpalaPolicy` but its last layer."""

    def __init__(self, observation_space: Any, precision: Literal["full", "bf16"]) -> None:
        *body, last = ImpalaPolicy().model
        assert isinstance(last, nn.Linear)
        super().__init__(observation_space, last.in_features)
        self.body = nn.Sequential(*body)
        self.precision = precision
        for layer in self.body.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                assert layer.bias is not None
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def forward(self, x: Tensor) -> Tensor:
        parts = (x,) if x.is_cuda else x.split(_FITS_CACHES)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            return torch.cat([self._of(part) for part in parts]).float()

    def _of(self, x: Tensor) -> Tensor:
        return self.body(x.contiguous(memory_format=torch.channels_last))


def as_impala(policy: Any) -> ImpalaPolicy:
    """The same network as `zoo.impala_policy` loads it, in eval mode on the CPU.

    `policy` is an actor-critic policy with `ImpalaFeatures` and a layer each for logits and value.
    """
    body = policy.features_extractor.body
    weights = {f"model.{name}": value for name, value in body.state_dict().items()}
    for kind in ("weight", "bias"):
        both = torch.cat([getattr(policy.action_net, kind), getattr(policy.value_net, kind)])
        weights[f"logits_fc.{kind}"] = weights[f"model.{len(body)}.{kind}"] = both
    net = ImpalaPolicy(policy.action_net.out_features)
    net.load_state_dict({name: value.detach().cpu() for name, value in weights.items()})
    return net.eval()
