import pytest
from synthetic_records import attack, cost

from facetwalk.experiments.adversarial.comment import comment

WHERE = "mnist-fgsm, untargeted: "


def test_a_single_winner_is_named():
    said = comment([attack("FGSM", 0.1), attack("APGD", 0.5), attack("ours", 0.3)])
    assert WHERE + "APGD has the highest success, 50.0 %." in said
    assert WHERE + "APGD has the highest mean J, 5.000." in said
    assert WHERE + "ours loses to APGD, 30.0 % against 50.0 %." in said
    assert not any("ours loses to FGSM" in sentence for sentence in said)


def test_success_and_objective_may_have_different_winners():
    said = comment([attack("APGD", 0.5, objective=1.0), attack("ours", 0.6, objective=0.5)])
    assert WHERE + "ours has the highest success, 60.0 %." in said
    assert WHERE + "APGD has the highest mean J, 1.000." in said
    assert not any("loses" in sentence for sentence in said)


def test_winners_share_a_success_and_all_may_be_equal():
    three = [attack("FGSM", 0.1), attack("APGD", 0.5), attack("ours", 0.5)]
    assert WHERE + "APGD and ours share the highest success, 50.0 %." in comment(three)
    assert WHERE + "all attacks have the same success, 50.0 %." in comment(three[1:])


def test_means_over_seeds_decide_and_the_spread_is_told():
    records = [
        attack("APGD", 0.4),
        attack("APGD", 0.6, seed=1),
        attack("ours", 0.45),
        attack("ours", 0.45, seed=1),
    ]
    expected = "ours loses to APGD, 45.0 % against 50.0 %, less than seeds differ."
    assert WHERE + expected in comment(records)


@pytest.mark.parametrize(("adr_gd", "verb"), [(0.1, "loses to"), (0.2, "equals"), (0.3, "beats")])
def test_the_best_form_of_adr_gd_is_set_against_pgd(adr_gd, verb):
    records = [
        attack("PGD (paper)", 0.2),
        attack("ADR-GD (paper)", 0.0),
        attack("ADR-GD (margin)", adr_gd),
    ]
    expected = (
        f"the best ADR-GD, ADR-GD (margin), {verb} PGD (paper), {100 * adr_gd:.1f} % against 20.0 %"
    )
    assert WHERE + expected + "." in comment(records)


def test_autoattack_has_a_budget_of_its_own_and_wins_nothing_but_ours_may_lose_to_it():
    said = comment([attack("AutoAttack", 0.9), attack("APGD", 0.1), attack("ours", 0.5)])
    assert WHERE + "ours has the highest success, 50.0 %." in said
    assert WHERE + "ours loses to AutoAttack, 50.0 % against 90.0 %." in said


def test_goals_and_networks_are_told_apart():
    said = comment(
        [
            attack("FGSM", 0.1),
            attack("ours", 0.2),
            attack("FGSM", 0.3, targeted=True),
            attack("ours", 0.2, targeted=True),
            attack("FGSM", 0.3, model="other"),
            attack("ours", 0.4, model="other"),
        ]
    )
    assert WHERE + "ours has the highest success, 20.0 %." in said
    assert "mnist-fgsm, targeted: FGSM has the highest success, 30.0 %." in said
    assert "other, untargeted: ours has the highest success, 40.0 %." in said


def test_numbers_of_the_paper_stand_beside_ours():
    said = comment([attack("PGD (paper)", 0.2, model="mnist_cnn_pgd"), attack("ours", 0.3)])
    expected = "PGD (paper) has a success of 20.0 %; the paper says 4.92 %."
    assert f"mnist_cnn_pgd, untargeted: {expected}" in said
    targeted = comment([attack("PGD (paper)", 0.2, model="mnist_cnn_pgd", targeted=True)])
    assert not any("the paper says" in sentence for sentence in targeted)


def test_ratios_are_under_three_or_not():
    said = comment([cost(64, 2.5, 2.9), cost(1, 2.5, 3.1)])
    start = "a step of ADR-GD costs 2.50 and"
    assert said == [
        f"mnist-fgsm, batch 64: {start} 2.90 steps of PGD, under 3 (the paper: 17.4).",
        f"mnist-fgsm, batch 1: {start} 3.10 steps of PGD, not under 3 (the paper: 17.4).",
    ]


def test_ratios_of_a_network_that_the_paper_does_not_have_stand_alone():
    (said,) = comment([cost(1, 1.5, 2.5, data="imagenet", model="squeezenet1_1")])
    assert said.endswith("costs 1.50 and 2.50 steps of PGD, under 3.")


def test_a_cost_that_was_not_measured_says_why():
    record = cost(64, 0, 0, left_out="a step of PGD takes 3 s here")
    del record["ratios"]
    expected = "mnist-fgsm, batch 64: the cost was not measured, a step of PGD takes 3 s here."
    assert comment([record]) == [expected]
