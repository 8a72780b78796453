"""A folder that remembers long work, and what it does to files that are not its own."""

import errno
import os

import pytest

from facetwalk.run_folder import RunFolder
from facetwalk.types import InputError

ASKED = {"seed": 0}


def folder_of(path, read=dict) -> RunFolder:
    return RunFolder(path, ASKED, "done.jsonl", read)


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("content", [b"mine", b'{"part": 1}\n', b"mine\nand more", b""])
def test_lines_without_a_run_are_refused_and_left_alone(tmp_path, content):
    (tmp_path / "done.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=r"holds done.jsonl but no run.json.*another folder"):
        folder_of(tmp_path)
    assert contents(tmp_path) == {"done.jsonl": content}


def test_a_last_line_is_cut_only_if_all_others_are_ours(tmp_path):
    folder_of(tmp_path).add([{"part": 1}])
    with (tmp_path / "done.jsonl").open("ab") as file:
        file.write(b"a line of mine\nand another")
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"line 2 of .*done.jsonl is no record of a part: choose"):
        folder_of(tmp_path)
    assert contents(tmp_path) == before


def test_the_reason_why_a_line_is_none_is_said(tmp_path):
    folder_of(tmp_path).add([{"part": 1}, {"part": 7}])

    def read(values):
        if values["part"] > 5:
            raise InputError("there are 5 parts")
        return values

    with pytest.raises(InputError, match=r"line 2 .* is no record of a part \(there are 5 parts\)"):
        folder_of(tmp_path, read)


def test_on_a_full_disk_what_was_done_before_is_kept(tmp_path, monkeypatch):
    folder = folder_of(tmp_path)
    folder.add([{"part": 1}])

    def full(file: int) -> None:
        os.ftruncate(file, os.fstat(file).st_size - 4)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"done.jsonl cannot be written \(No space left"):
            folder.add([{"part": 2}])
    assert folder.lines == [{"part": 1}]
    again = folder_of(tmp_path)
    assert again.lines == [{"part": 1}]
    again.add([{"part": 2}])
    assert folder_of(tmp_path).lines == [{"part": 1}, {"part": 2}]
