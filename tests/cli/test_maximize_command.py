import numpy as np
import pytest
import torch
from torch import nn

import facetwalk as fw
from facetwalk.cli.json_values import plain
from facetwalk.cli.solver_names import METHODS
from facetwalk.solvers import ActivationDescent, AdrGd, Recombination, Sign
from facetwalk.zoo import digits, digits_net, load_model, random_network

SMALL = ("maximize", "random:3,8,4", "--box", -1, 1)
"""A small problem, to which tests add options."""
SIGN = ("--solver", "sign", "--steps")
"""The start of options that end with a number."""


def small_problem(seed: int = 0) -> fw.Problem:
    net = random_network((3, 8, 4), seed)
    return fw.Problem(net, fw.objectives.Output(0), fw.Box(-1, 1, shape=(3,)))


def same(data: dict, result: fw.Result) -> None:
    """The data are those of the result, to the last bit."""
    assert data["value"] == result.value.tolist()
    assert data["initial_value"] == plain(result.initial_value)
    assert data["x"] == result.x.tolist()
    assert data["status"] == [str(status) for status in result.status]
    for kind in ("forward", "backward", "probe"):
        assert data["evaluations"][kind] == getattr(result.evaluations, kind).tolist()
    assert result.trace is not None
    assert data["trace"]["evaluations"] == result.trace.evaluations.tolist()
    assert data["trace"]["best"] == plain(result.trace.best)
    assert data["seed"] == result.seed
    assert data["solver"] == plain(result.solver)


def test_a_run_is_that_of_the_library(run, read_json, tmp_path):
    out, saved = tmp_path / "out.json", tmp_path / "x.npy"
    options = ("--solver", "adr-gd", "--experiment", "model-a", "--set", "noise_period=5")
    printed = run(
        *SMALL, *options, "--steps", 30, "--starts", 4, "--seed", 2, "--json", out, "--save", saved
    )
    base = vars(AdrGd.for_experiment("model-a"))
    solver = AdrGd(**{**base, "steps": 30, "noise_period": 5})
    result = fw.maximize(small_problem(seed=2), solver=solver, starts=4, seed=2, trace=True)
    data = read_json(out)
    same(data, result)
    assert data["solver"]["name"] == "adr-gd"
    assert data["versions"] == {"facetwalk": fw.__version__, "torch": torch.__version__}
    assert (data["model"], data["objective"], data["starts"]) == ("random:3,8,4", "output:0", 4)
    assert np.array_equal(np.load(saved), result.x.numpy())
    assert f"{result.value.item():.6g}" in printed
    assert f"{int(result.evaluations.probe):,}" in printed
    assert "adr-gd: steps=30 noise_period=5\n" in printed
    entries = " ".join(f"{entry:.6g}" for entry in result.x[0].tolist())
    assert f"x of problem 0: {entries}\n" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_without_a_solver_the_default_of_the_library_runs(run, read_json, tmp_path):
    printed = run(*SMALL, "--json", tmp_path / "out.json")
    result = fw.maximize(small_problem(), trace=True)
    data = read_json(tmp_path / "out.json")
    same(data, result)
    assert data["asked"]["solver"] == {
        "name": "auto",
        "fields": {"evaluations": None, "seconds": None},
    }
    assert "auto ran recombination: population=" in printed


def test_the_help_says_that_evaluations_are_those_of_each_start(run, read_json, tmp_path):
    assert (
        "each start" in " ".join(run("maximize", "--help").split("--evaluations")[1].split())[:200]
    )
    run(*SMALL, "--evaluations", 20, "--starts", 2, "--json", tmp_path / "out.json")
    assert read_json(tmp_path / "out.json")["evaluations"]["backward"] == [40]


def test_evaluations_are_spent_and_what_ran_is_shown(run, read_json, tmp_path):
    printed = run(*SMALL, "--evaluations", 420, "--json", tmp_path / "out.json")
    result = fw.maximize(small_problem(), evaluations=420, trace=True)
    data = read_json(tmp_path / "out.json")
    same(data, result)
    ran = result.solver
    assert isinstance(ran, Recombination)
    assert f"{ran.evaluations:,}" in printed.split()
    assert f"auto ran recombination: population={ran.population} " in printed
    assert f"  first=ActivationDescent(steps={ran.first.steps}" in printed
    assert f"  inner=ActivationDescent(steps={ran.inner.steps}" in printed
    assert data["solver"]["fields"]["inner"] == {
        "name": "activation-descent",
        "fields": plain(vars(ran.inner)),
    }
    assert data["asked"]["solver"]["fields"]["evaluations"] == 420


