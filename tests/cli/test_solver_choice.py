from dataclasses import replace

import pytest

from facetwalk.cli.field_values import changed_settings
from facetwalk.cli.solver_choice import SolverOptions, make_solver
from facetwalk.solvers import BY_NAME, ActivationDescent, Adam, AdrGd, Auto, Recombination, Sign
from facetwalk.types import InputError


@pytest.mark.parametrize(
    ("name", "kind"), [("auto", Auto), ("recombination", Recombination), *BY_NAME.items()]
)
def test_a_name_alone_gives_the_defaults(name, kind):
    assert make_solver(SolverOptions(name)) == kind()


def test_nothing_said_gives_the_default_of_the_library():
    assert make_solver(SolverOptions()) == Auto()


def test_evaluations_are_the_budget_of_auto():
    assert make_solver(SolverOptions(evaluations=70)) == Auto(evaluations=70)
    assert make_solver(SolverOptions(settings=["evaluations=70"])) == Auto(evaluations=70)


def test_fields_of_solvers_within_a_solver_are_set():
    settings = ["inner.steps=25", "population=3", "inner.decay=cosine", "first.width=0.1"]
    usual = Recombination()
    assert isinstance(usual.first, ActivationDescent)
    assert isinstance(usual.inner, ActivationDescent)
    assert make_solver(SolverOptions("recombination", settings=settings)) == Recombination(
        population=3,
        first=replace(usual.first, width=0.1),
        inner=replace(usual.inner, steps=25, decay="cosine"),
    )


def test_a_solver_within_a_solver_is_chosen_by_name():
    settings = ["inner.steps=25", "inner=sign", "polish=adam", "polish.step_size=0.02"]
    assert make_solver(SolverOptions("recombination", settings=settings)) == Recombination(
        inner=Sign(steps=25), polish=Adam(step_size=0.02)
    )
    for nothing in ("polish=none", "finish=none"):
        assert make_solver(SolverOptions("recombination", settings=[nothing])) == Recombination()


def test_there_may_be_two_last_rounds_or_the_second_alone():
    polish, finish = ["polish=adam", "polish.steps=9"], ["finish.steps=7", "finish=adam"]
    for settings, solver in [
        (polish + finish, Recombination(polish=Adam(steps=9), finish=Adam(steps=7))),
        (finish, Recombination(finish=Adam(steps=7))),
    ]:
        assert make_solver(SolverOptions("recombination", settings=settings)) == solver


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
        (SolverOptions("newton"), "no solver is named 'newton'; there are auto, rec"),
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
        (SolverOptions("fgsm", steps=3), "steps of Fgsm is always 1: leave it out"),
        (SolverOptions(steps=3), "auto plans its own steps: give --evaluations or --seconds"),
        (SolverOptions("auto", steps=3), "auto plans its own steps"),
        (SolverOptions("sign", evaluations=9), "--evaluations is the budget of auto, and the"),
        (SolverOptions("recombination", evaluations=9), "settings of recombination say how long"),
        (SolverOptions(evaluations=9, settings=["evaluations=9"]), "evaluations are given twice"),
        (
            SolverOptions(settings=["inner.steps=9"]),
            "Auto has no solver 'inner' whose fields to set",
        ),
        *(
            (SolverOptions("recombination", settings=[setting]), match)
            for setting, match in [
                ("inner=auto", "inner cannot be set: 'auto' is not one of gd, adam"),
                ("stepper.steps=1", "Recombination has no solver 'stepper' whose fields to set"),
                ("polish.steps=1", "Recombination has no solver 'polish' whose fields to set"),
                ("finish.steps=1", "Recombination has no solver 'finish' whose fields to set"),
                ("finish=auto", "finish cannot be set: 'auto' is not"),
                ("inner.speed=1", "ActivationDescent has no field 'speed' to set"),
                ("inner.=1", "ActivationDescent has no field '' to set"),
                ("inner.steps.x=1", "ActivationDescent has no solver 'steps'"),
                ("population.x=1", "Recombination has no solver 'population'"),
                ("inner.decay=fast", "decay cannot be set: 'fast' is not"),
                ("inner.steps=0", "steps must be at least 1"),
                ("elites=0", "elites must be at least 1"),
            ]
        ),
        (
            SolverOptions("recombination", settings=["inner.steps=1", "inner.steps=2"]),
            "a field twice",
        ),
    ],
)
def test_what_makes_no_solver_is_refused(options, match):
    with pytest.raises(InputError, match=match):
        make_solver(options)


def test_what_is_said_of_a_solver_makes_the_same_again():
    solver = AdrGd.for_experiment("mnist-untargeted", "released-attack")
    settings = changed_settings(solver)
    assert make_solver(SolverOptions("adr-gd", settings=settings)) == solver
