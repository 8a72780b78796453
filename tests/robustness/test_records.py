import json
import os

import pytest

import facetwalk as fw
from facetwalk.robustness import Sample
from facetwalk.robustness.records import Records

ASKED = {"eps": 0.1, "norm": "inf", "seed": 0}


def sample(index: int, **changes) -> Sample:
    values = {
        "label": 3,
        "predicted": 3,
        "clean_margin": -0.5 * index,
        "broken_by": None,
        "margin": -0.1 * index,
        "adversarial_class": 3,
        "gradients": 100,
        "depends_on_batch": False,
    }
    return Sample(index, **(values | changes))


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("margin", [0.1 + 0.2, 1e-300, -1e30, float("inf"), -float("inf")])
def test_what_is_added_comes_back(tmp_path, margin):
    samples = [sample(4, broken_by="one", margin=margin), sample(0, depends_on_batch=True)]
    records = Records(tmp_path / "new" / "folder", ASKED)
    assert records.samples == {}
    records.add(samples[:1])
    records.add(samples[1:])
    assert records.samples == {4: samples[0], 0: samples[1]}
    assert Records(tmp_path / "new" / "folder", ASKED).samples == records.samples


def test_files_are_json_for_others_to_read(tmp_path):
    Records(tmp_path, ASKED).add([sample(0), sample(1)])
    assert json.loads((tmp_path / "run.json").read_text()) == ASKED
    lines = (tmp_path / "samples.jsonl").read_text().splitlines()
    assert [json.loads(line)["index"] for line in lines] == [0, 1]


def test_a_line_that_was_cut_off_is_forgotten_at_any_byte(tmp_path):
    Records(tmp_path, ASKED).add([sample(index) for index in range(3)])
    lines = tmp_path / "samples.jsonl"
    whole = lines.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole)):
        lines.write_bytes(whole[:length])
        done = sum(end <= length for end in ends)
        records = Records(tmp_path, ASKED)
        assert list(records.samples) == list(range(done))
        assert lines.read_bytes() == whole[: ([0, *ends])[done]]
        records.add([sample(index) for index in range(done, 3)])
        assert lines.read_bytes() == whole


@pytest.mark.parametrize("line", ["{}", "null", "nonsense", '{"index": 1}', "[1]", "\x80"])
def test_a_line_that_is_no_sample_is_named(tmp_path, line):
    Records(tmp_path, ASKED).add([sample(0)])
    with (tmp_path / "samples.jsonl").open("ab") as file:
        file.write(line.encode("latin-1") + b"\n")
    before = contents(tmp_path)
    with pytest.raises(fw.InputError, match=r"line 2 of .*samples.jsonl is no record of a sample"):
        Records(tmp_path, ASKED)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (ASKED | {"eps": 0.2}, r"\(eps 0.1 and not 0.2\)"),
        (ASKED | {"seed": 1, "norm": "2"}, r"\(norm inf and not 2, seed 0 and not 1\)"),
        (ASKED | {"more": 3}, "more None and not 3"),
        ({"eps": 0.1, "norm": "inf"}, "seed 0 and not None"),
    ],
)
def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path, asked, message):
    Records(tmp_path, ASKED).add([sample(0)])
    with (tmp_path / "samples.jsonl").open("ab") as file:
        file.write(b'{"index": 1, "lab')
    before = contents(tmp_path)
    with pytest.raises(fw.InputError, match=message):
        Records(tmp_path, asked)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("content", ["", "{", "\x80", "[]", "3", "null"])
def test_a_run_that_cannot_be_read_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(fw.InputError, match=r"cannot be read|unreadable"):
        Records(tmp_path, ASKED)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(fw.InputError, match="cannot be a folder"):
            Records(folder, ASKED)


def test_a_run_that_was_killed_while_it_wrote_its_first_file_starts_anew(tmp_path):
    (tmp_path / "run.tmp").write_text('{"eps": ')
    Records(tmp_path, ASKED).add([sample(0)])
    assert list(Records(tmp_path, ASKED).samples) == [0]


def test_samples_are_on_the_disk_on_return(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    Records(tmp_path, ASKED).add([sample(0)])
    assert synced == [(tmp_path / "samples.jsonl").stat().st_size]


@pytest.mark.parametrize(
    ("name", "value"), [("margin", "abc"), ("index", None), ("depends_on_batch", 0.5)]
)
def test_a_line_whose_values_are_of_another_kind_is_refused(tmp_path, name, value):
    Records(tmp_path, {}).add([sample(0)])
    file = tmp_path / "samples.jsonl"
    line = json.loads(file.read_text())
    file.write_text(json.dumps({**line, name: value}) + "\n")
    with pytest.raises(fw.InputError, match=rf"line 1 of .* is no record of a sample \({name} is "):
        Records(tmp_path, {})
