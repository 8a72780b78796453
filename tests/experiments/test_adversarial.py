import json
import shutil

import pytest
import torch
from data_files import idx, random_bytes, write_mnist
from safetensors.torch import save_file

from facetwalk.experiments import reproducing
from facetwalk.experiments.adversarial import ADVERSARIAL, Request, plan
from facetwalk.experiments.adversarial.data_sets import DATA_SETS
from facetwalk.experiments.reproducing import describe, reproduce
from facetwalk.types import InputError, MissingExtraError
from facetwalk.zoo import MnistCnn

QUICK = Request(quick=True, images=4, budget=20)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("quick")
    reproduce(ADVERSARIAL, plan(QUICK), out)
    return out


@pytest.fixture
def mnist_folder(tmp_path):
    """Test files with a few images of noise."""
    images, labels = random_bytes(6, 28, 28), random_bytes(6, high=10)
    write_mnist(tmp_path / "data", "t10k", idx(images), idx(labels), zipped=False)
    return tmp_path / "data"


def lines(out) -> list[dict]:
    return [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]


def test_there_is_a_record_for_each_cell(finished):
    found = lines(finished)
    cells = plan(QUICK).cells
    assert len(found) == len(cells) == 18
    assert all(cell.is_in(record) for cell, record in zip(cells, found, strict=True))
    for name in ("table.md", "table.tex", "comment.md", "figure.png", "figure.pdf"):
        assert (finished / name).stat().st_size > 200
    assert "AutoAttack is left out of the quick form." in (finished / "table.md").read_text()


def test_killed_and_run_again_it_goes_on_and_gives_the_same_table(finished, tmp_path):
    out = tmp_path / "again"
    shutil.copytree(finished, out)
    whole = (out / "records.jsonl").read_bytes()
    expected = {name: (out / name).read_bytes() for name in ("table.md", "comment.md")}
    attacks, costs = whole.splitlines()[:16], whole.splitlines()[16:]  # costs never come out alike
    kept = [*costs, *attacks[:11]]
    (out / "records.jsonl").write_bytes(b"\n".join([*kept, attacks[11][:40]]))
    for name in (*expected, "figure.png", "left_out.json"):
        (out / name).unlink()
    reproduce(ADVERSARIAL, plan(QUICK), out)
    assert (out / "records.jsonl").read_bytes().splitlines()[:13] == kept
    for name, content in expected.items():
        assert (out / name).read_bytes() == content
    assert (out / "figure.png").exists()


def test_what_is_done_is_not_measured_again(finished, tmp_path, monkeypatch):
    out = tmp_path / "again"
    shutil.copytree(finished, out)

    def refuse(*arguments):
        raise AssertionError("nothing is left to measure")

    monkeypatch.setattr("facetwalk.experiments.adversarial.planning.run_attack", refuse)
    monkeypatch.setattr("facetwalk.experiments.adversarial.planning.measure_cost", refuse)
    assert len(reproduce(ADVERSARIAL, plan(QUICK), out).records) == 18


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"images": 5}, "images 4 and not 5"), ({"budget": 40}, "budget 20 and not 40")],
)
def test_a_folder_of_other_settings_is_refused(finished, changes, message):
    other = plan(Request(**{"quick": True, "images": 4, "budget": 20} | changes))
    before = (finished / "records.jsonl").read_bytes()
    with pytest.raises(InputError, match=message):
        reproduce(ADVERSARIAL, other, finished)
    assert (finished / "records.jsonl").read_bytes() == before


def test_records_of_other_weights_are_refused(finished, tmp_path):
    out = tmp_path / "again"
    shutil.copytree(finished, out)
    text = (out / "records.jsonl").read_text()
    digest = lines(out)[0]["made_from"]
    (out / "records.jsonl").write_text(text.replace(digest, "0" * 16))
    with pytest.raises(InputError, match="holds a record of other weights or images"):
        reproduce(ADVERSARIAL, plan(QUICK), out)


