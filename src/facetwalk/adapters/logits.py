"""A library's way from images to logits, as a module that `robustness.attack` takes."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class Logits(nn.Module):
    """A function from images `(N, *shape)` to logits `(N, classes)`, as a module in eval mode.

    The weights of the models behind it stand beside it: they say on which device and in which
    precision images are wanted, and what rows of a batch share. The models themselves stay out of
    sight, because their mode is the library's business.

    >>> import torch
    >>> net = nn.Linear(4, 3).double()
    >>> logits = Logits(lambda x: net(x / 2), net)
    >>> logits(torch.ones(2, 4, dtype=torch.float64)).shape, len(list(logits.buffers()))
    (torch.Size([2, 3]), 2)
    """

    def __init__(self, function: Callable[[Tensor], Tensor], *models: nn.Module) -> None:
        super().__init__()
        self._function = function
        weights = {
            id(tensor): tensor
            for model in models
            for tensor in (*model.parameters(), *model.buffers())
        }
        for number, tensor in enumerate(weights.values()):
            self.register_buffer(f"weight{number}", tensor, persistent=False)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self._function(x)