def test_time_does_not_change_a_plan_for_evaluations(run, read_json, tmp_path):
    run(*SMALL, "--evaluations", 300, "--seconds", 100, "--json", tmp_path / "out.json")
    same(
        read_json(tmp_path / "out.json"), fw.maximize(small_problem(), evaluations=300, trace=True)
    )


def test_few_evaluations_are_one_run(run):
    assert "auto ran activation-descent: steps=7 momentum=0.5\n" in run(*SMALL, "--evaluations", 7)


def test_a_network_without_relus_gets_sign_ascent(run, networks):
    printed = run("maximize", f"{networks}:without_relu", "--box", -1, 1, "--evaluations", 7)
    assert "auto ran sign: steps=7 momentum=0.5\n" in printed


def test_a_solver_within_a_solver_is_set(run, read_json, tmp_path):
    settings = ("population=3", "generations=2", "first.steps=8", "inner.steps=4")
    options = [option for setting in settings for option in ("--set", setting)]
    printed = run(*SMALL, "--solver", "recombination", *options, "--json", tmp_path / "out.json")
    solver = Recombination(
        population=3,
        generations=2,
        first=ActivationDescent(steps=8),
        inner=ActivationDescent(steps=4, step_size=0.5),
    )
    same(read_json(tmp_path / "out.json"), fw.maximize(small_problem(), solver=solver, trace=True))
    assert printed.splitlines()[-4:-1] == [
        "recombination: population=3 generations=2",
        "  first=ActivationDescent(steps=8)",
        "  inner=ActivationDescent(steps=4, step_size=0.5)",
    ]


@pytest.mark.parametrize("name", METHODS)
def test_every_solver_runs_by_its_name(run, read_json, tmp_path, name):
    run(*SMALL, "--solver", name, "--json", tmp_path / "out.json")
    data = read_json(tmp_path / "out.json")
    assert data["asked"]["solver"] == plain(METHODS[name]())
    assert data["value"][0] > data["initial_value"][0]
    assert data["solver"]["name"] == (name if name != "auto" else "recombination")


@pytest.mark.parametrize("options", [(), (*SIGN, 200_000), ("--solver", "adr-gd")])
def test_seconds_end_the_work(run, read_json, tmp_path, options):
    out = tmp_path / "out.json"
    run(*SMALL, *options, "--seconds", 0.2, "--json", out)
    data = read_json(out)
    assert data["asked"]["seconds"] == 0.2
    assert data["seconds"] < 10
    assert data["evaluations"]["backward"][0] > 0


@pytest.mark.parametrize(
    ("preset", "solver"),
    [(preset, AdrGd.preset(preset)) for preset in ("paper", "released", "released-attack")],
)
def test_presets_run_and_their_data_are_json(run, read_json, tmp_path, preset, solver):
    options = ("--solver", "adr-gd", "--preset", preset, "--steps", 12)
    run(*SMALL, *options, "--json", tmp_path / "out.json")
    solver = AdrGd(**{**vars(solver), "steps": 12})
    same(read_json(tmp_path / "out.json"), fw.maximize(small_problem(), solver=solver, trace=True))


@pytest.mark.parametrize(
    ("norm", "ball"), [("inf", fw.LinfBall), ("2", fw.L2Ball), ("1", fw.L1Ball)]
)
def test_balls_around_the_inputs_of_a_file(run, read_json, tmp_path, norm, ball):
    images, labels = (part[:3] for part in digits("test"))
    np.save(tmp_path / "x.npy", images.numpy().astype(np.float64))
    np.save(tmp_path / "labels.npy", labels.numpy())
    printed = run(
        *("maximize", "digits", "--around", tmp_path / "x.npy", "--eps", 0.3, "--norm", norm),
        *("--bounds", 0, 1, "--objective", f"margin:{tmp_path / 'labels.npy'}", *SIGN, 8),
        *("--x0", "sample", "--starts", 2, "--batch-size", 4, "--json", tmp_path / "out.json"),
    )
    space = ball(images, 0.3, bounds=(0, 1))
    problem = fw.Problem(digits_net(), fw.objectives.Margin(labels), space)
    result = fw.maximize(problem, solver=Sign(steps=8), starts=2, x0="sample", trace=True)
    data = read_json(tmp_path / "out.json")
    assert data["value"] == pytest.approx(result.value.tolist(), rel=1e-5)
    assert bool(space.contains(torch.tensor(data["x"])).all())
    assert "x of problem" not in printed


