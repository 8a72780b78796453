"""Training with refined actions: runs that survive a kill, and what is made of their curves."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from facetwalk import InputError
from facetwalk.cli.app import app
from facetwalk.experiments.reproducing import reproduce
from facetwalk.experiments.rl import RL, Request, plan
from facetwalk.experiments.rl import training as rl_training
from facetwalk.experiments.rl.training import Run, train

SMALL = Run("Pendulum-v1", "td3", "plain", 0, 60, 20, 1, 10, 8, 8)


def record(variant, seed, means, env="Pendulum-v1"):
    about = {"env": env, "algo": "td3", "variant": variant, "seed": seed}
    return {**about, "steps": [10, 20], "means": means}


@pytest.mark.parametrize("variant", ["plain", "ours"])
def test_a_run_that_was_killed_goes_on_where_it_was(variant, tmp_path, monkeypatch):
    run = replace(SMALL, variant=variant)
    save, saved = rl_training._save, []

    def killed(agent, folder):
        if len(saved) == 1:
            raise KeyboardInterrupt
        saved.append(agent.num_timesteps)
        save(agent, folder)

    monkeypatch.setattr(rl_training, "_save", killed)
    with pytest.raises(KeyboardInterrupt):
        train(run, tmp_path)
    monkeypatch.setattr(rl_training, "_save", save)
    learned = []
    learn = rl_training._agent

    def agent(*given):
        made = learn(*given)
        learned.append(made.num_timesteps)
        return made

    monkeypatch.setattr(rl_training, "_agent", agent)
    curve = train(run, tmp_path)
    assert learned == [20]
    assert curve["steps"] == [20, 40, 60]
    assert train(run, tmp_path) == curve
    assert learned == [20]


def test_a_folder_of_another_run_is_refused(tmp_path):
    train(replace(SMALL, steps=20), tmp_path)
    with pytest.raises(InputError, match="holds a run of something else"):
        train(replace(SMALL, steps=20, width=16), tmp_path)


def test_runs_in_processes_become_tables_and_a_figure(tmp_path, monkeypatch):
    request = Request(quick=True)
    runs = [replace(SMALL, steps=20, variant=v) for v in ("plain", "ADR-GD", "ours")]
    monkeypatch.setattr(Request, "runs", lambda self: runs)
    outcome = reproduce(RL, plan(request, tmp_path), tmp_path, processes=2)
    assert [row[:3] for row in outcome.tables[0].rows] == [
        ["td3", "plain", "1"],
        ["td3", "ADR-GD", "1"],
        ["td3", "ours", "1"],
    ]
    assert (tmp_path / "figure.png").exists()
    assert outcome.comment[0].endswith("of which one seed says little.")


def test_differences_are_held_against_the_spread_of_the_seeds():
    records = [record("plain", 0, [0.0, 0.0]), record("plain", 1, [2.0, 2.0])]
    clear = [record("ours", 0, [10.0, 10.0]), record("ours", 1, [12.0, 12.0])]
    vague = [record("ADR-GD", 0, [0.0, 1.0]), record("ADR-GD", 1, [2.0, 3.0])]
    sentences = RL.comment([*records, *vague, *clear])
    assert "changed by +0.5, less than the seeds' spread of 1.41" in sentences[0]
    assert "changed by +10, more than the seeds' spread of 1.41" in sentences[1]


def test_what_cannot_be_run_is_said_on_one_line(tmp_path):
    for command, words in (
        (["rl", "--algo", "ppo"], "error: there is no algorithm 'ppo': choose td3, ddpg"),
        (["rl", "--env", "Walk-v5"], "error: there is no environment 'Walk-v5' (NameNotFound: "),
        (["rl", "--env", "Ant-v3"], "error: there is no environment 'Ant-v3' (ImportError: "),
        (["rl", "--env", "CartPole-v1"], "error: CartPole-v1 has no actions that are vectors"),
        (["policies", "--attack", "CW"], "error: there is no attack 'CW': choose of none, FGSM, "),
    ):
        answer = CliRunner().invoke(app, ["reproduce", *command, "--out", str(tmp_path)])
        assert answer.exit_code == 2
        assert answer.stderr.startswith(words)
        assert answer.stderr.count("\n") == 1


def test_what_cannot_be_run_is_said_in_words():
    with pytest.raises(InputError, match="there is no algorithm 'ppo': choose td3, ddpg"):
        Request(algos=["ppo"])
    with pytest.raises(InputError, match="steps must be a multiple of 20; it is 30"):
        Request(steps=30)


def test_refined_runs_are_set_beside_plain_ones_with_the_same_seed():
    plain = [record("plain", seed, [1.0, 3.0]) for seed in range(4)]
    refined = [record("ours", seed, [2.0, 3.0]) for seed in range(3)]
    worse = [record("ours", 3, [0.0, 3.0]), record("ours", 4, [9.0, 9.0])]
    sentence = RL.comment([*plain, *refined, *worse])[-1]
    assert sentence == (
        "ours: the mean return is higher than that of the plain run with the same seed in 3 of 4 "
        "pairs (sign test, two-sided: p = 0.62)."
    )
