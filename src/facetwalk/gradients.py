"""The exact gradient, and the activation-descent gradient, which also sees dead neurons.

A neuron that is off hides from the gradient what would be gained by switching it on. The
activation-descent gradient lets a share of it through, the larger the nearer the neuron's
hyperplane is:

    forward    max(h, 0), exact
    backward   k = 1 where h > 0, and exp(h / (width * ||P||)) elsewhere

`|h| / ||P||` is the distance to the hyperplane (the paper's own normalisation), so `width` is a
length in the input space. As it goes to zero the gradient becomes the exact one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from facetwalk.batching import per_row
from facetwalk.sites import Sites


class _LeakingHinge(torch.autograd.Function):
    """`max(h, 0)` whose backward pass reaches dead neurons."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, norm: Tensor, sharpness: Tensor | float) -> Tensor:
        ctx.save_for_backward(h, norm)
        ctx.sharpness = sharpness
        return h.clamp_min(0)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        h, norm = ctx.saved_tensors
        distance = torch.div(h, norm)
        leak = distance.mul_(ctx.sharpness).clamp_max_(0).exp_()
        return leak.mul_(gradients[0]), None, None


def leaking_outputs(sites: Sites, x: Tensor, norms: Sequence[Tensor], width: float | Tensor) -> Any:
    """`model(x)`, differentiable, with the activation-descent gradient.

    Args:
        x: inputs `(B, *shape)`.
        norms: `||P_j||` at each site, positive, `(B or 1, *site.shape)`; see `facetwalk.normals`.
        width: the kernel's width in the units of the input, a positive number or `(B,)`.

    >>> from facetwalk.sites import discover
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU()).eval()
    >>> _ = net[0].weight.data.fill_(2.0), net[0].bias.data.fill_(-1.0)
    >>> x = torch.zeros(1, 1, requires_grad=True)  # half a unit away from the hyperplane
    >>> y = leaking_outputs(discover(net, x), x, [torch.tensor([[2.0]])], width=0.5)
    >>> slope = torch.autograd.grad(y.sum(), x)[0]
    >>> y.item(), round(slope.item(), 4)  # 2 / e
    (0.0, 0.7358)
    """

    sharpness = 1 / width

    def leak(i: int, h: Tensor) -> Tensor:
        by_row = sharpness
        if isinstance(sharpness, Tensor) and sharpness.ndim:
            by_row = per_row(sharpness, h)
        return _LeakingHinge.apply(h, norms[i], by_row)  # pyright: ignore[reportReturnType]

    return sites.run(x, leak)


def gradient_of(
    forward: Callable[[Tensor], Any], loss: Callable[[Any], Tensor], x: Tensor
) -> tuple[Any, Tensor, Tensor]:
    """Outputs, losses `(B,)` and their gradients `(B, *shape)` at `x`.

    A gradient that is not a number counts as zero.
    """
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        outputs = forward(leaf)
        losses = loss(outputs)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
    return outputs, losses.detach(), torch.nan_to_num(gradient, nan=0.0)
