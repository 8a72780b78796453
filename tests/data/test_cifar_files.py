import hashlib

import numpy as np
import pytest
import torch
from data_files import (
    DATA,
    binary_batches,
    cifar_records,
    closed,
    needs_real,
    python_batches,
    refused,
    write_archive,
    write_files,
)
from hypothesis import given
from hypothesis import strategies as st

from facetwalk.data import checksums, cifar10

RECORD = 3073
FORMS = [
    (binary_batches, "cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
    (python_batches, "cifar-10-batches-py", "cifar-10-python.tar.gz"),
]


def publish(monkeypatch, path):
    """Let the sum of this archive be the published one."""
    monkeypatch.setitem(checksums.ARCHIVES, path.name, hashlib.md5(path.read_bytes()).hexdigest())


def check_all(folder, records):
    for split, rows in (("train", records[:5]), ("test", records[5:])):
        images, labels = cifar10(folder, split)
        assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)
        assert labels.tolist() == rows[:, 0].tolist()
        for image, row in zip(images, rows, strict=True):
            for channel in range(3):
                plane = row[1 + 1024 * channel :][:1024].astype(np.float32) / 255
                np.testing.assert_array_equal(image[channel].numpy().ravel(), plane)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("batches", "inner", "archive"), FORMS)
def test_unpacked_batches_are_what_was_written(tmp_path, batches, inner, archive, inside):
    records = cifar_records(7)
    write_files(tmp_path / inner if inside else tmp_path, batches(records))
    check_all(tmp_path, records)


@pytest.mark.parametrize(("batches", "inner", "archive"), FORMS)
def test_archives_are_read_as_they_are(tmp_path, monkeypatch, batches, inner, archive):
    records = cifar_records(7)
    write_archive(tmp_path / archive, inner, batches(records))
    publish(monkeypatch, tmp_path / archive)
    check_all(tmp_path, records)
    assert [path.name for path in tmp_path.iterdir()] == [archive]


@pytest.mark.parametrize(("batches", "inner", "archive"), FORMS)
def test_an_archive_with_another_sum_is_refused(tmp_path, batches, inner, archive):
    write_archive(tmp_path / archive, inner, batches(cifar_records(7)))
    found = hashlib.md5((tmp_path / archive).read_bytes()).hexdigest()
    refused(
        lambda: cifar10(tmp_path, "test"),
        f"{archive} has the MD5 sum {found}, not {checksums.ARCHIVES[archive]} as published",
    )


def test_an_archive_that_lacks_a_batch_or_is_none_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "cifar-10-binary.tar.gz"
    files = binary_batches(cifar_records(7))
    del files["data_batch_3.bin"]
    write_archive(path, "cifar-10-batches-bin", files)
    publish(monkeypatch, path)
    refused(lambda: cifar10(tmp_path, "train"), r"there is no .*data_batch_3.bin in .*tar\.gz")
    path.write_bytes(b"<html>not found</html>")
    publish(monkeypatch, path)
    refused(lambda: cifar10(tmp_path, "test"), r"tar\.gz cannot be read \(ReadError")


@pytest.mark.parametrize(("batches", "inner", "archive"), FORMS)
def test_what_may_not_be_read_is_named(tmp_path, batches, inner, archive):
    write_archive(tmp_path / archive, inner, batches(cifar_records(7)))
    for path in (tmp_path, tmp_path / archive):
        with closed(path):
            refused(lambda: cifar10(tmp_path, "test"), r"cannot be read \(Permission denied\): ")


def test_what_is_missing_is_named_with_what_would_do(tmp_path):
    refused(
        lambda: cifar10(tmp_path, "test"),
        "there is none of cifar-10-batches-bin/test_batch.bin, cifar-10-batches-py/test_batch, "
        f"cifar-10-binary.tar.gz, cifar-10-python.tar.gz in {tmp_path}: .*download",
    )
    refused(lambda: cifar10(tmp_path / "nowhere", "test"), "there is no folder .*nowhere: pass")
    refused(lambda: cifar10(tmp_path, "val"), "'train' and 'test', not 'val'")


@pytest.mark.parametrize(("batches", "inner", "archive"), FORMS)
def test_a_missing_batch_is_named(tmp_path, batches, inner, archive):
    files = batches(cifar_records(7))
    missing = next(name for name in files if "4" in name)
    del files[missing]
    write_files(tmp_path / inner, files)
    refused(lambda: cifar10(tmp_path, "train"), f"there is no {inner}/{missing} in")


@given(kept=st.integers(0, 2 * RECORD - 1).filter(lambda kept: kept != RECORD))
def test_a_truncated_batch_is_refused(tmp_path_factory, kept):
    path = tmp_path_factory.mktemp("cifar") / "test_batch.bin"
    path.write_bytes(cifar_records(2).tobytes()[:kept])
    refused(
        lambda: cifar10(path.parent, "test"),
        f"{path} has {kept} bytes, .* multiple of 3073.*again$",
    )


@pytest.mark.parametrize(("batches", "inner", "archive"), FORMS)
def test_labels_beyond_nine_are_refused(tmp_path, batches, inner, archive):
    records = cifar_records(6)
    records[5, 0] = 77
    write_files(tmp_path, batches(records))
    refused(lambda: cifar10(tmp_path, "test"), "test_batch.* holds the label 77, .* 0 to 9")


def test_a_batch_of_full_size_must_be_the_published_one(tmp_path):
    (tmp_path / "test_batch.bin").write_bytes(bytes(10_000 * RECORD))
    refused(lambda: cifar10(tmp_path, "test"), "is not the published cifar-10-batches-bin/test")


@needs_real("cifar-10-batches-bin")
def test_the_real_cifar():
    for split, count in (("train", 50_000), ("test", 10_000)):
        images, labels = cifar10(DATA, split)
        assert images.shape == (count, 3, 32, 32)
        assert labels.bincount().tolist() == [count // 10] * 10
    assert labels[:5].tolist() == [3, 8, 8, 0, 6]


@needs_real("cifar-10-batches-bin")
def test_the_real_images_come_out_of_both_forms_alike(tmp_path):
    content = (DATA / "cifar-10-batches-bin" / "test_batch.bin").read_bytes()
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD)[:200]
    write_files(tmp_path, {"test_batch": python_batches(np.r_[records[:5], records])["test_batch"]})
    images, labels = cifar10(tmp_path, "test")
    expected, expected_labels = cifar10(DATA, "test")
    assert torch.equal(images, expected[:200])
    assert torch.equal(labels, expected_labels[:200])