def test_the_norm_is_linf_by_default(run, read_json, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    run(
        *("maximize", "random:3,8,4", "--around", tmp_path / "x.npy", "--eps", "1/2", *SIGN, 5),
        *("--json", tmp_path / "out.json"),
    )
    x = torch.tensor(read_json(tmp_path / "out.json")["x"])
    assert x.abs().max() == 0.5


def test_a_first_start_from_a_file(run, read_json, tmp_path):
    x0 = torch.tensor([0.5, -0.25, 0.125])
    torch.save(x0, tmp_path / "x0.pt")
    run(*SMALL, "--x0", tmp_path / "x0.pt", *SIGN, 3, "--json", tmp_path / "out.json")
    problem = small_problem()
    result = fw.maximize(problem, solver=Sign(steps=3), x0=x0[None], trace=True)
    same(read_json(tmp_path / "out.json"), result)


def test_a_value_to_stop_at(run, read_json, tmp_path):
    run(*SMALL, *SIGN, 100, "--stop-at", -100, "--json", tmp_path / "out.json")
    data = read_json(tmp_path / "out.json")
    assert data["status"] == ["reached"]
    assert data["evaluations"]["backward"] == [1]


def test_an_output_can_be_minimised(run, read_json, tmp_path):
    run(*SMALL, "--objective", "-output:1", *SIGN, 5, "--json", tmp_path / "out.json")
    problem = small_problem()
    problem = fw.Problem(problem.model, fw.objectives.Output(1, sign=-1), problem.space)
    same(
        read_json(tmp_path / "out.json"),
        fw.maximize(problem, solver=Sign(steps=5), trace=True),
    )


def test_double_precision_is_kept(run, networks, read_json, tmp_path):
    options = ("--box", 0.1, 0.7, *SIGN, 20, "--json", tmp_path / "out.json")
    run("maximize", f"{networks}:double", *options)
    (x,) = read_json(tmp_path / "out.json")["x"]
    assert set(x) <= {0.1, 0.7}
    net = load_model(f"{networks}:double").model
    assert net(torch.tensor([x], dtype=torch.float64))[0, 0].item() == pytest.approx(
        read_json(tmp_path / "out.json")["value"][0], rel=1e-12
    )


def test_the_shape_is_passed_on(run, networks, read_json, tmp_path):
    options = ("--shape", "1,5,5", "--box", 0, 1, *SIGN, 2, "--json", tmp_path / "out.json")
    run("maximize", f"{networks}:conv", *options)
    assert np.shape(read_json(tmp_path / "out.json")["x"]) == (1, 1, 5, 5)


def test_a_network_that_is_not_affine_gets_one_note(run, networks):
    printed = run(
        *("maximize", f"{networks}:Soft", "--box", -1, 1, "--solver", "adr-gd", "--steps", 2),
        *("--starts", 3, "--batch-size", 1),
    )
    assert printed.count("note: with its gates frozen the network is not affine") == 1


def test_many_problems_are_not_all_shown(run, read_json, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((25, 3)))
    printed = run(
        *("maximize", "random:3,8,4", "--around", tmp_path / "x.npy", "--eps", 0.5, *SIGN, 2),
        *("--json", tmp_path / "out.json"),
    )
    assert "... and 5 more problems; --json writes all." in printed
    assert len(read_json(tmp_path / "out.json")["value"]) == 25


def test_without_files_nothing_is_written(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(*SMALL, *SIGN, 2)
    assert list(tmp_path.iterdir()) == []


def test_the_figure_shows_the_trace(run, tmp_path):
    from matplotlib import pyplot, rcParams
    from matplotlib.image import imread

    before = dict(rcParams)
    run(*SMALL, *SIGN, 30, "--figure", tmp_path / "trace.png")
    picture = imread(tmp_path / "trace.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.05
    assert dict(rcParams) == before
    assert pyplot.get_fignums() == []


def test_the_lines_of_the_figure_are_the_best_values():
    from facetwalk.cli.trace_figure import draw_trace

    space = fw.Box(-1, 1, shape=(3,))
    both = fw.objectives.Linear(torch.eye(4)[:2, None], torch.zeros(2, 1))
    problem = fw.Problem(random_network((3, 8, 4), 0), both, space)
    result = fw.maximize(problem, solver=AdrGd(steps=10), trace=True)
    figure = draw_trace(result, "adr-gd")
    assert result.trace is not None
    (axes,) = figure.axes
    assert len(axes.lines) == 2
    for line, best in zip(axes.lines, result.trace.best, strict=True):
        assert np.allclose(line.get_ydata(), best.numpy())
        assert np.array_equal(line.get_xdata(), range(2, 21, 2))
    assert axes.get_legend_handles_labels()[1] == ["problem 0", "problem 1"]
    assert axes.get_legend() is not None


def test_the_model_is_evaluated_where_it_says(run, read_json, tmp_path):
    """The value in the data is the network's own at the x in the data."""
    run(*SMALL, *SIGN, 10, "--json", tmp_path / "out.json")
    data = read_json(tmp_path / "out.json")
    net: nn.Module = random_network((3, 8, 4), 0)
    assert net(torch.tensor(data["x"]))[0, 0].item() == pytest.approx(data["value"][0])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ([], "either --box LOW HIGH or --around FILE --eps E"),
        (["--box", 0, 1, "--around", "x.npy"], "either --box LOW HIGH or --around"),
        (["--box", 0, 1, "--eps", 0.1], "describe a ball: use them with --around"),
        (["--box", 0, 1, "--norm", "2"], "describe a ball: use them with --around"),
        (["--box", 0, 1, "--bounds", 0, 1], "describe a ball: use them with --around"),
        (["--box", 1, 0], "low <= high"),
        (["--box", "nan", 0], "NaN"),
        (["--around", "x.npy"], "add --eps E"),
        (["--around", "x.npy", "--eps", 1], "there is no file x.npy"),
        (["--around", "x.npy", "--eps", 1, "--norm", "3"], "--norm must be inf, 2, 1; it is '3'"),
        (["--box", 0, 1, "--objective", "loss"], "no objective is named 'loss'"),
        (["--box", 0, 1, "--objective", "output:9"], "output 9 was asked for"),
        (["--box", 0, 1, "--objective", "margin:9"], "the model has classes 0 to 3"),
        (["--box", 0, 1, "--solver", "newton"], "no solver is named 'newton'"),
        (
            ["--box", 0, 1, *SIGN, 2, "--set", "decay=[b]fast"],
            r"decay cannot be set: '\[b\]fast' is not",
        ),
        (["--box", 0, 1, "--solver", "sign", "--evaluations", 9], "the budget of auto, and the"),
        (["--box", 0, 1, "--steps", 9], "auto plans its own steps"),
        (["--box", 0, 1, "--evaluations", 0], "evaluations must be"),
        (["--box", 0, 1, "--seconds", 0], "seconds must be a positive number; it is 0"),
        (["--box", 0, 1, *SIGN, 9, "--seconds", -1], "seconds must be a positive number; it is -1"),
        (["--box", 0, 1, "--starts", 0], "starts must be a whole number, at least 1"),
        (["--box", 0, 1, "--batch-size", 0], "batch_size must be a whole number, at least 1"),
        (["--box", 0, 1, "--x0", "x0.npy"], "there is no file x0.npy"),
        (["--box", 0, 1, "--x0", "middle"], "middle must be a file of a known kind"),
        (["--box", 0, 1, "--device", "tpu"], "--device must be cpu or cuda; it is 'tpu'"),
        (["--box", 0, 1, "--json", "no/out.json"], "there is no folder no"),
        (["--box", 0, 1, "--save", "no/x.npy"], "there is no folder no"),
        (["--box", 0, 1, "--figure", "no/trace.png"], "there is no folder no"),
        (["--box", 0, 1, "--save", "x.npz"], "--save x.npz must end with .npy"),
        (["--box", 0, 1, "--json", "out.npy"], "--json out.npy must end with .json"),
        (["--around", "y.npy", "--eps", "8/0"], "'8/0' must be a number, or two as in 8/255"),
        (["--around", "y.npy", "--eps", 1, "--bounds", 1, 0], "--bounds must be a lowest and a"),
        (["--box", 0, 1, "--seconds", "inf"], "seconds must be a positive number"),
        (["--box", 0, 1, "--figure", "trace.docx"], "trace.docx must end with .*png"),
    ],
)
def test_what_cannot_be_maximised_is_refused(refused, tmp_path, monkeypatch, options, match):
    monkeypatch.chdir(tmp_path)
    refused(match, "maximize", "random:3,8,4", *options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_missing_device_is_refused(refused):
    refused("there is no CUDA device here", *SMALL, "--device", "cuda")


def test_starts_outside_the_space_are_refused(refused, tmp_path):
    np.save(tmp_path / "x0.npy", np.full(3, 2.0))
    refused("1 of 1 starting points lie outside", *SMALL, "--x0", tmp_path / "x0.npy")


def test_centres_outside_the_bounds_are_refused(refused, tmp_path):
    np.save(tmp_path / "x.npy", np.full((2, 3), 2.0))
    options = ("--around", tmp_path / "x.npy", "--eps", 0.1, "--bounds", 0, 1)
    refused("2 of 2 centres lie outside the bounds", "maximize", "random:3,8,4", *options)
