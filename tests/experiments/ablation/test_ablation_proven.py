import json
from pathlib import Path

import numpy as np
import pytest
import torch

from facetwalk.experiments.ablation.proven import proven_optima

MEASURED = Path(__file__).parents[3] / "benchmarks" / "results" / "proven.json"
COPIED = Path(__file__).parents[3] / "src/facetwalk/experiments/ablation/proven.json"
OPTIMA = proven_optima()


@pytest.mark.skipif(not MEASURED.exists(), reason="the benchmarks are not beside the tests")
def test_the_package_has_a_copy_of_what_was_measured():
    """Where this fails: copy the file of the benchmarks over the package's."""
    assert json.loads(COPIED.read_text()) == json.loads(MEASURED.read_text())


def test_names_are_those_of_different_networks():
    assert len({optimum.name for optimum in OPTIMA}) == len(OPTIMA) >= 1
    weights = [optimum.network()[0].weight for optimum in OPTIMA]
    assert not any(torch.equal(weights[0], other) for other in weights[1:])


@pytest.mark.parametrize("optimum", OPTIMA, ids=lambda optimum: optimum.name)
def test_the_point_lies_in_the_box_and_has_its_value(optimum):
    x = torch.tensor([optimum.x], dtype=torch.float64)
    assert x.shape == (1, 10)
    assert x.abs().max() <= 1
    assert optimum.network()(x).item() == pytest.approx(optimum.value, abs=1e-9)
    assert optimum.value <= optimum.bound <= optimum.value + 0.01


def test_the_first_value_needs_nothing_but_numpy():
    (first,) = (optimum for optimum in OPTIMA if optimum.name == "Model A, 0")
    draw, h = np.random.default_rng(0), np.array(first.x)
    for inputs, outputs in ((10, 64), (64, 64), (64, 1)):
        weight, bias = draw.uniform(-1, 1, (inputs, outputs)), draw.uniform(-1, 1, outputs)
        z = h @ weight + bias
        h = np.maximum(z, 0)
    assert z.item() == pytest.approx(first.value, abs=1e-9)
