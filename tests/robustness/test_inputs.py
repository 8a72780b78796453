"""What cannot be attacked gets a sentence, the same from each way in."""

import pytest
import torch
from classifiers import Calls, batch, linear
from torch import nn

import facetwalk as fw
from facetwalk.robustness import attack, check, evaluate
from facetwalk.zoo import Normalize

NET = linear()
IMAGES, LABELS = batch(NET, 6)


def with_one(value: float, at: int = 4) -> torch.Tensor:
    images = IMAGES.clone()
    images[at, 2] = value
    return images


WAYS_IN = {
    "attack": lambda *given, **options: attack(*given, eps=0.1, budget=20, **options),
    "evaluate": lambda *given, **options: evaluate(*given, eps=0.1, budget=20, **options),
    "check": check,
}

BAD_IMAGES = {
    "bytes": ((255 * IMAGES).to(torch.uint8), "images are torch.uint8: pass floats, usually"),
    "integers": (IMAGES.long(), "images are torch.int64: pass floats"),
    "NaN": (with_one(torch.nan), "images hold NaN or infinite values"),
    "infinite": (with_one(torch.inf), "images hold NaN or infinite values"),
    "too bright": (with_one(1.01), r"to 1\.01, outside the bounds 0 and 1: if they are normalised"),
    "normalised": ((IMAGES - 0.5) / 0.25, "put the normalisation into the model"),
    "0 to 255": (255 * IMAGES, "outside the bounds"),
    "one": (IMAGES[0], "images must be a tensor|there are 5 images"),
    "array": (IMAGES.numpy(), "images must be a tensor"),
}

BAD_LABELS = {
    "floats": (LABELS.double(), r"labels must be class indices.* they are torch.float64"),
    "one-hot": (nn.functional.one_hot(LABELS, 4), r"of shape \(6, 4\)"),
    "flags": (LABELS > 0, "they are torch.bool"),
    "too few": (LABELS[:5], "there are 6 images and 5 labels"),
    "too many": (torch.cat([LABELS, LABELS]), "there are 6 images and 12 labels"),
    "one": (torch.tensor(1), r"of shape \(\)"),
    "from 1": (LABELS + 1, "labels run from . to 4, and the model has classes 0 to 3"),
    "negative": (LABELS - 4, "labels run from -4"),
    "none": (None, "labels must be class indices"),
    "words": (["cat"] * 6, "labels must be class indices"),
}


def returning(function) -> nn.Module:
    return Calls(linear(), lambda net, x: function(net(x), x))


def nan_where(row: int):
    """NaN for one image, wherever it is in a batch."""
    return returning(
        lambda y, x: torch.where((x == IMAGES[row]).all(1, keepdim=True), torch.nan, y)
    )


BAD_MODELS = {
    "train mode": (linear().train(), r"train mode.*call model.eval\(\) first"),
    "a part in train mode": (
        nn.Sequential(linear(), nn.Dropout()).eval().append(nn.Dropout().train()),
        "or a part of it",
    ),
    "a function": (lambda x: NET(x), "must be a torch.nn.Module; it is a function"),
    "tuple": (returning(lambda y, x: (y, x)), r"must return logits \(N, classes\).*tuple"),
    "dictionary": (returning(lambda y, x: {"logits": y}), "returned dict"),
    "one output": (returning(lambda y, x: y[:, :1]), r"return the logits \(-z, z\)"),
    "no classes": (returning(lambda y, x: y[:, 0]), r"returned \(.,\)"),
    "maps": (returning(lambda y, x: y[:, :, None]), r"returned \(., 4, 1\)"),
    "fewer rows": (returning(lambda y, x: y[1:]), "must return logits"),
    "NaN": (returning(lambda y, x: y * torch.nan), "NaN or infinite logits for . of . images"),
    "NaN of the last": (nan_where(5), "NaN or infinite logits for 1 of 6 images"),
    "overflow": (returning(lambda y, x: y.exp() * torch.inf), "NaN or infinite logits"),
    "other shape": (linear(features=7), "the model fails on images of shape"),
}


@pytest.mark.parametrize("way", WAYS_IN.values(), ids=WAYS_IN)
class TestEachWayIn:
    @pytest.mark.parametrize(("images", "message"), BAD_IMAGES.values(), ids=BAD_IMAGES)
    def test_bad_images_are_refused(self, way, images, message):
        with pytest.raises(fw.InputError, match=message) as caught:
            way(NET, images, LABELS)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(("labels", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
    def test_bad_labels_are_refused(self, way, labels, message):
        with pytest.raises(fw.InputError, match=message) as caught:
            way(NET, IMAGES, labels)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(("model", "message"), BAD_MODELS.values(), ids=BAD_MODELS)
    def test_bad_models_are_refused(self, way, model, message):
        with pytest.raises(fw.ModelError, match=message) as caught:
            way(model, IMAGES, LABELS)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("bounds", [(0, None), ("a", "b"), (0, 1, 2), 1, (0, 1j)])
    def test_bad_bounds_are_refused(self, way, bounds):
        with pytest.raises(fw.InputError, match="bounds must be two numbers or tensors"):
            way(NET, IMAGES, LABELS, bounds=bounds)


class TestNormalisation:
    MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)

    def images(self):
        generator = torch.Generator().manual_seed(0)
        return torch.rand(20, 3, 2, 2, generator=generator, dtype=torch.float64)

    def test_inside_the_model_is_the_same_as_bounds_and_scales_of_ones_own(self):
        """With the same spread in every channel, eps is merely measured in other units."""
        images, head = self.images(), nn.Sequential(nn.Flatten(), linear(features=12))
        inside = nn.Sequential(Normalize(self.MEAN, [0.25] * 3).double(), head).eval()
        labels = inside(images).argmax(1)
        plain = attack(inside, images, labels, 0.05, budget=100)
        mean = torch.tensor(self.MEAN, dtype=torch.float64).reshape(3, 1, 1)
        bounds = (-mean / 0.25, (1 - mean) / 0.25)
        outside = attack(
            head.eval(), (images - mean) / 0.25, labels, 0.2, bounds=bounds, budget=100
        )
        torch.testing.assert_close(outside.adversarial * 0.25 + mean, plain.adversarial)
        assert torch.equal(outside.success, plain.success)

    def test_no_bounds_take_any_image(self):
        found = attack(NET, 10 * IMAGES - 5, LABELS, 0.1, bounds=None, budget=20)
        assert found.success.shape == (6,)


def test_images_are_brought_to_the_precision_of_the_model_before_bounds_are_checked():
    net = linear().bfloat16()
    nearly = torch.full((2, 5), 1 - 1e-9, dtype=torch.float64)
    labels = net(nearly.bfloat16()).argmax(1)
    assert attack(net, nearly, labels, 0.01, budget=20).adversarial.max() <= 1


def test_two_classes_and_three_are_enough():
    for classes in (2, 3):
        net = linear(classes=classes)
        images, labels = batch(net)
        assert 0 < evaluate(net, images, labels, 0.1, budget=50).robust_accuracy < 1
