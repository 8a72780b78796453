import pytest
import torch

import facetwalk as fw
from facetwalk.experiments.random_networks import (
    SIZES,
    Outputs,
    Request,
    Run,
    adr_gd,
    paper_gd,
    random_networks,
)
from facetwalk.solvers import Adam, AdrGd, Auto, Sign
from facetwalk.types import InputError


@pytest.mark.parametrize(
    "run", [Run(Auto(evaluations=60)), Run(Sign(steps=20), 3), Run(adr_gd("A", 60, "released"))]
)
def test_seeds_side_by_side_are_what_each_finds_alone(run):
    networks = random_networks("A", 2)
    record = Outputs.of(networks, seeds=3).solve(run)
    for seed, values in enumerate(record["values"]):
        for number, (network, value) in enumerate(zip(networks, values, strict=True)):
            problem = fw.Problem(network, fw.objectives.Output(0), fw.Box(-1, 1, shape=(10,)))
            alone = fw.maximize(
                problem,
                solver=run.solver,
                starts=run.starts,
                x0="center" if run.starts == 1 else "sample",
                seed=1_000_003 * seed + number,
            )
            assert value == pytest.approx(alone.value.item(), rel=1e-4)


def test_costs_are_those_of_one_network_and_seed():
    record = Outputs.of(random_networks("A", 2), seeds=2).solve(Run(adr_gd("A", 12, "paper")))
    assert record["gradients"] == 12
    assert record["probes"] == 6 * 10  # one for each input at every step
    assert Outputs.of(random_networks("A", 2)).solve(Run(Sign(steps=5), 4))["gradients"] == 20


def test_the_box_begins_where_it_is_told_to():
    down = random_networks("A", 1)[0]
    for weight in down.parameters():
        weight.data.zero_()
    down[0].weight.data[0], down[0].bias.data[0] = -1.0, 10.0
    down[2].weight.data[0, 0] = down[4].weight.data[0, 0] = 1.0  # 10 minus the sum of the inputs
    solver = Run(Adam(steps=50))
    assert Outputs.of([down]).solve(solver)["values"] == [[pytest.approx(20.0)]]
    assert Outputs.of([down], low=-0.25).solve(solver)["values"] == [[pytest.approx(12.5)]]


def test_networks_are_the_papers_and_always_the_same():
    assert SIZES["A"] == (10, 64, 64, 1)
    assert SIZES["B"] == (10, 500, 500, 500, 1)
    assert SIZES["C"] == (128, 500, 500, 500, 1)
    digests = [Outputs.of(random_networks("A", count)).made_from for count in (2, 2, 3)]
    assert digests[0] == digests[1] != digests[2]


def test_gd_and_adr_gd_have_the_papers_settings():
    gd = paper_gd(100)
    assert (gd.steps, gd.step_size, gd.normalization, gd.decay) == (100, 0.5, "l2", "constant")
    solver = adr_gd("C", 100, "released")
    assert (solver.steps, solver.evaluations) == (50, 100)
    assert (solver.gate_step, solver.noise_scale) == (1.25, 0.35)
    assert solver.penalty_reduction == AdrGd.preset("released").penalty_reduction


def test_other_gradients_give_other_values():
    outputs = Outputs.of(random_networks("A", 2))
    short, long = (torch.tensor(outputs.solve(Run(paper_gd(n)))["values"]) for n in (2, 50))
    assert (long > short).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": ["A", "D"]}, "there is no model 'D': choose of A, B, C"),
        ({"networks": 0}, "networks must be at least 1; it is 0"),
        ({"seeds": 0}, "seeds must be at least 1; it is 0"),
    ],
)
def test_what_cannot_be_done_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        Request(**changes)


def test_the_quick_form_is_smaller_and_never_larger_than_what_is_asked_for():
    assert Request().reduced() == Request()
    quick = Request(quick=True).reduced()
    assert (tuple(quick.models), quick.networks, quick.seeds) == (("A",), 8, 2)
    assert Request(quick=True, networks=3, seeds=1).reduced().networks == 3
    assert Request(models=["B"]).settings == Request(models=["C"]).settings
