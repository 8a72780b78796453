"""The authors' own MNIST network, where its weights lie (`FACETWALK_DATA` or `../shared/data`)."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import facetwalk as fw
from facetwalk.solvers import AdrGd, Sign
from facetwalk.zoo import MnistCnn

SHARED = Path(__file__).parents[2] / "shared" / "data"
WEIGHTS = Path(os.environ.get("FACETWALK_DATA", SHARED)) / "classifiers" / "mnist_cnn_pgd.pt"

pytestmark = pytest.mark.skipif(not WEIGHTS.exists(), reason=f"no weights at {WEIGHTS}")


@pytest.fixture(scope="module")
def network():
    model = MnistCnn()
    model.load_state_dict(torch.load(WEIGHTS, "cpu", weights_only=True))
    return model.eval()


def test_it_has_the_papers_number_of_variables(network):
    sites = fw.sites.discover(network, torch.zeros(1, 1, 28, 28))
    assert sites.neurons + 28 * 28 == 9180
    assert [site.shape for site in sites] == [(8, 19, 19), (32, 12, 12), (32, 5, 5), (100,)]


def test_attacks_raise_the_loss_within_the_ball(network):
    images = torch.rand(8, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        labels = network(images).argmax(1)
    space = fw.LinfBall(images, eps=0.2, bounds=(0, 1))
    problem = fw.Problem(network, fw.objectives.CrossEntropy(labels), space)
    for solver in (Sign(steps=20), replace(AdrGd.for_experiment("mnist-untargeted"), steps=20)):
        result = fw.maximize(problem, solver=solver)
        assert (result.value > result.initial_value).all()
        assert (result.x - images).abs().max() <= 0.2 + 1e-6
        assert 0 <= result.x.min() <= result.x.max() <= 1
