"""Writes small files in the formats of the data sets, without any code of the readers."""

import gzip
import io
import os
import struct
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from facetwalk.types import InputError

SHARED = Path(__file__).parents[3] / "shared" / "data"
DATA = Path(os.environ.get("FACETWALK_DATA", SHARED))


def needs_real(place: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not (DATA / place).exists(), reason=f"{place} is not in {DATA}: set FACETWALK_DATA"
    )


def refused(call: Callable[[], object], match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)


@contextmanager
def closed(path: Path) -> Iterator[None]:
    """Within it nobody may read a file or folder, not even root, who is somebody else there."""
    mode, root = path.stat().st_mode, os.geteuid() == 0
    path.chmod(0)
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        path.chmod(mode)


def random_bytes(*shape: int, high: int = 256) -> np.ndarray:
    return np.random.default_rng(0).integers(high, size=shape, dtype=np.uint8)


def idx(values: np.ndarray) -> bytes:
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return header + values.tobytes()


def write_mnist(folder: Path, prefix: str, images: bytes, labels: bytes, zipped: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("images-idx3", images), ("labels-idx1", labels)):
        path = folder / f"{prefix}-{name}-ubyte{'.gz' if zipped else ''}"
        path.write_bytes(gzip.compress(content) if zipped else content)


def cifar_records(count: int) -> np.ndarray:
    """`(N, 3073)`: labels and pixels."""
    return np.column_stack([random_bytes(count, high=10), random_bytes(count, 3072)])


def binary_batches(records: np.ndarray) -> dict[str, bytes]:
    """One record for each batch to train on, and the others for the test batch."""
    files = {f"data_batch_{n}.bin": row.tobytes() for n, row in enumerate(records[:5], 1)}
    return {**files, "test_batch.bin": records[5:].tobytes()}


def python_batches(records: np.ndarray) -> dict[str, bytes]:
    files = {f"data_batch_{n}": python_2_pickle(records[n - 1 : n]) for n in range(1, 6)}
    return {**files, "test_batch": python_2_pickle(records[5:])}


def python_2_pickle(records: np.ndarray) -> bytes:
    """Labels and pixels as Python 2 and its NumPy pickled them, operation by operation."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    raw = records[:, 1:].tobytes()
    kind = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R"
    kind += b"(K\x03" + text(b"|") + b"NNN" + number(-1) + number(-1) + b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b")
    array += b"\x87R(K\x01" + number(len(records)) + number(3072) + b"\x86" + kind
    array += b"\x89T" + struct.pack("<I", len(raw)) + raw + b"tb"
    labels = b"](" + b"".join(b"K" + bytes([label]) for label in records[:, 0]) + b"e"
    names = b"](" + b"".join(text(b"image_%d.png" % n) for n in range(len(records))) + b"e"
    items = text(b"batch_label") + text(b"testing batch 1 of 1") + text(b"labels") + labels
    items += text(b"data") + array + text(b"filenames") + names
    return b"\x80\x02}(" + items + b"u."


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def write_archive(path: Path, inner: str, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{inner}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
