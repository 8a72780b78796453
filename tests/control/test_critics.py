"""Critics as functions of the action alone."""

import pytest
import torch
from torch import nn

from facetwalk.control.critics import ActionValue


@pytest.mark.parametrize("rows", [1, 2, 3, 6, 9])
def test_row_r_belongs_to_state_r_modulo_their_number(rows):
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    states, actions = torch.randn(3, 4), torch.randn(rows, 2)
    found = ActionValue([network], states)(actions)
    for row in range(rows):
        alone = network(torch.cat([states[row % 3], actions[row]]))
        torch.testing.assert_close(found[row], alone)


def test_the_least_of_several_networks_counts():
    networks = [nn.Linear(6, 1) for _ in range(3)]
    states, actions = torch.randn(4, 4), torch.randn(4, 2)
    found = ActionValue(networks, states)(actions)
    pairs = torch.cat([states, actions], 1)
    assert torch.equal(found, torch.stack([network(pairs) for network in networks]).amin(0))
