"""Attacks on policies: the plan, and what is made of its records."""

import pytest
import torch

from facetwalk import InputError
from facetwalk.experiments.policies import POLICIES, Request, draw_frames, plan
from facetwalk.experiments.reproducing import reproduce
from facetwalk.solvers import Fgsm
from facetwalk.zoo import ImpalaPolicy


def record(attack, mean, eps=3, trained="natural"):
    about = {"game": "FruitBot", "training": trained, "attack": attack, "eps": eps}
    measured = {"mean": mean, "half_width": 1.0, "flipped": 0.5, "seconds_per_step": 0.1}
    return {**about, **measured}


RECORDS = [record("none", 28.0, 0), record("PGD", 9.0), record("ours", 4.0), record("FGSM", 4.5)]


def test_the_attack_that_leaves_the_least_is_named():
    (sentence,) = POLICIES.comment(RECORDS)
    assert sentence == (
        "FruitBot, natural, eps 3/255: ours leaves the least, 4.00; FGSM follows with 4.50, "
        "within its confidence interval."
    )


def test_an_attack_that_was_measured_alone_is_not_the_strongest():
    assert POLICIES.comment([record("none", 27.84, 0), record("FGSM", 27.34)]) == [
        "FruitBot, natural, eps 3/255: FGSM, the only attack that was measured, leaves 27.34."
    ]


@pytest.mark.parametrize(
    ("attacks", "words"),
    [
        ([record("FGSM", 28.16)], "FGSM, the only attack that was measured, leaves 28.16"),
        (
            [record("FGSM", 31.0), record("PGD", 27.84)],
            "PGD leaves the least, 27.84; FGSM follows with 31.00",
        ),
    ],
    ids=["one", "two"],
)
def test_attacks_that_leave_no_less_than_clean_play_are_named_so(attacks, words):
    (sentence,) = POLICIES.comment([record("none", 27.84, 0), *attacks])
    end = "nothing is below play without an attack, 27.84"
    assert sentence == f"FruitBot, natural, eps 3/255: {words}; {end}."
    (alone,) = POLICIES.comment(attacks)
    assert alone == f"FruitBot, natural, eps 3/255: {words}."


def test_attacks_are_compared_where_all_of_them_have_run():
    farther = [record("PGD", 3.0, 5), record("ADR-GD", 3.5, 5), record("ours", 3.0, 5)]
    counted = POLICIES.comment([*RECORDS, record("ADR-GD", 8.0), *farther])[2:]
    assert counted == [
        "ADR-GD leaves no more than PGD in 1 of 2 cases.",
        "ours leaves no more than PGD and ADR-GD in 2 of 2 cases.",
    ]


def test_bars_are_drawn_for_every_record():
    pytest.importorskip("matplotlib")
    figure = POLICIES.draw([*RECORDS, record("PGD", 3.0, 5)])
    (axes,) = figure.axes
    assert len(axes.patches) == 6  # the return without an attack stands at both distances


def test_rows_stand_in_one_order_however_they_were_measured():
    rows = POLICIES.tables(RECORDS[::-1])[0].rows
    assert [row[2] for row in rows] == ["none", "FGSM", "PGD", "ours"]


@pytest.mark.usefixtures("procgen_is_there")
def test_every_attack_meets_every_policy_that_is_there(tmp_path):
    found = plan(Request(quick=True))
    assert [cell.about["attack"] for cell in found.cells] == ["none", "FGSM"]
    alone = plan(Request(quick=True, attacks=["FGSM"]))
    assert [cell.about["attack"] for cell in alone.cells] == ["FGSM"]
    nothing = plan(Request(tmp_path, only=["Jumper"]))
    assert not nothing.cells
    assert len(nothing.left_out) == 2


@pytest.mark.usefixtures("procgen_is_there")
def test_without_files_the_policy_that_ships_is_attacked(tmp_path):
    asked = {"only": ["CoinRun"], "attacks": ["FGSM"]}
    shipped, absent = plan(Request(**asked)), plan(Request(tmp_path, **asked))
    torch.save(ImpalaPolicy().state_dict(), tmp_path / "CoinRun_ppo.pt")
    own = plan(Request(tmp_path, **asked))
    for found in (shipped, absent, own):
        assert [cell.about["training"] for cell in found.cells] == ["natural"] * 2
    made_from = [found.cells[0].made_from for found in (shipped, absent, own)]
    assert made_from[0] == made_from[1] != made_from[2]
    assert shipped.left_out == ["No folder of policies was named: this is the one that ships."]
    (sentence,) = absent.left_out
    assert "RADIAL" in sentence


@pytest.mark.usefixtures("procgen_is_there")
def test_policies_play_in_processes(tmp_path):
    for name in ("Jumper_ppo.pt", "AT_PPO_Jumper.pt"):
        torch.save(ImpalaPolicy().state_dict(), tmp_path / name)
    asked = Request(tmp_path, 1, 1, only=["Jumper"], attacks=["none"])
    alone, beside = (
        reproduce(POLICIES, plan(asked), tmp_path / name, processes=count)
        for name, count in (("alone", 1), ("beside", 2))
    )

    def returns(outcome):
        return {line["training"]: (line["returns"], line["lengths"]) for line in outcome.records}

    assert returns(alone) == returns(beside)
    assert [row[0] for row in beside.tables[0].rows] == ["natural", "adversarial"]


@pytest.mark.usefixtures("procgen_is_there")
def test_frames_are_drawn_beside_attacked_ones():
    figure = draw_frames(ImpalaPolicy().eval(), "FruitBot", Fgsm(), 3 / 255, at=(0, 2))
    assert len(figure.axes) == 6
    true, shown = (figure.axes[place].images[0].get_array() for place in (0, 2))
    assert 0 < abs(true - shown).max() <= 3 / 255 + 1e-6


def test_what_cannot_be_run_is_said_in_words():
    with pytest.raises(InputError, match="say where the policies of Jumper lie: only that of Coin"):
        Request(only=["CoinRun", "Jumper"])
    with pytest.raises(InputError, match="the budget must be even, at least 2; it is 3"):
        Request(quick=True, budget=3)
    with pytest.raises(InputError, match="there is no game 'Chess': choose of FruitBot, Jumper"):
        Request(quick=True, only=["Chess"])
    with pytest.raises(InputError, match="there is no attack 'CW': choose of none, FGSM, PGD"):
        Request(quick=True, attacks=["CW"])
