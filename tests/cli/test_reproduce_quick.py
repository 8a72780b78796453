import importlib

import pytest

FILES = ("records.jsonl", "table.md", "table.tex", "comment.md", "figure.png", "figure.pdf")


@pytest.mark.parametrize("name", ["toy", "gradients", "sigmoid", "ablation", "runtime"])
def test_a_quick_form_needs_no_files_and_is_shown(run, name, tmp_path):
    printed = run("reproduce", name, "--quick", "--quiet", "--out", tmp_path)
    experiment = getattr(importlib.import_module(f"facetwalk.experiments.{name}"), name.upper())
    assert printed.endswith(f"Wrote {', '.join(FILES)} to {tmp_path}.\n")
    flat = " ".join(printed.split())
    for sentence in (tmp_path / "comment.md").read_text().splitlines():
        assert sentence.removeprefix("- ") in flat
    written = (tmp_path / "table.md").read_text()
    assert written.startswith(f"# {experiment.title}\n")
    for line in written.splitlines():
        if line.startswith("### "):
            assert line.removeprefix("### ") in flat
    for file in FILES:
        assert (tmp_path / file).stat().st_size > 0
