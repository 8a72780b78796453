from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from facetwalk.batching import keep_rows, map_tensors, move, per_row, row_norm, take_rows


@dataclass(frozen=True)
class Leaf:
    values: Tensor
    name: str = "leaf"


@dataclass(frozen=True, init=False)
class Tree:
    """Cannot be rebuilt through its own `__init__`."""

    leaves: tuple[Leaf, ...]
    rest: dict[str, Any]

    def __init__(self, size: int) -> None:
        object.__setattr__(self, "leaves", (Leaf(torch.arange(size)), Leaf(torch.ones(1, 2))))
        object.__setattr__(self, "rest", {"list": [torch.zeros(size, 2), 3], "none": None})


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


def test_map_tensors_reaches_every_tensor_and_keeps_the_rest():
    tree = Tree(3)
    mapped = map_tensors(lambda t: t + 10, tree)
    assert isinstance(mapped, Tree)
    assert isinstance(mapped.leaves, tuple)
    assert mapped.leaves[0].values.tolist() == [10, 11, 12]
    assert mapped.leaves[1].values.tolist() == [[11.0, 11.0]]
    assert mapped.leaves[0].name == "leaf"
    assert mapped.rest["list"][0].tolist() == [[10.0, 10.0]] * 3
    assert mapped.rest["list"][1] == 3
    assert mapped.rest["none"] is None


def test_map_tensors_leaves_the_original_as_it_was():
    tree = Tree(3)
    map_tensors(lambda t: t + 10, tree)
    assert tree.leaves[0].values.tolist() == [0, 1, 2]
    assert not tree.rest["list"][0].any()


def test_map_tensors_rebuilds_named_tuples():
    mapped = map_tensors(lambda t: 2 * t, Pair(torch.ones(1), torch.zeros(1)))
    assert isinstance(mapped, Pair)
    assert mapped.first.item() == 2


@pytest.mark.parametrize("value", [3, "text", None, Leaf, nn.Linear(2, 2), torch.float32, len])
def test_map_tensors_returns_other_things_themselves(value):
    assert map_tensors(lambda t: t + 1, value) is value


def test_map_tensors_applies_to_a_bare_tensor():
    assert map_tensors(lambda t: t + 1, torch.zeros(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("rows", [[1], [2, 0], [0, 0, 2, 1], []])
def test_take_rows_indexes_all_but_shared_tensors(rows):
    taken = take_rows(Tree(3), torch.tensor(rows, dtype=torch.int64))
    assert taken.leaves[0].values.tolist() == rows
    assert taken.rest["list"][0].shape == (len(rows), 2)
    assert taken.leaves[1].values.tolist() == [[1.0, 1.0]]


def test_keep_rows_indexes_shared_looking_tensors_too():
    kept = keep_rows([torch.tensor([[4.0]]), {"a": torch.tensor([5])}], torch.tensor([0, 0]))
    assert kept[0].tolist() == [[4.0], [4.0]]
    assert kept[1]["a"].tolist() == [5, 5]


def test_keep_rows_accepts_a_mask():
    kept = keep_rows((torch.arange(4), torch.eye(4)), torch.tensor([True, False, False, True]))
    assert kept[0].tolist() == [0, 3]
    assert torch.equal(kept[1], torch.eye(4)[[0, 3]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_move_changes_the_precision_of_floats_alone(dtype):
    moved = move(Tree(3), torch.device("cpu"), dtype)
    assert moved.leaves[0].values.dtype == torch.int64
    assert moved.leaves[1].values.dtype == moved.rest["list"][0].dtype == dtype
    assert move(torch.tensor([True]), torch.device("cpu"), dtype).dtype == torch.bool


def test_move_changes_the_device_of_everything():
    moved = move(Tree(3), torch.device("meta"), torch.float32)
    tensors = [moved.leaves[0].values, moved.leaves[1].values, moved.rest["list"][0]]
    assert {t.device.type for t in tensors} == {"meta"}


@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 5), (3, 1, 2, 2)])
def test_per_row_scales_each_row_by_its_own_number(shape):
    x, values = torch.rand(shape), torch.tensor([1.0, -2.0, 0.5])
    expected = torch.stack([value * row for value, row in zip(values, x, strict=True)])
    assert torch.equal(per_row(values, x) * x, expected)


@pytest.mark.parametrize("shape", [(3, 4), (3, 2, 5), (1, 1, 2, 2)])
def test_row_norm_is_the_root_of_the_sum_of_squares(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = [sum(v**2 for v in row.flatten().tolist()) ** 0.5 for row in x]
    assert row_norm(x).tolist() == pytest.approx(expected)
