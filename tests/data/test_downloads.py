import errno
import hashlib
import os
import threading
from contextlib import nullcontext
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from data_files import (
    binary_batches,
    cifar_records,
    idx,
    random_bytes,
    refused,
    write_archive,
    write_mnist,
)

from facetwalk.data import checksums, cifar10, download, downloads, load
from facetwalk.data.downloads import Source
from facetwalk.types import DownloadError

NOBODY = "http://127.0.0.1:9/"
ARCHIVE = "cifar-10-binary.tar.gz"


class QuietHandler(SimpleHTTPRequestHandler):
    asked: list[str]

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *words):
        pass


@pytest.fixture
def server(tmp_path):
    """The folder that is served, its address, and what was asked for."""
    served = tmp_path / "served"
    served.mkdir()
    asked: list[str] = []
    handler = type("Handler", (QuietHandler,), {"asked": asked})
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(served)))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served, f"http://127.0.0.1:{http.server_port}/", asked
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Without these, no test knows any address."""
    for name, source in downloads.SOURCES.items():
        monkeypatch.setitem(downloads.SOURCES, name, Source(source.archives, ()))


def offer(monkeypatch, name, *addresses):
    source = downloads.SOURCES[name]
    monkeypatch.setitem(downloads.SOURCES, name, Source(source.archives, addresses))


def publish(monkeypatch, name, served: Path):
    for place in downloads.SOURCES[name].archives:
        content = (served / Path(place).name).read_bytes()
        monkeypatch.setitem(checksums.ARCHIVES, place, hashlib.md5(content).hexdigest())


def serve_cifar(served: Path) -> np.ndarray:
    records = cifar_records(7)
    write_archive(served / ARCHIVE, "cifar-10-batches-bin", binary_batches(records))
    return records


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_what_is_downloaded_can_be_loaded(tmp_path, server, monkeypatch, name):
    served, address, asked = server
    labels = random_bytes(2, high=10)
    for prefix in ("train", "t10k"):
        write_mnist(served, prefix, idx(random_bytes(2, 28, 28)), idx(labels), zipped=True)
    offer(monkeypatch, name, address)
    publish(monkeypatch, name, served)
    download(name, tmp_path / "new" / "data")
    for split in ("train", "test"):
        assert load(name, tmp_path / "new" / "data", split).labels.tolist() == labels.tolist()
    assert len(asked) == 4
    download(name, tmp_path / "new" / "data")
    assert len(asked) == 4


def test_cifar_is_read_from_the_archive_that_was_downloaded(tmp_path, server, monkeypatch):
    served, address, _ = server
    records = serve_cifar(served)
    offer(monkeypatch, "cifar10", address)
    publish(monkeypatch, "cifar10", served)
    download("cifar10", tmp_path / "data", progress=True)
    assert cifar10(tmp_path / "data", "test")[1].tolist() == records[5:, 0].tolist()


def test_mirrors_are_tried_in_turn(tmp_path, server, monkeypatch):
    served, address, asked = server
    serve_cifar(served)
    (served / "bad").mkdir()
    (served / "bad" / ARCHIVE).write_bytes(b"<html>sign in first</html>")
    offer(monkeypatch, "cifar10", NOBODY, f"{address}nowhere/", f"{address}bad/", address)
    publish(monkeypatch, "cifar10", served)
    download("cifar10", tmp_path / "data")
    assert asked == [f"/nowhere/{ARCHIVE}", f"/bad/{ARCHIVE}", f"/{ARCHIVE}"]
    assert [path.name for path in (tmp_path / "data").iterdir()] == [ARCHIVE]


def test_a_damaged_file_is_replaced(tmp_path, server, monkeypatch):
    served, address, _ = server
    serve_cifar(served)
    offer(monkeypatch, "cifar10", address)
    publish(monkeypatch, "cifar10", served)
    (tmp_path / ARCHIVE).write_bytes((served / ARCHIVE).read_bytes()[:100])
    download("cifar10", tmp_path)
    assert (tmp_path / ARCHIVE).read_bytes() == (served / ARCHIVE).read_bytes()


def test_without_a_good_source_nothing_is_left_and_each_is_named(tmp_path, server, monkeypatch):
    served, address, _ = server
    serve_cifar(served)
    offer(monkeypatch, "cifar10", NOBODY, f"{address}nowhere/", address)
    with pytest.raises(DownloadError) as caught:
        download("cifar10", tmp_path / "data")
    found = hashlib.md5((served / ARCHIVE).read_bytes()).hexdigest()
    for words in (
        f"{ARCHIVE} could not be downloaded",
        f"{NOBODY}: URLError",
        f"{address}nowhere/: HTTPError: HTTP Error 404",
        f"{address}: MD5 sum {found} instead of c32a1d4ab5d03f1284b67883e8d87530",
        f"put the file into {tmp_path / 'data'} yourself",
    ):
        assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "data").iterdir())


def test_a_connection_that_breaks_leaves_nothing(tmp_path, server, monkeypatch):
    served, address, _ = server
    serve_cifar(served)
    publish(monkeypatch, "cifar10", served)
    (served / ARCHIVE).write_bytes((served / ARCHIVE).read_bytes()[:-1])
    offer(monkeypatch, "cifar10", address)
    with pytest.raises(DownloadError, match="MD5 sum"):
        download("cifar10", tmp_path / "data")
    assert not list((tmp_path / "data").iterdir())


def test_what_cannot_be_downloaded_is_refused(tmp_path):
    refused(lambda: download("imagenet", tmp_path), "without an account: get ILSVRC2012_img_val")
    refused(lambda: download("svhn", tmp_path), "there is no data set 'svhn'")
    (tmp_path / "file").touch()
    refused(lambda: download("mnist", tmp_path / "file"), "raw cannot be a folder: Not a directory")


def test_a_folder_that_cannot_be_written_to_is_refused_and_no_server_is_asked(
    tmp_path, server, monkeypatch
):
    _, address, asked = server
    offer(monkeypatch, "cifar10", address)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    refused(lambda: download("cifar10", tmp_path), "may not be written to: choose another folder")
    assert not asked


def test_on_a_full_disk_one_server_is_asked_and_nothing_is_left(tmp_path, server, monkeypatch):
    served, address, asked = server
    serve_cifar(served)
    offer(monkeypatch, "cifar10", address, address)
    publish(monkeypatch, "cifar10", served)

    def full(self, mode="r", *more, path_open=Path.open):
        if "w" in mode:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return path_open(self, mode, *more)

    monkeypatch.setattr(Path, "open", full)
    said = f"{ARCHIVE} cannot be written: No space"
    refused(lambda: download("cifar10", tmp_path / "data"), said)
    assert len(asked) == 1
    assert not list((tmp_path / "data").iterdir())


def test_a_place_that_is_taken_by_a_folder_is_named(tmp_path, server, monkeypatch):
    served, address, _ = server
    serve_cifar(served)
    offer(monkeypatch, "cifar10", address)
    publish(monkeypatch, "cifar10", served)
    (tmp_path / ARCHIVE).mkdir()
    refused(lambda: download("cifar10", tmp_path), f"{ARCHIVE} cannot be written: Is a directory")


def test_a_download_that_is_stopped_leaves_nothing(tmp_path, server, monkeypatch):
    served, address, _ = server
    serve_cifar(served)
    offer(monkeypatch, "cifar10", address)

    def stopped(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(downloads, "progress_report", lambda *given: nullcontext(stopped))
    with pytest.raises(KeyboardInterrupt):
        download("cifar10", tmp_path / "data")
    assert not list((tmp_path / "data").iterdir())


def test_every_source_has_archives_with_sums_and_addresses():
    assert {name: len(source.archives) for name, source in downloads.SOURCES.items()} == {
        "mnist": 4,
        "fashion-mnist": 4,
        "cifar10": 1,
    }
    places = [place for source in downloads.SOURCES.values() for place in source.archives]
    assert set(places) <= set(checksums.ARCHIVES)
