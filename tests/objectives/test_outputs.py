"""Objectives on outputs of any meaning: one entry, a distance, linear rows."""

import pytest
import torch.nn.functional as F
from objective_cases import IMAGES, OFFSETS, REFERENCES, WEIGHTS

from facetwalk.objectives import Distance, Linear, Output


@pytest.mark.parametrize("index", [0, 3, 5, -1])
@pytest.mark.parametrize("sign", [1, -1])
def test_output_is_one_entry_of_the_flattened_output(index, sign):
    expected = [sign * row.flatten().tolist()[index] for row in IMAGES]
    assert Output(index, sign)(IMAGES).tolist() == expected


@pytest.mark.parametrize("p", [1, 2, 3])
def test_distance_is_minus_the_mean_power_of_the_difference(p):
    expected = []
    for a, b in zip(IMAGES, REFERENCES, strict=True):
        pairs = zip(a.flatten().tolist(), b.flatten().tolist(), strict=True)
        expected.append(-sum(abs(u - v) ** p for u, v in pairs) / 6)
    assert Distance(REFERENCES, p)(IMAGES).tolist() == pytest.approx(expected)


def test_distance_to_a_shared_reference():
    shared = Distance(REFERENCES[:1])(IMAGES)
    expected = [-F.mse_loss(image, REFERENCES[0]).item() for image in IMAGES]
    assert shared.tolist() == pytest.approx(expected)


def test_distance_is_largest_and_zero_at_the_reference():
    assert not Distance(REFERENCES)(REFERENCES).any()
    assert (Distance(REFERENCES)(IMAGES) < 0).all()


@pytest.mark.parametrize("shared", [False, True])
def test_linear_is_the_smallest_of_its_rows(shared):
    weights, offsets = (WEIGHTS[:1], OFFSETS[:1]) if shared else (WEIGHTS, OFFSETS)
    expected = []
    for i, image in enumerate(IMAGES):
        row = 0 if shared else i
        y = image.flatten().tolist()
        values = [
            sum(w * v for w, v in zip(ws, y, strict=True)) + c
            for ws, c in zip(weights[row].tolist(), offsets[row].tolist(), strict=True)
        ]
        expected.append(min(values))
    assert Linear(weights, offsets)(IMAGES).tolist() == pytest.approx(expected)
