"""Observations at which policies act otherwise, beside closed forms."""

import gymnasium
import numpy as np
import pytest
import torch
from policies import Pictures, dqn, image_ppo, linear, ppo, relu_ppo, shown
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from torch import nn

from facetwalk import InputError, ModelError
from facetwalk.control import attack_policy, perturbed, play
from facetwalk.control.perturbing import as_shown
from facetwalk.control.policies import as_seen, logits_of
from facetwalk.solvers import AdrGd, Auto, Fgsm, Sign

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("solver", [None, Fgsm(), Sign(steps=5)])
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_a_linear_policy_is_flipped_exactly_where_the_closed_form_says(solver, bounds):
    random = np.random.default_rng(0)
    x, eps = random.uniform(size=(200, 6)), 0.1
    weight = random.normal(size=(2, 6))
    bias = -weight.sum(1) / 2  # undecided in the middle of the cube
    own = (x @ weight.T + bias).argmax(1)
    away = weight[1 - own] - weight[own]
    room = np.full_like(x, eps)
    if bounds is not None:
        room = np.minimum(room, np.where(away > 0, 1 - x, x))
    margin = (away * x).sum(1) + bias[1 - own] - bias[own]
    flips = margin + (np.abs(away) * room).sum(1) > 0
    found = perturbed(linear(weight, bias), torch.from_numpy(x), eps, solver=solver, bounds=bounds)
    assert 20 < flips.sum() < 180
    np.testing.assert_array_equal(found.flipped.numpy(), flips)
    np.testing.assert_array_equal(found.own.numpy(), own)


@pytest.mark.parametrize("solver", [Fgsm(), Sign(steps=3), AdrGd(steps=3), Auto(evaluations=20)])
def test_bytes_are_perturbed_within_eps_and_within_the_range_of_pixels(solver):
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Flatten(), nn.Linear(48, 16), nn.ReLU(), nn.Linear(16, 5)).eval()
    pictures = RANDOM.integers(0, 256, (7, 3, 4, 4), dtype=np.uint8)
    pictures[0], pictures[1] = 0, 255
    found = perturbed(policy, pictures, 3 / 255, solver=solver)
    seen = found.observations
    assert seen.dtype == torch.float32
    assert seen.min() >= 0
    assert seen.max() <= 1
    assert (seen - torch.from_numpy(pictures) / 255).abs().max() <= 3 / 255 + 1e-6
    assert torch.equal(found.actions, policy(seen).argmax(1))
    shown = as_shown(seen, torch.from_numpy(pictures), 3 / 255)
    assert shown.dtype == torch.uint8
    assert (shown.int() - torch.from_numpy(pictures).int()).abs().max() == 3


def test_rounding_to_bytes_never_leaves_the_ball():
    true = torch.tensor([100, 100, 0, 255], dtype=torch.uint8)
    x = torch.tensor([102.5, 97.5, 2.5, 252.5]) / 255
    assert as_shown(x, true, 2.5 / 255).tolist() == [102, 98, 2, 253]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint16", "uint64"])
def test_whole_numbers_become_the_nearest_within_eps_and_within_their_type(dtype):
    true = np.array([0, 1, 1, 1, 1, 0], dtype=dtype)
    moves = np.array([0.6, -0.6, -1.2, -0.3, 0.49, -1.2])
    least = 0 if dtype == "bool" or dtype.startswith("u") else -1
    x = torch.from_numpy(true + moves)
    found = as_shown(x, torch.from_numpy(true), eps=1.3).numpy()
    assert found.dtype == true.dtype
    assert found.astype(int).tolist() == [1, 0, 0, 1, 1, least]
    within = as_shown(x, torch.from_numpy(true), eps=0.7).numpy()
    np.testing.assert_array_equal(within, true)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint16])
def test_the_largest_number_of_a_type_does_not_become_its_smallest(dtype):
    ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype=dtype)
    x = torch.from_numpy(ends.astype(float) + np.array([-1, 1]))
    np.testing.assert_array_equal(as_shown(x, torch.from_numpy(ends), eps=1.0).numpy(), ends)


def test_aiming_at_the_worst_action_reaches_it_more_often():
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
    x = 3 * torch.randn(100, 6)
    worst = policy(x).argmin(1)
    away = perturbed(policy, x, 2.0, solver=Sign(steps=10))
    aimed = perturbed(policy, x, 2.0, solver=Sign(steps=10), aim="worst")
    assert (aimed.actions == worst).sum() > (away.actions == worst).sum()


def test_aiming_at_what_is_costly_changes_no_fewer_actions_and_to_worse_ones():
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
    x = 3 * torch.randn(100, 6)
    logits = policy(x)
    lost = {}
    for aim in ("away", "costly"):
        found = perturbed(policy, x, 1.0, solver=Auto(evaluations=100), aim=aim)
        taken = logits.gather(1, found.actions[:, None]).squeeze(1)
        lost[aim] = logits.amax(1) - taken
        assert torch.equal(found.flipped, lost[aim] > 0)
    assert (lost["costly"] > 0).sum() >= (lost["away"] > 0).sum()
    assert (lost["costly"] >= lost["away"]).float().mean() > 0.95
    assert lost["costly"].mean() > 1.1 * lost["away"].mean()


