"""Recombination: the solvers that it takes, and its settings."""

from dataclasses import fields, replace

import pytest
import torch
from populations import NET, spaces

import facetwalk as fw
from facetwalk import solvers
from facetwalk.objectives import Margin
from facetwalk.solvers import Fgsm, Recombination


@pytest.mark.parametrize("name", solvers.BY_NAME)
def test_any_solver_can_improve_the_members(name):
    inner = Fgsm() if name == "fgsm" else solvers.BY_NAME[name](steps=8)
    solver = Recombination(population=3, generations=3, first=inner, inner=inner)
    objective = Margin(torch.arange(4) % 4)
    for kind in ("linf", "l2"):
        space = spaces(4)[kind]
        result = fw.maximize(fw.Problem(NET, objective, space), solver=solver, starts=2)
        assert space.contains(result.x).all()
        assert torch.equal(result.value, objective(NET(result.x)).detach())
        assert (result.value > result.initial_value).all()
        each = 2 * 3 * 3 * inner.steps * inner.gradients_per_step
        assert result.evaluations.backward.tolist() == [each] * 4
        assert solver.evaluations == each // 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"population": 0}, "Recombination.population must be at least 1; it is 0"),
        ({"generations": 0}, "Recombination.generations must be at least 1"),
        ({"elites": 0}, "Recombination.elites must be at least 1"),
        ({"redrawn": 1.5}, r"Recombination.redrawn must be a share in \[0, 1\]; it is 1.5"),
        ({"redrawn": float("nan")}, "Recombination.redrawn must be a finite number; it is nan"),
        ({"inner": Recombination()}, "Recombination.inner must be a solver of one round"),
        ({"first": solvers.Auto()}, "Recombination.first must be a solver of one round"),
        ({"first": None}, "Recombination.first must be a solver"),
        ({"polish": "adam"}, "Recombination.polish must be a solver .* it is 'adam'"),
        ({"finish": "adam"}, "Recombination.finish must be a solver .* it is 'adam'"),
        ({"finish": Recombination()}, "Recombination.finish must be a solver of one round"),
        ({"epochs": 0}, "Recombination.epochs must be at least 1; it is 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(fw.InputError, match=message):
        Recombination(**settings)


def test_it_is_a_frozen_value():
    solver = Recombination(population=3)
    copy = Recombination(**{field.name: getattr(solver, field.name) for field in fields(solver)})
    assert copy == solver
    assert hash(copy) == hash(solver)
    assert replace(solver, population=4) != solver
    assert "population=3" in repr(solver)
