import torch
from torch import Tensor, nn

from facetwalk.training import measure


class Brightness(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        mean = torch.relu(x).mean((1, 2, 3))
        return torch.stack([0.5 - mean, mean - 0.5], 1)


def test_measuring_counts_what_is_right_before_and_after_the_attacks():
    levels = torch.tensor([0.1, 0.45, 0.52, 0.7])
    images = levels[:, None, None, None].expand(4, 3, 16, 16)
    measured = measure(Brightness().eval(), images, torch.tensor([0, 0, 1, 0]), 0.1, budget=30)
    assert measured["clean_accuracy"] == 0.75
    assert measured["robust_accuracy"] == measured["pgd_accuracy"] == 0.25
    assert (measured["test_images"], measured["attacked_images"]) == (4, 4)
    assert (measured["budget"], measured["radius"]) == (30, 0.1)


def test_what_makes_the_figures_doubtful_is_among_them():
    images = torch.full((40, 3, 16, 16), 0.1)
    measured = measure(Brightness().eval(), images, torch.ones(40, dtype=torch.int64), 0.1, 30)
    assert any("guessing is right" in words for words in measured["findings"])
