import json

import pytest

QUICK = ("reproduce", "adversarial", "--quick", "--images", 3, "--budget", 10, "--quiet")


def test_the_quick_form_needs_no_files_and_writes_everything(run, tmp_path, monkeypatch):
    monkeypatch.setattr("facetwalk.experiments.adversarial.planning.BATCHES", (1,))
    out = tmp_path / "out"
    printed = run(*QUICK, "--out", out)
    assert "ADR-GD (released)" in printed
    assert "digits (Digits, robust), eps 0.2: 3 images, 1 seed" in printed
    assert "AutoAttack is left out of the quick form." in printed
    files = "records.jsonl, table.md, table.tex, comment.md, figure.png, figure.pdf"
    assert f"Wrote {files} to {out}." in printed
    assert max(map(len, printed.splitlines()[:-1])) <= 80
    (out / "figure.png").unlink()
    assert run(*QUICK, "--out", out) == printed
    (out / "figure.png").unlink()
    assert run("reproduce", "adversarial", "--out", out, "--figure-only") == printed
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "figure.pdf").read_bytes().startswith(b"%PDF")
    command = f"facetwalk reproduce adversarial --images 3 --budget 10 --quick --out {out}"
    assert (out / "table.md").read_text().endswith(f"Made by\n\n    {command}\n")
    assert f"% Made by {command}\n" in (out / "table.tex").read_text()
    for sentence in (out / "comment.md").read_text().splitlines():
        assert sentence.removeprefix("- ") in " ".join(printed.split())
    settings = json.loads((out / "run.json").read_text())
    assert settings == {
        "experiment": "adversarial",
        "images": 3,
        "budget": 10,
        "quick": True,
        "device": "cpu",
    }


def test_without_a_name_the_experiments_are_listed():
    from typer.testing import CliRunner

    from facetwalk.cli.app import app

    assert "adversarial" in CliRunner().invoke(app, ["reproduce", "--help"]).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say where images and networks lie"),
        (("--quick", "--budget", 7), "the budget must be a multiple of 100"),
        (("--quick", "--only", "mnist"), "the quick form has data and a network of its own"),
        (("--quick", "--device", "gpu"), "--device must be cpu or cuda"),
        (("--figure-only",), "there is no run in .*out: run without --figure-only first"),
    ],
)
def test_what_cannot_be_done_is_one_line(refused, tmp_path, arguments, message):
    refused(message, "reproduce", "adversarial", "--out", tmp_path / "out", *arguments)


def test_what_is_missing_is_a_line(run, tmp_path):
    printed = run(
        *("reproduce", "adversarial", "--data", tmp_path, "--nets", tmp_path),
        *("--out", tmp_path / "out", "--quiet"),
    )
    for title in ("MNIST", "CIFAR-10", "ImageNet"):
        assert f"{title} is left out: " in printed
