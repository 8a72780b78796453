"""Networks that do less work than Stable-Baselines3's own, and learn the same."""

import numpy as np
import pytest
import torch
from stable_baselines3 import DDPG, TD3
from stable_baselines3.common.noise import NormalActionNoise

from facetwalk.control import RefinedDDPG, RefinedTD3
from facetwalk.experiments.rl.lean_policy import LeanPolicy
from facetwalk.solvers import Sign

KINDS = [TD3, DDPG, RefinedTD3, RefinedDDPG]


def trained(kind, policy, steps=120, **optimizer):
    more = {"solver": Sign(steps=3)} if kind in (RefinedTD3, RefinedDDPG) else {}
    return kind(
        policy,
        "Pendulum-v1",
        seed=0,
        buffer_size=1000,
        learning_starts=20,
        batch_size=16,
        action_noise=NormalActionNoise(np.zeros(1), np.full(1, 0.1)),
        policy_kwargs={"net_arch": [32, 32], "optimizer_kwargs": optimizer},
        **more,
    ).learn(steps)


def weights(agent):
    return torch.cat([value.flatten() for value in agent.policy.state_dict().values()])


@pytest.mark.parametrize("kind", KINDS)
def test_agents_learn_what_they_learn_with_stable_baselines3s_own_policy(kind):
    lean, own = trained(kind, LeanPolicy), trained(kind, "MlpPolicy")
    assert torch.equal(weights(lean), weights(own))
    np.testing.assert_array_equal(lean.replay_buffer.actions, own.replay_buffer.actions)


def test_a_fused_optimizer_takes_the_same_first_steps():
    fused, own = trained(TD3, LeanPolicy, 24, fused=True), trained(TD3, "MlpPolicy", 24)
    assert fused._n_updates == own._n_updates > 2
    assert not torch.equal(weights(own), weights(trained(TD3, "MlpPolicy", 20)))
    torch.testing.assert_close(weights(fused), weights(own), atol=1e-6, rtol=0)


def test_an_actor_is_judged_without_gradients_of_the_critic():
    critic = trained(TD3, LeanPolicy, 1).critic
    critic.zero_grad()
    actions = torch.zeros(5, 1, requires_grad=True)
    critic.q1_forward(torch.ones(5, 3), actions).sum().backward()
    assert actions.grad.abs().min() > 0
    assert all(weight.grad is None for weight in critic.parameters())
    assert all(weight.requires_grad for weight in critic.parameters())


def test_agents_come_back_with_their_policy(tmp_path):
    agent = trained(TD3, LeanPolicy, 30, fused=True)
    agent.save(tmp_path / "agent.zip")
    back = TD3.load(tmp_path / "agent.zip", env=agent.get_env())
    assert type(back.policy) is LeanPolicy
    assert back.critic.optimizer.defaults["fused"]
    assert torch.equal(weights(back), weights(agent))
