"""IMPALA's network within a policy of Stable-Baselines3; importing this needs the extra."""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from facetwalk.zoo import ImpalaPolicy


class ImpalaFeatures(BaseFeaturesExtractor):
    """All of `zoo.ImpalaPolicy` but its last layer; on a GPU it counts in bfloat16."""

    def __init__(self, observation_space: Any) -> None:
        *body, last = ImpalaPolicy().model
        assert isinstance(last, nn.Linear)
        super().__init__(observation_space, last.in_features)
        self.body = nn.Sequential(*body)
        for layer in self.body.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                assert layer.bias is not None
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
            return self.body(x.contiguous(memory_format=torch.channels_last)).float()


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
