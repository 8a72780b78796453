import numpy as np
import pytest
import torch
from torch import nn

from facetwalk.zoo import Normalize


def test_each_channel_has_its_own_mean_and_spread():
    pixels = torch.rand(2, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    found = Normalize([0.5, 0.1], [0.25, 2.0])(pixels).numpy()
    np.testing.assert_allclose(found[:, 0], (pixels[:, 0].numpy() - 0.5) * 4, rtol=1e-6)
    np.testing.assert_allclose(found[:, 1], (pixels[:, 1].numpy() - 0.1) / 2, rtol=1e-6)


def test_black_and_white_by_the_numbers_of_imagenet():
    black, white = Normalize()(torch.stack([torch.zeros(3, 1, 1), torch.ones(3, 1, 1)]))
    assert black.flatten().tolist() == pytest.approx([-2.117904, -2.035714, -1.804444])
    assert white.flatten().tolist() == pytest.approx([2.248908, 2.428571, 2.64])


def test_weights_saved_without_it_load_into_a_network_with_it():
    assert Normalize().state_dict() == {}
    assert list(Normalize().parameters()) == []


def test_it_takes_the_precision_of_its_network():
    net = nn.Sequential(Normalize(), nn.Conv2d(3, 1, 1)).double()
    assert net(torch.zeros(1, 3, 2, 2, dtype=torch.float64)).dtype == torch.float64
