"""Files that are written whole or not at all."""

import errno
import os

import pytest

from facetwalk.types import InputError
from facetwalk.writing import write_whole


@pytest.fixture
def full_disk(monkeypatch):
    """Writing ends half-way, as where no space is left."""

    def write_half(path, content):
        with path.open("wb") as file:
            file.write(bytes(content)[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pathlib.Path.write_bytes", write_half)


def test_on_a_full_disk_what_was_there_stays_and_nothing_is_left(tmp_path, full_disk):
    (tmp_path / "out.json").write_text("before")
    with pytest.raises(InputError, match=r"out.json cannot be written: No space left on device"):
        write_whole(tmp_path / "out.json", b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert (tmp_path / "out.json").read_text() == "before"


def test_a_link_stays_one(tmp_path):
    (tmp_path / "file").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "after"


def test_what_is_no_file_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", b"through it")
    assert os.read(reader, 100) == b"through it"
    os.close(reader)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
