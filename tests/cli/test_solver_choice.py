from dataclasses import replace

import pytest

from facetwalk.cli.solver_choice import SolverOptions, changed_settings, make_solver
from facetwalk.solvers import BY_NAME, AdrGd, Sign
from facetwalk.types import InputError


@pytest.mark.parametrize("name", BY_NAME)
def test_a_name_alone_gives_the_defaults(name):
    assert make_solver(SolverOptions(name)) == BY_NAME[name]()


def test_steps_and_settings_are_set():
    options = SolverOptions("sign", steps=7, settings=["decay=cosine", "momentum=0.5"])
    assert make_solver(options) == Sign(steps=7, decay="cosine", momentum=0.5)


def test_settings_come_after_preset_and_experiment():
    options = SolverOptions("adr-gd", "released", "model-b", settings=["gate_bounds=0.1,0.9"])
    expected = AdrGd.for_experiment("model-b", "released")
    assert make_solver(options) == replace(expected, gate_bounds=(0.1, 0.9))
    assert make_solver(SolverOptions("adr-gd", "released")) == AdrGd.preset("released")
    of_paper = make_solver(SolverOptions("adr-gd", experiment="ddpg"))
    assert of_paper == AdrGd.for_experiment("ddpg")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (SolverOptions("newton"), "no solver is named 'newton'; there are gd, adam"),
        (SolverOptions("sign", preset="paper"), "are for adr-gd, not for sign"),
        (SolverOptions("sign", experiment="model-a"), "are for adr-gd, not for sign"),
        (SolverOptions("adr-gd", preset="nature"), "no preset is named 'nature'"),
        (SolverOptions("adr-gd", experiment="model-z"), "no experiment is named 'model-z'"),
        (SolverOptions("sign", settings=["decay"]), "must have the form field=value"),
        (SolverOptions("sign", settings=["speed=1"]), "Sign has no field 'speed' to set"),
        (SolverOptions("sign", settings=["gradients_per_step=1"]), "no field 'gradients_per_step'"),
        (SolverOptions("sign", settings=["decay=fast"]), "decay cannot be set: 'fast' is not"),
        (SolverOptions("sign", settings=["step_size=-1"]), "step_size must be positive"),
        (SolverOptions("sign", settings=["decay=linear", "decay=cosine"]), "a field twice"),
        (SolverOptions("sign", steps=3, settings=["steps=4"]), "steps are given twice"),
        (SolverOptions("sign", steps=0), "steps must be at least 1"),
        (SolverOptions("fgsm", steps=3), "Fgsm has no field 'steps' to set; there are none"),
    ],
)
def test_what_makes_no_solver_is_refused(options, match):
    with pytest.raises(InputError, match=match):
        make_solver(options)


def test_the_line_shows_steps_and_what_is_not_usual():
    assert changed_settings(Sign()) == "steps=100"
    assert changed_settings(Sign(steps=3, decay="cosine")) == "steps=3 decay=cosine"


def test_the_line_makes_the_same_solver_again():
    solver = AdrGd.for_experiment("mnist-untargeted", "released-attack")
    settings = changed_settings(solver).split()
    assert make_solver(SolverOptions("adr-gd", settings=settings)) == solver
