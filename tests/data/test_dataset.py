import subprocess
import sys

import pytest
import torch
from data_files import (
    binary_batches,
    cifar_records,
    idx,
    random_bytes,
    refused,
    write_files,
    write_mnist,
)

import facetwalk.data
from facetwalk.data import NAMES, ImageFiles, cifar10, fashion_mnist, load, mnist


@pytest.fixture
def folder(tmp_path):
    images, labels = idx(random_bytes(2, 28, 28)), idx(random_bytes(2, high=10))
    for inner in ("MNIST/raw", "FashionMNIST/raw"):
        write_mnist(tmp_path / inner, "t10k", images, labels, zipped=True)
    write_files(tmp_path / "cifar-10-batches-bin", binary_batches(cifar_records(7)))
    (tmp_path / "photo.JPEG").touch()
    (tmp_path / "val.txt").write_text("photo.JPEG 281\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "read", "second"),
    [
        ("mnist", mnist, "1"),
        ("fashion-mnist", fashion_mnist, "Trouser"),
        ("cifar10", cifar10, "automobile"),
    ],
)
def test_a_name_gives_what_its_function_reads(folder, name, read, second):
    data = load(name, folder, "test")
    images, labels = read(folder, "test")
    assert torch.equal(data.images[:], images)
    assert torch.equal(data.labels, labels)
    assert (data.name, len(data), len(data.classes)) == (name, 2, 10)
    assert data.classes[1] == second


def test_imagenet_is_known_by_name_too(folder):
    data = load("imagenet", folder, "val")
    assert isinstance(data.images, ImageFiles)
    assert (data.images.shape, data.labels.tolist()) == ((1, 3, 224, 224), [281])
    assert len(data.classes) == 1000
    refused(lambda: load("imagenet", folder, "test"), "the split 'val', not 'test'")


def test_unknown_names_and_splits_are_refused(folder):
    refused(lambda: load("MNIST", folder, "test"), f"'MNIST': choose one of {', '.join(NAMES)}")
    refused(lambda: load("mnist", folder, "val"), "'train' and 'test', not 'val'")


def test_the_package_imports_without_pillow():
    program = (
        "import sys; sys.modules.update({'PIL': None})\n"
        "from facetwalk.data import *\n"
        "print(NAMES[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("mnist\n", "")


def test_every_public_name_exists():
    assert all(hasattr(facetwalk.data, name) for name in facetwalk.data.__all__)
