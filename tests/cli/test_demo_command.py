import numpy as np
import pytest
import torch

from facetwalk.zoo import digits, digits_net

IMAGES, EVALUATIONS = 6, 20


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo prints, and its folder."""
    from typer.testing import CliRunner

    from facetwalk.cli.app import app

    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    options = ["--images", str(IMAGES), "--evaluations", str(EVALUATIONS), "--seed", "3"]
    result = CliRunner().invoke(app, ["demo", "--out", str(out), *options])
    assert result.exit_code == 0, result.output
    return result.stdout, out


def test_the_images_are_the_first_that_are_classified_correctly(demo):
    saved = np.load(demo[1] / "demo.npz")
    images, labels = digits("test")
    correct = digits_net()(images).argmax(1) == labels
    assert np.array_equal(saved["images"], images[correct][:IMAGES].numpy())
    assert np.array_equal(saved["labels"], labels[correct][:IMAGES].numpy())


def test_the_numbers_are_those_of_the_saved_images(demo, read_json):
    printed, out = demo
    saved, net = np.load(out / "demo.npz"), digits_net()
    labels = torch.from_numpy(saved["labels"])
    methods = read_json(out / "demo.json")["methods"]
    assert len(methods) == 6
    lines = {line.partition("   ")[0]: line.split() for line in printed.splitlines()}
    for method in methods:
        x = saved[method["method"]]
        assert np.abs(x - saved["images"]).max() <= 0.2 + 1e-6
        assert x.min() >= 0
        assert x.max() <= 1
        with torch.no_grad():
            logits = net(torch.from_numpy(x))
        others = logits.clone()
        others[range(IMAGES), labels] = -torch.inf
        margin = (others.max(1).values - logits[range(IMAGES), labels]).mean().item()
        success = (logits.argmax(1) != labels).double().mean().item()
        assert method["success"] == pytest.approx(success)
        assert method["margin"] == pytest.approx(margin, rel=1e-4)
        shown = lines[method["method"]][-3:-1]
        assert shown == [f"{success:.1%}", f"{method['margin']:.3f}"]


def test_gradient_budgets_are_equal(demo, read_json):
    data = read_json(demo[1] / "demo.json")
    gradients = {method["method"]: method["gradients"] for method in data["methods"]}
    assert gradients.pop("FGSM") == 1
    assert set(gradients.values()) == {EVALUATIONS}
    for method in data["methods"][1:]:
        per_step = 2 if method["method"].startswith("ADR-GD") else 1
        steps = method["solver"]["fields"]["steps"]
        assert per_step * method["starts"] * steps == method["gradients"]


def test_only_methods_that_look_at_dead_neurons_take_probes(demo, read_json):
    probes = {m["method"]: m["probes"] for m in read_json(demo[1] / "demo.json")["methods"]}
    assert probes.pop("Auto (our default)") > 0
    for method, taken in probes.items():
        estimates = -(-EVALUATIONS // 2 // 25)
        assert taken == (8 * estimates if method.startswith("ADR-GD") else 0)


def test_the_verdict_is_printed_and_written(demo, read_json):
    printed, out = demo
    verdict = read_json(out / "demo.json")["verdict"]
    assert verdict in " ".join(printed.split())
    assert verdict.startswith(f"With {EVALUATIONS} gradients an image, our default fools ")


def test_the_table_fits_80_columns(demo):
    *lines, _ = demo[0].splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in demo[0]
    assert "\x1b" not in demo[0]


def test_the_picture_has_content(demo):
    from matplotlib.image import imread

    picture = imread(demo[1] / "demo.png")
    assert picture.shape[1] > picture.shape[0] > 400
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 100


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--images", 0], "images must be from 1 to"),
        (["--images", 501], "images must be from 1 to"),
        (["--evaluations", 0], "evaluations must be a positive multiple of 10"),
        (["--evaluations", 25], "evaluations must be a positive multiple of 10"),
    ],
)
def test_what_cannot_be_shown_is_refused(refused, tmp_path, options, match):
    refused(match, "demo", "--out", tmp_path, *options)


def test_a_file_in_the_place_of_the_folder_is_refused(refused, tmp_path):
    (tmp_path / "out").touch()
    refused("out cannot be a folder: File exists", "demo", "--out", tmp_path / "out")