@pytest.mark.parametrize("make", [ppo, relu_ppo, dqn])
def test_logits_are_those_by_which_agents_of_stable_baselines3_act(make):
    agent = make()
    seen = RANDOM.normal(size=(50, 4)).astype(np.float32)
    logits = logits_of(agent)
    actions, _ = agent.predict(seen, deterministic=True)
    np.testing.assert_array_equal(logits(as_seen(seen, logits)).argmax(1).numpy(), actions)
    found = perturbed(agent, seen, 0.5, solver=Sign(steps=5))
    attacked, _ = agent.predict(found.observations.numpy(), deterministic=True)
    np.testing.assert_array_equal(found.actions.numpy(), attacked)
    assert found.flipped.any()


def test_agents_that_see_images_of_bytes_are_attacked_in_pixels():
    env = make_vec_env(Pictures, 3, seed=0)
    agent = image_ppo(env)
    pictures = agent.get_env().reset()
    assert pictures.dtype == np.uint8
    found = perturbed(agent, pictures, 3 / 255, solver=Sign(steps=3))
    np.testing.assert_array_equal(found.own.numpy(), agent.predict(pictures, deterministic=True)[0])
    assert (found.observations - torch.from_numpy(pictures) / 255).abs().max() <= 3 / 255 + 1e-6


@pytest.mark.parametrize("kind", ["module", "agent", "bytes"])
def test_no_observations_are_no_perturbed_ones(kind):
    policy = ppo() if kind == "agent" else nn.Linear(4, 2).eval()
    dtype = np.uint8 if kind == "bytes" else np.float32
    found = perturbed(policy, np.zeros((0, 4), dtype=dtype))
    assert found.observations.shape == (0, 4)
    assert found.observations.dtype == torch.float32
    for column in (found.actions, found.own):
        assert (column.shape, column.dtype) == ((0,), torch.int64)
    assert found.flipped.tolist() == []


def test_what_cannot_be_attacked_is_said_in_words():
    with pytest.raises(InputError, match="a policy must be an agent of Stable-Baselines3 or a tor"):
        perturbed(lambda x: x, torch.zeros(1, 2))
    with pytest.raises(InputError, match="aim must be one of away, worst, costly; it is 'up'"):
        perturbed(nn.Linear(2, 2), torch.zeros(1, 2), aim="up")
    for solver in ("pgd", 0):
        with pytest.raises(InputError, match="the solver must be one of facetwalk"):
            perturbed(nn.Linear(2, 2).eval(), torch.zeros(1, 2), solver=solver)
    with pytest.raises(InputError, match="must be Discrete to be attacked"):
        perturbed(SAC("MlpPolicy", "Pendulum-v1", buffer_size=10), torch.zeros(1, 3))


DISCRETE = gymnasium.spaces.Discrete(5)
SEVERAL = gymnasium.spaces.MultiDiscrete([3, 4])
DICTIONARY = gymnasium.spaces.Dict(a=gymnasium.spaces.Box(-1, 1, (3,)), b=DISCRETE)


@pytest.mark.parametrize("space", [DISCRETE, SEVERAL], ids=["one", "several"])
def test_names_of_things_are_played_and_not_attacked(space):
    agent = ppo(shown(space))
    seen = agent.get_env().reset()
    logits = logits_of(agent)
    actions, _ = agent.predict(seen, deterministic=True)
    np.testing.assert_array_equal(logits(as_seen(seen, logits)).argmax(1).numpy(), actions)
    for attack in (perturbed, attack_policy):
        with pytest.raises(InputError, match=r"are (Multi)?Discrete.* must be numbers"):
            attack(agent, seen if attack is perturbed else agent.get_env())


def test_policies_of_dictionaries_are_refused():
    agent = ppo(shown(DICTIONARY), "MultiInputPolicy")
    env = agent.get_env()
    for call in (play, perturbed, attack_policy):
        given = env.reset() if call is perturbed else env
        with pytest.raises(InputError, match=r"the policy's observations are Dict.* one array"):
            call(agent, given, 1)
    with pytest.raises(InputError, match=r"one array of numbers \(N, \*shape\), and these are a"):
        play(nn.Linear(3, 2).eval(), env, 1)


@pytest.mark.parametrize(
    ("observations", "match"),
    [
        (np.zeros(4), r"gave \(2,\): for one observation pass observation\[None\]"),
        (np.zeros((2, 3)), r"the policy fails on observations of shape \(2, 3\).*: RuntimeError"),
        (np.zeros((2, 3, 4)), r"for observations of shape \(2, 3, 4\) it gave \(2, 3, 2\)"),
        ((np.zeros((1, 4)), {}), "one array of numbers .* and these are a tuple"),
        (["left", "right"], "must be one array of numbers: "),
    ],
)
def test_observations_that_do_not_fit_are_said_in_words(observations, match):
    with pytest.raises((InputError, ModelError), match=match):
        perturbed(nn.Linear(4, 2).eval(), observations)


def test_an_agent_says_which_observations_it_takes():
    env = make_vec_env(Pictures, 2, seed=0)
    agent = image_ppo(env)
    match = r"\(N, 1, 36, 36\), and these have shape \(2, 36, 36, 1\): .*get_env\(\)"
    with pytest.raises(InputError, match=match):
        play(agent, env, 1)
    with pytest.raises(InputError, match=match):
        attack_policy(agent, env).reset()
    with pytest.raises(InputError, match=r"shape \(N, 1, 36, 36\), .* \(1, 36, 36\): pass a batch"):
        perturbed(agent, agent.get_env().reset()[0])


def test_a_network_in_train_mode_is_refused_and_left_as_it_is():
    policy = nn.Sequential(nn.Linear(2, 3), nn.Dropout(), nn.Linear(3, 2))
    with pytest.raises(ModelError, match="train mode"):
        perturbed(policy, torch.zeros(1, 2))
    assert all(part.training for part in policy.modules())
