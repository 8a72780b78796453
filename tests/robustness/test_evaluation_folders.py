"""A folder keeps the answers to one question."""

import numpy as np
import pytest
import torch
from classifiers import batch, linear, relu_network
from evaluation_cases import EPS, STRONG, WEAK, Lazy, case, contents
from torch import nn

import facetwalk as fw
from facetwalk.robustness import evaluate
from facetwalk.zoo import Normalize


def changed_model():
    net = relu_network()
    net[0].bias.data[0] += 1e-9
    return net


class TestFolders:
    """Other questions than the first are refused."""

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"eps": 0.11}, "eps 0.1 and not 0.11"),
            ({"norm": "2"}, "norm inf and not 2"),
            ({"norm": "L2"}, "norm inf and not 2"),
            ({"bounds": None}, r"bounds 0 to 1 \([0-9a-f]+\) and not None"),
            ({"bounds": (0, 1.1)}, r"bounds 0 to 1 .* and not 0 to 1\.1 "),
            ({"seed": 1}, "seed 0 and not 1"),
            ({"budget": 61}, "attacks .*60.* and not .*61"),
            ({"attacks": {"other": WEAK}}, "attacks .* and not .*other: Sign"),
            ({"model": changed_model()}, "model [0-9a-f]+ and not"),
            ({"model": relu_network().float()}, "model [0-9a-f]+ and not"),
            ({"labels": case(wrong=2)[2]}, "labels [0-9a-f]+ and not"),
            ({"images": case()[1].flip(0)}, "first images [0-9a-f]+ and not"),
            ({"images": case(19)[1], "labels": case(19)[2]}, "images 20 and not 19"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_what_differs_is_named_and_nothing_is_changed(self, changes, message, tmp_path):
        net, images, labels = case()
        asked = {"model": net, "images": images, "labels": labels, "eps": EPS, "budget": 60}
        evaluate(**asked, folder=tmp_path)
        file = tmp_path / "samples.jsonl"
        file.write_bytes(file.read_bytes()[:-9])
        before = contents(tmp_path)
        with pytest.raises(fw.InputError, match=message) as caught:
            evaluate(**asked | changes, folder=tmp_path)
        assert "\n" not in str(caught.value)
        assert contents(tmp_path) == before

    def test_another_order_of_attacks_is_another_question(self, tmp_path):
        evaluate(*case(), EPS, attacks={"a": WEAK, "b": STRONG}, folder=tmp_path)
        with pytest.raises(fw.InputError, match=r"attacks .* and not"):
            evaluate(*case(), EPS, attacks={"b": STRONG, "a": WEAK}, folder=tmp_path)

    def test_another_normalisation_is_another_model(self, tmp_path):
        images = torch.rand(10, 1, 2, 2, generator=torch.Generator().manual_seed(0))
        head = nn.Sequential(nn.Flatten(), relu_network().float())
        nets = [nn.Sequential(Normalize([m], [0.5]), head).eval() for m in (0.5, 0.51)]
        labels = nets[0](images).argmax(1)
        evaluate(nets[0], images, labels, EPS, budget=20, folder=tmp_path)
        with pytest.raises(fw.InputError, match=r"model [0-9a-f]+ and not"):
            evaluate(nets[1], images, labels, EPS, budget=20, folder=tmp_path)

    def test_any_image_that_is_another_one_is_noticed(self, tmp_path):
        net, images, labels = case(300)
        options = {"attacks": {"weak": WEAK}, "folder": tmp_path}
        evaluate(net, images, labels, EPS, **options)
        for changed, words in ((1, "first images"), (299, "later images")):
            others = images.clone()
            others[changed, 2] += 1e-6
            with pytest.raises(fw.InputError, match=rf"\({words} [0-9a-f]+ and not [0-9a-f]+\)"):
                evaluate(net, others, labels, EPS, **options)
        with pytest.raises(fw.InputError, match=r"\(later images [0-9a-f]+ and not unread\)"):
            evaluate(net, Lazy(images), labels, EPS, **options)

    def test_images_that_are_read_when_they_are_sliced_are_compared_at_the_beginning(
        self, tmp_path
    ):
        net, images, labels = case(300)
        options = {"attacks": {"weak": WEAK}, "folder": tmp_path}
        first = evaluate(net, Lazy(images), labels, EPS, **options)
        others, lazy = images.clone(), Lazy(images)
        others[255, 2] += 1e-6
        with pytest.raises(fw.InputError, match=r"first images [0-9a-f]+ and not"):
            evaluate(net, Lazy(others), labels, EPS, **options)
        assert evaluate(net, lazy, labels, EPS, **options).samples == first.samples
        assert lazy.loaded == [range(256)]

    @pytest.mark.parametrize(
        "bounds",
        [
            (0, 1),
            [0.0, 1.0],
            (np.float32(0), np.ones((4,))),
            (torch.tensor(0), torch.ones(1, 4, dtype=torch.float32)),
        ],
    )
    def test_bounds_are_what_they_are_worth(self, bounds, tmp_path):
        first = evaluate(*case(), EPS, budget=60, folder=tmp_path)
        again = evaluate(*case(), EPS, budget=60, folder=tmp_path, bounds=bounds)
        assert again.samples == first.samples

    def test_bounds_that_differ_in_one_pixel_are_others(self, tmp_path):
        net = nn.Sequential(linear(1600), nn.ReLU()).eval()
        images, labels = batch(net, 4, features=1600)
        high = torch.ones(1600, dtype=torch.float64)
        options = {"attacks": {"weak": WEAK}, "folder": tmp_path}
        evaluate(net, images, labels, 1e-3, bounds=(0 * high, high), **options)
        high[800] = 1.5
        with pytest.raises(fw.InputError, match=r"bounds 0 to 1 \(.* and not 0 to 1\.5 \("):
            evaluate(net, images, labels, 1e-3, bounds=(0, high), **options)

    def test_a_folder_of_an_older_version_is_refused(self, tmp_path):
        evaluate(*case(), EPS, budget=60, folder=tmp_path)
        file = tmp_path / "run.json"
        file.write_text(file.read_text().replace("first images", "first image"))
        before = contents(tmp_path)
        with pytest.raises(fw.InputError, match=r"an older facetwalk.* choose another folder"):
            evaluate(*case(), EPS, budget=60, folder=tmp_path)
        assert contents(tmp_path) == before

    def test_another_chunk_or_kind_of_images_is_the_same_question(self, tmp_path):
        net, images, labels = case()
        first = evaluate(net, images, labels, EPS, budget=60, folder=tmp_path, chunk=3)
        again = evaluate(net, Lazy(images), labels.int(), EPS, budget=60, folder=str(tmp_path))
        assert again.samples == first.samples
