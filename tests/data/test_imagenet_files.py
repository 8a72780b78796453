import json

import pytest
import torch
from data_files import DATA, closed, needs_real, refused
from PIL import Image
from torch import nn

from facetwalk.data import imagenet_val
from facetwalk.data.imagenet_files import read_imagenet_val
from facetwalk.zoo import Normalize, SqueezeNet

NAMES = [f"n{10_000_000 + 7 * number:08d}" for number in range(1000)]
FLAT = [f"ILSVRC2012_val_{number:08d}.JPEG" for number in range(1, 4)]
CHOSEN = [NAMES[5], NAMES[998], NAMES[5]]


def write_image(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (260, 256)).save(path, "JPEG")


@pytest.fixture
def flat(tmp_path):
    for name in FLAT:
        write_image(tmp_path / name)
    return tmp_path


def test_folders_are_classes_in_sorted_order(tmp_path):
    for name in reversed(NAMES):
        (tmp_path / name).mkdir()
        (tmp_path / name / "b.JPEG").touch()
    (tmp_path / NAMES[3] / "a.JPEG").touch()
    (tmp_path / "README.txt").touch()
    images, labels, classes = read_imagenet_val(tmp_path)
    assert classes == tuple(NAMES)
    assert labels.dtype == torch.int64
    assert labels.tolist() == [0, 1, 2, 3, 3, *range(4, 1000)]
    assert [path.name for path in images.paths[3:5]] == ["a.JPEG", "b.JPEG"]


def test_a_folder_without_images_still_tells_the_name_of_its_class(tmp_path):
    for name in NAMES:
        (tmp_path / name).mkdir()
    (tmp_path / NAMES[998] / "a.JPEG").touch()
    _, labels, classes = read_imagenet_val(tmp_path)
    assert labels.tolist() == [998]
    assert classes == tuple(NAMES)


@pytest.mark.parametrize("inner", ["", "val"])
@pytest.mark.parametrize("listing", ["classes.txt", "LOC_synset_mapping.txt", "elsewhere.txt"])
def test_some_classes_get_their_numbers_from_a_list(tmp_path, inner, listing):
    for name in (NAMES[20], NAMES[7]):
        write_image(tmp_path / inner / name / "photo.JPEG")
    lines = "".join(f"{name} some words, more words\n" for name in NAMES)
    (tmp_path / listing).write_text(lines)
    given = tmp_path / listing if listing == "elsewhere.txt" else None
    images, labels = imagenet_val(tmp_path, classes=given)
    assert labels.tolist() == [7, 20]
    assert images[:1].shape == (1, 3, 224, 224)


def test_some_classes_without_a_list_are_refused(tmp_path):
    write_image(tmp_path / NAMES[20] / "photo.JPEG")
    refused(lambda: imagenet_val(tmp_path), "has 1 of the 1000 classes .*: pass classes=")
    (tmp_path / "classes.txt").write_text("\n".join([*NAMES[:999], NAMES[0]]))
    refused(lambda: imagenet_val(tmp_path), "holds 1000 classes, 999 of them different")
    (tmp_path / "classes.txt").write_text("\n".join([*NAMES[:20], "n00000001", *NAMES[21:]]))
    refused(lambda: imagenet_val(tmp_path), f"the class {NAMES[20]} of .* is not in .*classes")


@pytest.mark.parametrize("listing", ["val.txt", "labels.txt", "elsewhere.txt"])
def test_lines_of_names_and_numbers(flat, listing):
    lines = [f"{name} {label}" for name, label in zip(FLAT, (65, 999, 0), strict=True)]
    (flat / listing).write_text("\n".join(reversed(lines)) + "\n\n")
    given = flat / listing if listing == "elsewhere.txt" else None
    images, labels, classes = read_imagenet_val(flat, labels=given)
    assert [path.name for path in images.paths] == FLAT
    assert labels.tolist() == [65, 999, 0]
    assert classes[65] == "65"


def test_a_mark_that_windows_puts_before_a_list_is_left_out(flat):
    (flat / "val.txt").write_text("65\n999\n0\n", encoding="utf-8-sig")
    assert imagenet_val(flat)[1].tolist() == [65, 999, 0]


def test_lines_of_class_names(flat):
    (flat / "classes.txt").write_text("\n".join(NAMES))
    (flat / "val.txt").write_text("\n".join(CHOSEN))
    _, labels, classes = read_imagenet_val(flat)
    assert labels.tolist() == [5, 998, 5]
    assert classes == tuple(NAMES)


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        (["1", "2"], "holds 2 labels for 3 images"),
        ([f"{FLAT[0]} 1", f"{FLAT[2]} 2"], f"has no label for {FLAT[1]}"),
        (["1", "2", "1000"], "holds the label 1000, and labels are 0 to 999"),
        (["1", "2", "-3"], "holds the label '-3', and labels are numbers from 0 to 999"),
        (["1", "2", "cat"], "holds the label 'cat'"),
        (CHOSEN, "has 2 of the 1000 classes .*: pass classes="),
        ([], "holds 0 labels for 3 images"),
    ],
)
def test_lists_that_do_not_fit_are_refused(flat, lines, match):
    (flat / "val.txt").write_text("\n".join(lines))
    refused(lambda: imagenet_val(flat), match)


def test_what_is_missing_is_named(flat, tmp_path):
    refused(lambda: imagenet_val(flat), "no list of their labels is in .*: pass labels=")
    refused(lambda: imagenet_val(flat, labels=flat / "no.txt"), r"no.txt cannot be read \(FileNot")
    (flat / "binary.txt").write_bytes(b"\xff\xfe")
    refused(lambda: imagenet_val(flat, labels=flat / "binary.txt"), "cannot be read .Unicode")
    (tmp_path / "empty").mkdir()
    refused(lambda: imagenet_val(tmp_path / "empty"), "no JPEG images in .*: pass the folder")
    (tmp_path / "empty" / "val.txt").write_text("1\n2\n")
    refused(lambda: imagenet_val(tmp_path / "empty"), "no JPEG images in .*: pass the folder")
    for path in (flat, flat / "val.txt"):
        (flat / "val.txt").write_text("1\n2\n3\n")
        with closed(path):
            refused(lambda: imagenet_val(flat), r"cannot be read \(Permission")
    refused(lambda: imagenet_val(tmp_path / "nowhere"), "there is no folder .*nowhere: pass")


def test_the_labels_of_the_development_kit_count_otherwise(flat):
    listing = flat / "ILSVRC2012_validation_ground_truth.txt"
    listing.write_text("1\n2\n3\n")
    refused(lambda: imagenet_val(flat, labels=listing), "in an order of its own: pass labels=")


@needs_real("imagenet/squeezenet1_1.pt")
def test_a_real_network_knows_real_images(tmp_path):
    real = DATA / "imagenet"
    listing = [name for name, _ in json.loads((real / "classes.json").read_text())]
    (tmp_path / "classes.txt").write_text("\n".join(listing))
    for path in sorted((real / "images").iterdir())[::6]:
        number, name = path.stem.split("_")
        assert listing[int(number)] == name
        (tmp_path / "val" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "val" / name / path.name).symlink_to(path.resolve())
    images, labels = imagenet_val(tmp_path)
    assert labels.tolist() == [int(path.name[:3]) for path in images.paths]
    network = SqueezeNet()
    network.load_state_dict(torch.load(real / "squeezenet1_1.pt", "cpu", weights_only=True))
    with torch.no_grad():
        found = nn.Sequential(Normalize(), network).eval()(images[:]).argmax(1)
    assert (found == labels).double().mean() > 0.4
