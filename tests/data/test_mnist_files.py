import gzip

import numpy as np
import pytest
import torch
from data_files import DATA, closed, idx, needs_real, random_bytes, refused, write_mnist
from hypothesis import given
from hypothesis import strategies as st

from facetwalk.data import fashion_mnist, mnist

READERS = [(mnist, "MNIST/raw"), (fashion_mnist, "FashionMNIST/raw")]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("read", "inner"), READERS)
@pytest.mark.parametrize(("split", "prefix"), [("train", "train"), ("test", "t10k")])
def test_images_and_labels_are_what_was_written(
    tmp_path, zipped, inside, read, inner, split, prefix
):
    pixels, classes = random_bytes(3, 28, 28), random_bytes(3, high=10)
    folder = tmp_path / inner if inside else tmp_path
    write_mnist(folder, prefix, idx(pixels), idx(classes), zipped)
    images, labels = read(tmp_path, split)
    assert (images.shape, images.dtype) == ((3, 1, 28, 28), torch.float32)
    np.testing.assert_array_equal(images[:, 0].numpy(), pixels.astype(np.float32) / 255)
    assert labels.dtype == torch.int64
    assert labels.tolist() == classes.tolist()


def test_pixels_span_zero_to_one(tmp_path):
    pixels = np.zeros((1, 28, 28), np.uint8)
    pixels[0, 0, 0] = 255
    write_mnist(tmp_path, "t10k", idx(pixels), idx(random_bytes(1, high=10)), zipped=False)
    images, _ = mnist(tmp_path, "test")
    assert (images.min(), images.max()) == (0, 1)


def test_each_finds_its_own_where_both_are(tmp_path):
    for number, (_, inner) in enumerate(READERS):
        labels = np.full(1, number, np.uint8)
        write_mnist(tmp_path / inner, "t10k", idx(random_bytes(1, 28, 28)), idx(labels), True)
    assert [read(tmp_path, "test")[1].item() for read, _ in READERS] == [0, 1]


@pytest.mark.parametrize(("read", "inner"), READERS)
def test_what_is_missing_is_named_with_the_places_searched(tmp_path, read, inner):
    name = "t10k-images-idx3-ubyte"
    refused(
        lambda: read(tmp_path, "test"),
        f"there is no {name} or {name}.gz in .*{inner} or in .*: pass the folder .*download",
    )
    refused(lambda: read(tmp_path / "nowhere", "test"), "there is no folder .*nowhere: pass")
    refused(lambda: read(tmp_path, "val"), "'train' and 'test', not 'val'")


@pytest.mark.parametrize(("read", "inner"), READERS)
def test_what_may_not_be_read_is_named(tmp_path, read, inner):
    write_mnist(tmp_path / inner, "t10k", b"", b"", zipped=False)
    for path in (tmp_path, tmp_path / inner, tmp_path / inner / "t10k-images-idx3-ubyte"):
        with closed(path):
            refused(lambda: read(tmp_path, "test"), r"cannot be read \(Permission")
    refused(lambda: read("n" * 300, "test"), r"n cannot be read \(File name too long\): pass a")


@given(kept=st.integers(0, 200))
def test_a_truncated_gzip_file_is_refused(tmp_path_factory, kept):
    folder = tmp_path_factory.mktemp("mnist")
    write_mnist(folder, "t10k", idx(random_bytes(2, 28, 28)), b"", zipped=True)
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:kept])
    refused(
        lambda: mnist(folder, "test"),
        rf"{path.name} (cannot be read \(|starts with nothing).*again$",
    )


def test_a_gz_file_that_is_none_is_refused(tmp_path):
    write_mnist(tmp_path, "t10k", b"", b"", zipped=True)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(b"<html>not found</html>")
    refused(lambda: mnist(tmp_path, "test"), r"cannot be read \(BadGzipFile")


@pytest.mark.parametrize(
    ("images", "labels", "match"),
    [
        ((2, 20, 20), (2,), "images of 20 by 20 pixels, not of 28 by 28"),
        ((2, 28, 28), (3,), "holds 2 images but .* holds 3 labels"),
        ((0, 28, 28), (0,), "header announces 0 x 28 x 28 values"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(tmp_path, images, labels, match):
    contents = idx(random_bytes(*images)), idx(random_bytes(*labels, high=10))
    write_mnist(tmp_path, "t10k", *contents, zipped=False)
    refused(lambda: mnist(tmp_path, "test"), match)


def test_labels_beyond_nine_are_refused(tmp_path):
    labels = np.array([10], np.uint8)
    write_mnist(tmp_path, "t10k", idx(random_bytes(1, 28, 28)), idx(labels), zipped=False)
    refused(lambda: mnist(tmp_path, "test"), "holds the label 10, and labels are 0 to 9: delete")


@pytest.mark.parametrize("zipped", [False, True])
def test_files_of_full_size_must_be_the_published_ones(tmp_path, zipped):
    images, labels = random_bytes(10_000, 28, 28), random_bytes(10_000, high=10)
    write_mnist(tmp_path, "t10k", idx(images), idx(labels), zipped)
    for read, inner in READERS:
        refused(
            lambda read=read: read(tmp_path, "test"),
            f"t10k-images-idx3-ubyte.* is not the published {inner}/t10k-images-idx3-ubyte .*MD5",
        )


@needs_real("MNIST")
def test_the_real_mnist():
    for split, count in (("train", 60_000), ("test", 10_000)):
        images, labels = mnist(DATA, split)
        assert images.shape == (count, 1, 28, 28)
        assert (images.min(), images.max()) == (0, 1)
        assert labels.bincount().min() > count / 12
    assert labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert images.mean().item() == pytest.approx(0.1325, abs=1e-3)


@needs_real("MNIST/raw/t10k-images-idx3-ubyte.gz")
def test_mnist_is_not_taken_for_fashion_mnist(tmp_path):
    for kind in ("images-idx3", "labels-idx1"):
        packed = (DATA / "MNIST" / "raw" / f"t10k-{kind}-ubyte.gz").read_bytes()
        (tmp_path / f"t10k-{kind}-ubyte").write_bytes(gzip.decompress(packed))
    assert len(mnist(tmp_path, "test")[0]) == 10_000
    refused(lambda: fashion_mnist(tmp_path, "test"), "is not the published FashionMNIST/raw")


@needs_real("FashionMNIST")
def test_the_real_fashion_mnist():
    for split, count in (("train", 60_000), ("test", 10_000)):
        images, labels = fashion_mnist(DATA, split)
        assert images.shape == (count, 1, 28, 28)
        assert labels.bincount().tolist() == [count // 10] * 10
    assert labels[:5].tolist() == [9, 2, 1, 1, 6]
