import sys

import numpy as np
import pytest
import torch
from data_files import refused
from PIL import Image

from facetwalk.data import ImageFiles
from facetwalk.types import MissingExtraError


def write_jpeg(path, size, mode="RGB"):
    shades = np.random.default_rng(0).integers(256, size=(8, 8), dtype=np.uint8)
    Image.fromarray(shades).resize(size).convert(mode).save(path, "JPEG", quality=95)
    return path


def torchvisions(path):
    """Resize(256), CenterCrop(224), ToTensor."""
    with Image.open(path) as file:
        image = file.convert("RGB")
    width, height = image.size
    if width < height:
        width, height = 256, int(256 * height / width)
    else:
        width, height = int(256 * width / height), 256
    pixels = np.array(image.resize((width, height), Image.Resampling.BILINEAR))
    top, left = round((height - 224) / 2.0), round((width - 224) / 2.0)
    return np.moveaxis(pixels[top : top + 224, left : left + 224], 2, 0).astype(np.float32) / 255


@pytest.fixture
def images(tmp_path):
    sizes = [(300, 260), (200, 411), (256, 256), (500, 375)]
    return ImageFiles(
        tuple(write_jpeg(tmp_path / f"{n}.JPEG", size) for n, size in enumerate(sizes))
    )


def test_images_are_resized_and_cropped_as_everywhere(images):
    for number, path in enumerate(images.paths):
        image = images[number]
        assert (image.shape, image.dtype) == ((3, 224, 224), torch.float32)
        np.testing.assert_array_equal(image.numpy(), torchvisions(path))


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_other_colours_become_rgb(tmp_path, mode):
    path = write_jpeg(tmp_path / "photo.jpg", (300, 300), mode)
    np.testing.assert_array_equal(ImageFiles((path,))[0].numpy(), torchvisions(path))


@pytest.mark.parametrize("mode", ["L", "RGBA"])
def test_a_png_by_another_name_is_read(tmp_path, mode):
    Image.new(mode, (300, 260), 77).save(tmp_path / "photo.JPEG", "PNG")
    path = tmp_path / "photo.JPEG"
    np.testing.assert_array_equal(ImageFiles((path,))[0].numpy(), torchvisions(path))


def test_what_pillow_reads_with_the_help_of_ghostscript_is_refused(tmp_path):
    Image.new("RGB", (300, 260)).save(tmp_path / "photo.JPEG", "EPS")
    refused(lambda: ImageFiles((tmp_path / "photo.JPEG",))[0], r"as an image \(UnidentifiedImage")


def test_they_are_indexed_like_a_tensor(images):
    everything = torch.stack(list(images))
    assert images.shape == everything.shape
    assert len(images) == len(everything)
    mask = torch.tensor([True, False, False, True])
    for rows in (2, -1, slice(1, 3), slice(0, 0), [3, 0], torch.tensor([1, 1]), mask):
        assert torch.equal(images[rows], everything[rows])
    with pytest.raises(IndexError):
        images[4]


def test_files_are_read_when_asked_for(images):
    images.paths[1].unlink()
    images.paths[2].write_bytes(images.paths[2].read_bytes()[:200])
    assert images[[0, 3]].shape == (2, 3, 224, 224)
    refused(lambda: images[1], r"1.JPEG cannot be read as an image \(FileNotFoundError")
    refused(lambda: images[2], r"2.JPEG cannot be read as an image \(.*: delete it")
    images.paths[3].write_bytes(b"<html>not found</html>")
    refused(lambda: images[3], r"3.JPEG cannot be read as an image \(UnidentifiedImageError")


def test_without_pillow_the_extra_is_named(images, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    for call in (lambda: ImageFiles(images.paths), lambda: images[0]):
        with pytest.raises(MissingExtraError, match=r"photographs .*facetwalk\[images\]"):
            call()
