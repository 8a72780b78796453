"""A folder keeps the answers to one question."""

import pytest
import torch
from classifiers import relu_network
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
            ({"bounds": None}, r"bounds \(0.0, 1.0\) and not None"),
            ({"seed": 1}, "seed 0 and not 1"),
            ({"budget": 61}, "attacks .*60.* and not .*61"),
            ({"attacks": {"other": WEAK}}, "attacks .* and not .*other: Sign"),
            ({"model": changed_model()}, "model [0-9a-f]+ and not"),
            ({"model": relu_network().float()}, "model [0-9a-f]+ and not"),
            ({"labels": case(wrong=2)[2]}, "labels [0-9a-f]+ and not"),
            ({"images": case()[1].flip(0)}, "first image [0-9a-f]+ and not"),
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

    def test_another_chunk_or_kind_of_images_is_the_same_question(self, tmp_path):
        net, images, labels = case()
        first = evaluate(net, images, labels, EPS, budget=60, folder=tmp_path, chunk=3)
        again = evaluate(net, Lazy(images), labels.int(), EPS, budget=60, folder=str(tmp_path))
        assert again.samples == first.samples
