"""Train and eval mode, put back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def modes_kept(model: nn.Module) -> Iterator[None]:
    """After this context every part of the model is in the mode in which it was before.

    >>> net = nn.Sequential(nn.Dropout().eval(), nn.Linear(2, 2))
    >>> with modes_kept(net):
    ...     _ = net.eval()
    >>> [part.training for part in net.modules()]
    [True, False, True]
    """
    before = [(part, part.training) for part in model.modules()]
    try:
        yield
    finally:
        for part, training in before:
            part.training = training
