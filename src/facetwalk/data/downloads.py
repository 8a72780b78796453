"""Fetches data sets from those who publish them, and from mirrors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from facetwalk.data.checksums import ARCHIVES, md5_of, md5_of_file
from facetwalk.data.dataset import check_name
from facetwalk.data.files import reading
from facetwalk.messages import reason
from facetwalk.progress import progress_report
from facetwalk.types import DownloadError, InputError
from facetwalk.writing import make_folder, write_whole

_SECONDS = 30.0
"""How long a server may be silent."""
_PIECE = 1 << 20


@dataclass(frozen=True)
class Source:
    """Where the archives of a data set are."""

    archives: tuple[str, ...]
    """Their places in a data folder, as in `ARCHIVES`."""
    addresses: tuple[str, ...]
    """Where to look for their names, in this order."""


def _idx_archives(inner: str) -> tuple[str, ...]:
    return tuple(place for place in ARCHIVES if place.startswith(f"{inner}/raw/"))


SOURCES = {
    "mnist": Source(
        _idx_archives("MNIST"),
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "http://yann.lecun.com/exdb/mnist/",
        ),
    ),
    "fashion-mnist": Source(
        _idx_archives("FashionMNIST"),
        (
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ),
    ),
    "cifar10": Source(
        ("cifar-10-binary.tar.gz",),
        ("https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/"),
    ),
}


def download(name: str, folder: str | Path, progress: bool = False) -> None:
    """Fetch a data set into `folder`, where `load` finds it.

    Files that are there and have their published sums stay. Others are fetched, compared with
    these sums, and only then put in their places.

    Args:
        name: 'mnist', 'fashion-mnist' or 'cifar10' (170 MB).
        folder: made if it is not there.
        progress: whether to show a progress bar (plain lines where there is no terminal).
    """
    check_name(name)
    if name not in SOURCES:
        raise InputError(
            "ImageNet cannot be downloaded without an account: get ILSVRC2012_img_val.tar from "
            "image-net.org, unpack it, and pass its folder and a list of labels"
        )
    source = SOURCES[name]
    for place in source.archives:
        target = Path(folder) / place
        with reading():
            is_there = target.is_file() and md5_of_file(target) == ARCHIVES[place]
        if not is_there:
            make_folder(target.parent)
            with progress_report(progress, target.name) as report:
                content = _fetch(target, ARCHIVES[place], source.addresses, report)
            write_whole(target, content)


def _fetch(
    target: Path, published: str, addresses: tuple[str, ...], report: Callable[[float, str], None]
) -> bytes:
    """What the first address has that has the published sum."""
    failures = []
    for address in addresses:
        try:
            content = _content(f"{address}{target.name}", report)
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{address}: {reason(error)}")
            continue
        if (found := md5_of(content)) == published:
            return content
        failures.append(f"{address}: MD5 sum {found} instead of {published}")
    raise DownloadError(
        f"{target.name} could not be downloaded ({'; '.join(failures)}): try again later, or put "
        f"the file into {target.parent} yourself"
    )


def _content(address: str, report: Callable[[float, str], None]) -> bytes:
    request = Request(address, headers={"User-Agent": "facetwalk"})
    with urlopen(request, timeout=_SECONDS) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        content = bytearray()
        while piece := answer.read(_PIECE):
            content += piece
            share = min(1.0, len(content) / total) if total else 0.0
            report(share, f"{len(content) / 1e6:.1f} MB")
    return bytes(content)
