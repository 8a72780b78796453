"""Where solvers end, certified: is any point near by better?"""

from dataclasses import replace

import pytest

import facetwalk as fw
from facetwalk.exact import local_certificate
from facetwalk.objectives import Output
from facetwalk.solvers import Adam, Auto, Gd, Recombination
from facetwalk.zoo import uniform_network

NETWORKS = range(5)
POPULATION = Recombination(population=4, generations=8)


def ends_on_a_local_maximum(solver, network: int) -> bool:
    net = uniform_network((6, 24, 16, 1), network)
    problem = fw.Problem(net, Output(0), fw.Box(-1, 1, shape=(6,)))
    found = fw.maximize(problem, solver=solver)
    return local_certificate(problem, found.x[0], 0.02, tolerance=1e-3).holds


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    "solver", [Auto(evaluations=2000), Adam(steps=500), Gd(steps=500)], ids=["auto", "adam", "gd"]
)
def test_steps_that_get_ever_smaller_end_on_a_local_maximum(solver, network):
    assert ends_on_a_local_maximum(solver, network)


def test_a_polish_brings_a_population_to_the_top_of_its_hill():
    polished = replace(
        POPULATION, polish=Adam(steps=100, step_size=0.2), finish=Adam(steps=100, step_size=0.02)
    )
    assert sum(ends_on_a_local_maximum(POPULATION, network) for network in NETWORKS) <= 1
    assert all(ends_on_a_local_maximum(polished, network) for network in NETWORKS)
