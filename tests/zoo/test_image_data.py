import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from facetwalk.types import InputError
from facetwalk.zoo.image_data import cifar10, mnist

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
DATA = Path(os.environ.get("FACETWALK_DATA", SHARED))
RECORD = 3073


def needs_real(folder: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not (DATA / folder).is_dir(), reason=f"{folder} is not in {DATA}: set FACETWALK_DATA"
    )


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


def write_cifar(folder: Path, records: np.ndarray) -> None:
    """Records `(N, 3073)`, of which the last goes to the test file, one each to the others."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, record in enumerate(records[:5], start=1):
        (folder / f"data_batch_{number}.bin").write_bytes(record.tobytes())
    (folder / "test_batch.bin").write_bytes(records[5:].tobytes())


def cifar_records(count: int) -> np.ndarray:
    return np.column_stack([random_bytes(count, high=10), random_bytes(count, RECORD - 1)])


def refused(read, folder: Path, match: str, split: str = "test") -> None:
    with pytest.raises(InputError, match=match) as caught:
        read(folder, split)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("inner", ["", "MNIST/raw"])
@pytest.mark.parametrize(("split", "prefix"), [("train", "train"), ("test", "t10k")])
def test_mnist_is_what_was_written(tmp_path, zipped, inner, split, prefix):
    pixels, classes = random_bytes(3, 28, 28), random_bytes(3, high=10)
    write_mnist(tmp_path / inner, prefix, idx(pixels), idx(classes), zipped)
    images, labels = mnist(tmp_path, split)
    assert (images.shape, images.dtype) == ((3, 1, 28, 28), torch.float32)
    np.testing.assert_array_equal(images[:, 0].numpy(), pixels.astype(np.float32) / 255)
    assert labels.dtype == torch.int64
    assert labels.tolist() == classes.tolist()


@pytest.mark.parametrize("inner", ["", "cifar-10-batches-bin"])
def test_cifar_is_what_was_written(tmp_path, inner):
    records = cifar_records(7)
    write_cifar(tmp_path / inner, records)
    for split, rows in (("train", records[:5]), ("test", records[5:])):
        images, labels = cifar10(tmp_path, split)
        assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)
        assert labels.tolist() == rows[:, 0].tolist()
        for image, row in zip(images, rows, strict=True):
            for channel in range(3):
                plane = row[1 + 1024 * channel :][:1024].astype(np.float32) / 255
                np.testing.assert_array_equal(image[channel].numpy().ravel(), plane)


def test_pixels_span_zero_to_one(tmp_path):
    pixels = np.zeros((1, 28, 28), np.uint8)
    pixels[0, 0, 0] = 255
    write_mnist(tmp_path, "t10k", idx(pixels), idx(random_bytes(1, high=10)), zipped=False)
    images, _ = mnist(tmp_path, "test")
    assert (images.min(), images.max()) == (0, 1)


@pytest.mark.parametrize("read", [mnist, cifar10])
def test_an_unknown_split_is_refused(tmp_path, read):
    refused(read, tmp_path, "'train' and 'test', not 'validation'", split="validation")


@pytest.mark.parametrize(
    ("read", "name"), [(mnist, "t10k-images-idx3-ubyte"), (cifar10, "test_batch.bin")]
)
def test_a_missing_file_is_named_with_the_places_searched(tmp_path, read, name):
    refused(read, tmp_path, f"there is no {name} or {name}.gz in .* or in .*: download it")


@given(kept=st.integers(0, 16 + 2 * 784 - 1))
def test_truncated_images_are_refused(tmp_path_factory, kept):
    folder = tmp_path_factory.mktemp("mnist")
    images = idx(random_bytes(2, 28, 28))[:kept]
    write_mnist(folder, "t10k", images, idx(random_bytes(2, high=10)), zipped=False)
    refused(mnist, folder, rf"t10k-images-idx3-ubyte (has {kept} bytes|starts with).*again$")


@given(kept=st.integers(0, 2 * RECORD - 1).filter(lambda kept: kept != RECORD))
def test_a_truncated_batch_is_refused(tmp_path_factory, kept):
    path = tmp_path_factory.mktemp("cifar") / "test_batch.bin"
    path.write_bytes(cifar_records(2).tobytes()[:kept])
    refused(cifar10, path.parent, f"{path} has {kept} bytes, .* multiple of 3073.*again$")


@given(kept=st.integers(0, 200))
def test_a_truncated_gzip_file_is_refused(tmp_path_factory, kept):
    folder = tmp_path_factory.mktemp("mnist")
    write_mnist(folder, "t10k", idx(random_bytes(2, 28, 28)), b"", zipped=True)
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:kept])
    refused(mnist, folder, rf"{path.name} (cannot be read \(|starts with nothing).*again$")


@pytest.mark.parametrize("position", range(4))
def test_a_wrong_magic_number_is_refused(tmp_path, position):
    content = bytearray(idx(random_bytes(2, 28, 28)))
    content[position] ^= 1
    write_mnist(tmp_path, "t10k", bytes(content), idx(random_bytes(2, high=10)), zipped=False)
    refused(mnist, tmp_path, f"starts with {content[:4].hex()}, not with 00000803")


def test_a_gz_file_that_is_none_is_refused(tmp_path):
    write_mnist(tmp_path, "t10k", b"", b"", zipped=True)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(b"<html>not found</html>")
    refused(mnist, tmp_path, r"cannot be read \(BadGzipFile")


@pytest.mark.parametrize(
    ("images", "labels", "match"),
    [
        ((2, 20, 20), (2,), "images of 20 by 20 pixels, not of 28 by 28"),
        ((2, 28, 28), (3,), "holds 2 images but .* holds 3 labels"),
        ((0, 28, 28), (0,), r"announces 0 item\(s\)"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(tmp_path, images, labels, match):
    contents = idx(random_bytes(*images)), idx(random_bytes(*labels, high=10))
    write_mnist(tmp_path, "t10k", *contents, zipped=False)
    refused(mnist, tmp_path, match)


def test_labels_beyond_nine_are_refused(tmp_path):
    write_mnist(
        tmp_path, "t10k", idx(random_bytes(1, 28, 28)), idx(np.array([10], np.uint8)), zipped=False
    )
    refused(mnist, tmp_path, "labels-idx1-ubyte holds the label 10, and labels are 0 to 9")
    records = cifar_records(6)
    records[5, 0] = 77
    write_cifar(tmp_path, records)
    refused(cifar10, tmp_path, r"test_batch.bin holds the label 77")


@needs_real("MNIST")
def test_the_real_mnist():
    for split, count in (("train", 60_000), ("test", 10_000)):
        images, labels = mnist(DATA, split)
        assert images.shape == (count, 1, 28, 28)
        assert (images.min(), images.max()) == (0, 1)
        assert labels.bincount().min() > count / 12
    assert labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert images.mean().item() == pytest.approx(0.1325, abs=1e-3)


@needs_real("cifar-10-batches-bin")
def test_the_real_cifar():
    for split, count in (("train", 50_000), ("test", 10_000)):
        images, labels = cifar10(DATA, split)
        assert images.shape == (count, 3, 32, 32)
        assert labels.bincount().tolist() == [count // 10] * 10
    assert labels[:5].tolist() == [3, 8, 8, 0, 6]
