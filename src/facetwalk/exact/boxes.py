"""Branch and bound that halves the input box: for networks with few inputs."""

from __future__ import annotations

import torch
from torch import Tensor

from facetwalk.exact.dense import Dense
from facetwalk.exact.forward_bounds import Planes, planes_above
from facetwalk.exact.open_boxes import Boxes, OpenBoxes
from facetwalk.exact.proof import Search
from facetwalk.gpu_memory import make_room

_NUMBERS_AT_ONCE = {"cpu": 2**19, "cuda": 2**27}
"""Entries of the largest tensor of a batch of boxes: on a CPU it should stay in the cache."""
_BYTES_A_NUMBER = 512
"""Memory of a GPU for each of these, with some dozen such tensors in float64 at a time and what
their varying sizes leave unused."""
_OPEN_NUMBERS = 2**27
"""Entries that open boxes may have, a gigabyte in float64."""
_LEAST_SHARE = 1e-3
"""What an uncut side counts at least, as a share of the one that counts most."""


def search_boxes(dense: Dense, low: Tensor, high: Tensor, search: Search) -> None:
    """Lower the bound of `search` over the box from `low` to `high`, each `(inputs,)`.

    Each goal has boxes of its own. A box whose bound is below what is aimed for is dropped; any
    other is cut down to where the plane above its goal is not, and halved. Where the slack for
    rounding alone keeps bounds above the aim, they end up to two slacks above the value.
    """
    slack = dense.slack(low, high).max().item()

    def aim() -> float:
        return max(search.aim, search.value + 2 * slack)

    widest = max(len(layer.bias) for layer in dense.layers)
    size = max(16, _numbers_at_once(low.device) // (widest * dense.inputs))
    waiting = OpenBoxes(_OPEN_NUMBERS // (2 * dense.inputs + 2))
    goals = len(dense.layers[-1].bias)
    bounds = torch.full((goals,), search.bound, dtype=low.dtype, device=low.device)
    goal = torch.arange(goals, device=low.device)
    shape = (dense.inputs, goals)
    waiting.put(Boxes(low[:, None].expand(shape), high[:, None].expand(shape), goal, bounds))
    settled, nodes = -torch.inf, search.nodes
    while waiting.count and not search.late and not search.done:
        boxes = waiting.pop(size)
        nodes += len(boxes.bound)
        planes = planes_above(dense, boxes.low, boxes.high, boxes.goal)
        bound = torch.minimum(planes.bound + slack, boxes.bound)
        alive = bound > aim()
        settled = max(settled, _largest(bound[~alive]))
        if bool(alive.any()):
            columns = alive.nonzero().squeeze(1)
            kept = boxes._replace(bound=bound).take(columns)
            planes = Planes(*(part[..., columns] for part in planes))
            search.offer(torch.where(planes.slope > 0, kept.high, kept.low).T)
            settled = max(settled, aim())
            waiting.put(_halves(_cut(kept, planes, aim() - slack), planes, high - low))
        search.note(max(settled, waiting.bound()), nodes)


def _numbers_at_once(device: torch.device) -> int:
    most = _NUMBERS_AT_ONCE[device.type]
    if device.type == "cpu":
        return most
    return min(most, make_room(device) // _BYTES_A_NUMBER)


def _largest(bounds: Tensor) -> float:
    return bounds.max().item() if len(bounds) else -torch.inf


def _cut(boxes: Boxes, planes: Planes, aim: float) -> Boxes:
    """The part of each box where its plane may be above `aim`."""
    room = (planes.bound - aim).clamp(min=0) / planes.slope.abs()
    low = torch.where(planes.slope > 0, torch.maximum(boxes.low, boxes.high - room), boxes.low)
    high = torch.where(planes.slope < 0, torch.minimum(boxes.high, boxes.low + room), boxes.high)
    return boxes._replace(low=low, high=high)


def _halves(boxes: Boxes, planes: Planes, sides: Tensor) -> Boxes:
    """Both halves of each box, cut across the input that the bound owes most to.

    What it owes shows in the plane and in the neurons that see the inputs. Deeper ones may owe
    something to any input, so every side counts for a little as long as little of its first length,
    `sides`, `(inputs,)`, was cut off.
    """
    side = boxes.high - boxes.low
    score = side * (planes.looseness + planes.slope.abs())
    tiny = torch.finfo(score.dtype).tiny
    score = score + (_LEAST_SHARE * score.amax(0) + tiny) * side / sides.clamp(min=tiny)[:, None]
    across = score.argmax(0, keepdim=True)
    middle = ((boxes.low + boxes.high) / 2).gather(0, across)
    return Boxes(
        torch.cat([boxes.low, boxes.low.scatter(0, across, middle)], 1),
        torch.cat([boxes.high.scatter(0, across, middle), boxes.high], 1),
        boxes.goal.repeat(2),
        boxes.bound.repeat(2),
    )