@pytest.mark.parametrize("line", ['{"a": 1}', "[1]"])
def test_lines_that_no_run_wrote_are_refused(finished, tmp_path, line):
    shutil.copytree(finished, tmp_path / "run")
    records = tmp_path / "run" / "records.jsonl"
    count = len(lines(finished))
    with records.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=f"line {count + 1} of .* is no record"):
        describe(ADVERSARIAL, tmp_path / "run")


def test_table_and_figure_can_be_made_of_records_alone(finished, tmp_path):
    for name in ("run.json", "records.jsonl", "left_out.json"):
        shutil.copy(finished / name, tmp_path)
    describe(ADVERSARIAL, tmp_path)
    for name in ("table.md", "table.tex", "comment.md"):
        assert (tmp_path / name).read_bytes() == (finished / name).read_bytes()
    assert (tmp_path / "figure.png").exists()
    with pytest.raises(InputError, match=r"run.json cannot be read"):
        describe(ADVERSARIAL, tmp_path / "nothing")
    (tmp_path / "run.json").write_text('{"experiment": "other"}')
    with pytest.raises(InputError, match="holds no records of the experiment adversarial"):
        describe(ADVERSARIAL, tmp_path)


def test_without_matplotlib_all_but_the_figure_is_there(finished, tmp_path, monkeypatch):
    def missing(path):
        raise MissingExtraError("drawing figures", "demo")

    for name in ("run.json", "records.jsonl"):
        shutil.copy(finished / name, tmp_path)
    monkeypatch.setattr(reproducing, "check_drawable", missing)
    outcome = describe(ADVERSARIAL, tmp_path)
    assert outcome.files == ["records.jsonl", "table.md", "table.tex", "comment.md"]
    assert not (tmp_path / "figure.png").exists()


def test_what_is_missing_is_a_line_and_no_crash(tmp_path, mnist_folder):
    nets, out = tmp_path / "nets", tmp_path / "out"
    nets.mkdir()
    asked = Request(mnist_folder, nets, images=2, seeds=1, budget=2)
    outcome = reproduce(ADVERSARIAL, plan(asked), out)
    assert not outcome.records
    table = (out / "table.md").read_text()
    for network in DATA_SETS["mnist"].networks:
        assert f"- {network.name} is left out: {network.file} is missing" in table
    assert "- CIFAR-10 is left out: " in table
    assert "- ImageNet is left out: " in table


def test_networks_that_were_trained_or_released_are_found(tmp_path, mnist_folder):
    torch.manual_seed(0)
    weights = MnistCnn().state_dict()
    torch.save(weights, tmp_path / "mnist_cnn_pgd.pt")
    save_file(weights, tmp_path / "mnist-natural.safetensors")
    record = {"training": {"name": "mnist-natural", "architecture": "mnist-cnn"}}
    (tmp_path / "mnist-natural.json").write_text(json.dumps(record))
    asked = Request(mnist_folder, tmp_path, images=2, seeds=1, budget=2, only=("mnist",))
    found = plan(asked)
    assert list(dict.fromkeys(cell.about["model"] for cell in found.cells)) == [
        "mnist-natural",
        "mnist_cnn_pgd",
    ]
    assert [sentence.split()[0] for sentence in found.left_out if "missing" in sentence] == [
        "mnist-fgsm",
        "mnist-pgd",
        "mnist_cnn_clean",
    ]


def test_photographs_are_found_by_the_class_in_their_names(tmp_path):
    import numpy as np
    from PIL import Image

    (tmp_path / "imagenet" / "images").mkdir(parents=True)
    for number in (3, 7, 999):
        pixels = np.full((256, 256, 3), number % 256, dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "imagenet" / "images" / f"{number:03}_n0.jpg")
    images, labels = DATA_SETS["imagenet"].images(tmp_path, None)
    assert images.shape == (3, 3, 224, 224)
    assert labels.tolist() == [3, 7, 999]
    assert DATA_SETS["imagenet"].images(tmp_path, 2)[1].tolist() == [3, 7]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"only": ("minst",)}, "there is no data set 'minst': choose of mnist, cifar10, imagenet"),
        ({"data": None}, "say where images and networks lie"),
        ({"quick": True}, "the quick form has data and a network of its own"),
        ({"budget": 7}, "the budget must be"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        Request(**{"data": tmp_path, "nets": tmp_path} | changes)
