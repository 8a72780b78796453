import json
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from facetwalk.cli.app import app
from facetwalk.experiments.drawing import blank_figure
from facetwalk.experiments.experiment import Cell, Experiment, Plan
from facetwalk.experiments.report import PARTS, Part
from facetwalk.experiments.tables import Table
from facetwalk.types import InputError, MissingExtraError

FILES = ("records.jsonl", "table.md", "table.tex", "comment.md", "figure.png", "figure.pdf")


@dataclass(frozen=True)
class Request:
    device: str = "cpu"
    quick: bool = False


def tiny(name: str, measure) -> Part:
    """An experiment of one number."""
    experiment = Experiment(
        name,
        f"The experiment {name}",
        [],
        lambda records: [Table("Values", ["value"], [[str(r["value"])] for r in records])],
        lambda records: [f"There are {len(records)} records."],
        lambda records: blank_figure(1, 1),
    )

    def plan(request, out):
        return Plan({"quick": request.quick}, [Cell({"part": 1}, "", measure)])

    return Part(experiment, Request, plan)


class Counted:
    """A measurement that knows how often it was made."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self):
        self.times += 1
        return {"value": 7.25}


def missing():
    raise MissingExtraError("flying", "wings")


def broken():
    raise InputError("the weather is bad")


@pytest.fixture
def all_of(monkeypatch, tmp_path):
    """Runs `reproduce all` with some experiments; the exit status, what it said, its page."""

    def call(parts, *options):
        monkeypatch.setattr("facetwalk.experiments.report.PARTS", tuple(parts))
        command = ["reproduce", "all", "--out", str(tmp_path / "report"), *options]
        result = CliRunner().invoke(app, command)
        path = tmp_path / "report" / "index.html"
        return result, path.read_text() if path.exists() else None

    return call


def test_every_experiment_has_a_folder_and_a_section(all_of, tmp_path):
    out = tmp_path / "report"
    result, page = all_of([tiny("one", Counted()), tiny("two", Counted())], "--quick")
    assert result.exit_code == 0
    assert f"Wrote index.html to {out}." in result.stdout
    assert result.stderr == "1 of 2: one\n2 of 2: two\n"
    for name in ("one", "two"):
        assert all((out / name / file).stat().st_size for file in FILES)
        assert f'<img src="{name}/figure.png"' in page
        assert f"facetwalk reproduce {name} --quick --out {out / name}" in page
    assert page.count("<td>7.25</td>") == 2
    assert f"<pre>facetwalk reproduce all --quick --out {out}</pre>" in page


def test_one_that_fails_is_named_and_the_others_go_on(all_of):
    parts = [tiny("one", broken), tiny("two", Counted())]
    result, page = all_of(parts, "--quiet")
    assert result.exit_code == 1
    assert result.stderr == ""
    assert "one failed: the weather is bad." in result.stdout
    assert "This experiment failed: the weather is bad." in page
    assert "<td>7.25</td>" in page
    mended, page = all_of([tiny("one", Counted()), parts[1]], "--quiet")
    assert mended.exit_code == 0
    assert "the weather" not in page


def test_what_is_not_installed_is_left_out_and_no_failure(all_of):
    result, page = all_of([tiny("one", missing), tiny("two", Counted())], "--quiet")
    assert result.exit_code == 0
    sentence = "flying needs an optional dependency: pip install 'facetwalk[wings]'"
    assert f"one left out: {sentence}." in " ".join(result.stdout.split())
    assert sentence.replace("'", "&#x27;") in page


def test_killed_and_run_again_it_goes_on(all_of):
    first = Counted()

    def killed():
        raise KeyboardInterrupt

    result, page = all_of([tiny("one", first), tiny("two", killed)], "--quiet")
    assert result.exit_code != 0
    assert page.count("<td>7.25</td>") == 1
    assert "Left out: it has no records here." in page
    result, page = all_of([tiny("one", first), tiny("two", Counted())], "--quiet")
    assert result.exit_code == 0
    assert first.times == 1
    assert page.count("<td>7.25</td>") == 2


def test_a_folder_of_another_report_is_refused_and_its_page_stays(all_of):
    _, before = all_of([tiny("one", Counted())], "--quick", "--quiet")
    result, after = all_of([tiny("one", Counted())], "--quiet")
    assert result.exit_code == 2
    assert "quick True and not False" in result.stderr
    assert before == after


def test_the_page_can_be_made_again_of_records_alone(all_of, tmp_path):
    counted = Counted()
    parts = [tiny("one", counted), tiny("two", broken)]
    all_of(parts[:1], "--quick", "--quiet")
    (tmp_path / "report" / "index.html").unlink()
    result, page = all_of(parts, "--figure-only")
    assert result.exit_code == 0
    assert counted.times == 1
    assert page.count("<td>7.25</td>") == 1
    assert f"facetwalk reproduce one --quick --out {tmp_path / 'report' / 'one'}" in page
    assert "two left out: it has no records here." in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--quick", "--nets", "x"), "the quick form has data and networks of its own"),
        (("--device", "gpu"), "--device must be cpu or cuda"),
        (("--figure-only",), "holds no experiments"),
    ],
)
def test_what_cannot_be_done_is_one_line(all_of, options, message):
    result, page = all_of([tiny("one", Counted())], *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert page is None


def test_without_files_what_needs_them_fails_in_words():
    from facetwalk.experiments.report import Asked

    asked, refused = Asked(), {}
    for part in PARTS:
        try:
            part.ask(asked)
        except InputError as error:
            refused[part.experiment.name] = str(error)
    assert refused == {
        "adversarial": "say where images and networks lie, or take the quick form",
    }


def test_the_quick_forms_of_all_experiments_run_and_are_shown(run, tmp_path):
    printed = run("reproduce", "all", "--quick", "--quiet", "--out", tmp_path)
    page = (tmp_path / "index.html").read_text()
    for part in PARTS:
        name = part.experiment.name
        if f"{name} left out: " in printed:
            continue
        assert all((tmp_path / name / file).stat().st_size for file in FILES), name
        assert f'<img src="{name}/figure.png"' in page
        assert json.loads((tmp_path / name / "run.json").read_text())["experiment"] == name
        assert f"facetwalk reproduce {name} --quick --out {tmp_path / name}" in page
