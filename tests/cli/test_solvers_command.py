from dataclasses import fields

from facetwalk.cli.json_values import plain
from facetwalk.cli.solver_names import METHODS
from facetwalk.solvers import Recombination
from facetwalk.solvers.adr_gd_settings import EXPERIMENTS, PRESETS


def test_every_solver_and_field_is_listed_with_its_documentation(run, read_json, tmp_path):
    printed = run("solvers", "--json", tmp_path / "out.json")
    listed = {solver["name"]: solver for solver in read_json(tmp_path / "out.json")["solvers"]}
    assert list(listed) == list(METHODS)
    for name, solver in METHODS.items():
        assert listed[name]["summary"] == (solver.__doc__ or "").splitlines()[0]
        assert listed[name]["summary"] in " ".join(printed.split())
        gradients = getattr(solver, "gradients_per_step", None)
        assert listed[name]["gradients_per_step"] == gradients
        shown = {field["name"]: field for field in listed[name]["fields"]}
        assert list(shown) == [field.name for field in fields(solver)]
        for field in fields(solver):
            assert shown[field.name]["default"] == plain(getattr(solver(), field.name))
            assert shown[field.name]["doc"]
            assert shown[field.name]["doc"] in " ".join(printed.split())
    assert all(len(line) <= 80 and line == line.rstrip() for line in printed.splitlines())


def test_inherited_fields_keep_their_documentation(run, read_json, tmp_path):
    run("solvers", "--json", tmp_path / "out.json")
    solvers = {s["name"]: s["fields"] for s in read_json(tmp_path / "out.json")["solvers"]}
    adam = {field["name"]: field for field in solvers["adam"]}
    assert adam["steps"]["doc"] == "How many steps to take."
    assert adam["step_size"]["doc"] == "First step, in units of the space's radius."
    assert adam["step_size"]["default"] == 0.1
    assert adam["mean_decay"]["doc"] == "The paper's beta_1."
    assert adam["decay"]["type"] == "constant | linear | cosine"


def test_one_solver_alone(run):
    printed = run("solvers", "sign")
    assert printed.startswith("sign  (1 gradient a step)\n")
    assert "step_size = 2.0  (float)" in printed
    assert "apgd" not in printed


def test_solvers_within_a_solver_are_shown_with_their_settings(run, read_json, tmp_path):
    printed = run("solvers", "recombination", "--json", tmp_path / "out.json")
    assert printed.startswith("recombination\n")
    inner = Recombination().inner
    assert f"inner = ActivationDescent(steps={inner.steps}, step_size=0.5)  (a solver)" in printed
    for last in ("polish", "finish"):
        assert f"{last} = none  (a solver | none)" in printed
    (recombination,) = read_json(tmp_path / "out.json")["solvers"]
    shown = {field["name"]: field for field in recombination["fields"]}
    assert shown["inner"]["default"]["name"] == "activation-descent"
    assert shown["inner"]["default"]["fields"] == plain(vars(inner))


def test_presets_and_experiments_of_adr_gd(run, read_json, tmp_path):
    printed = " ".join(run("solvers", "adr-gd", "--json", tmp_path / "out.json").split())
    assert f"presets: {', '.join(PRESETS)}" in printed
    assert f"experiments: {', '.join(EXPERIMENTS)}" in printed
    (adr_gd,) = read_json(tmp_path / "out.json")["solvers"]
    assert adr_gd["presets"] == list(PRESETS)
    assert adr_gd["experiments"] == list(EXPERIMENTS)


def test_a_fixed_field_says_so(run):
    assert "steps = 1  (fixed)" in run("solvers", "fgsm")


def test_an_unknown_solver_is_refused(refused):
    refused("no solver is named 'newton'; there are auto, rec", "solvers", "newton")
