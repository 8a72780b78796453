"""Work that is done again from a tape, beside the same work done by torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from facetwalk.tape import NotOnTapeError, Tape

generator = torch.Generator().manual_seed(0)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator)


def _whole(x: Tensor) -> Tensor:
    return (x.nan_to_num(0, 9, -9) * 2**20).long() * 0x9E3779B97F4A7C1


WORK = {
    "sums": lambda x, y: (x + y) - 2 * (y - x) + (1 - x),
    "products": lambda x, y: x * y / (2 + y.abs()) * 0.5,
    "bounds": lambda x, y: torch.maximum(x, y).clamp(-0.5, 0.4) + y.clamp_min(0) - x.clamp_max(1),
    "roots": lambda x, y: (x.square().add(0.1)).sqrt_() + (3 + y).reciprocal_() + x**3,
    "choices": lambda x, y: torch.where((x <= y) & (y > 0), x, y).masked_fill(x >= 1, 7.0),
    "chosen numbers": lambda x, y: torch.where(x > y, x, 2.5) + torch.where(y > 0, 0.5, 3.0),
    "numbers of other kinds": lambda x, y: x + (x > 0) * 2.5 + ((10 * y).long() <= 1.5),
    "kinds": lambda x, y: (x < y).to(x.dtype) + x.double().mul(2).float(),
    "parts": lambda x, y: torch.cat([x[:1], y[1:]]) + torch.stack([x, y]).sum(0)[:, :1],
    "numbers": lambda x, y: x * torch.tensor(3.0, dtype=torch.float64) + x.sum(),
    "numbers that are rounded": lambda x, y: (
        torch.where(x <= y.sum().double() / 7, x.sum().double() / 3, y) + x.max().double() / 9 * y
    ),
    "numbers that are whole": lambda x, y: x * x.sum().round().long() + (y > y.sum().long()) * x,
    "bits": lambda x, y: ((_whole(x) >> 9 & 0xFFFF) ^ _whole(y) * -0x7FEB).to(x.dtype),
    "bits of one number": lambda x, y: x + (_whole(y.sum()) >> 40 ^ _whole(x.sum()) | 7),
    "halves of whole numbers": lambda x, y: _whole(x).int() / 7 + _whole(y).int() * 0.1,
    "derivatives": lambda x, y: (
        torch.ops.aten.threshold_backward(x, y, 0.1)
        + torch.ops.aten.sigmoid_backward(x, torch.sigmoid(y))
    ),
    "bounds on one side": lambda x, y: x.clamp(max=0.3) + y.clamp(0.2) + x.clone().clamp_(0, 1e9),
    "zeros": lambda x, y: torch.zeros_like(x).index_add_(0, torch.tensor([1, 0, 1]), y).add_(x),
    "products of matrices": lambda x, y: torch.addmm(x[0, :3], x, y.T) @ x,
    "norms": lambda x, y: (
        x / torch.linalg.vector_norm(y, dim=1, dtype=torch.float64).float()[:, None]
    ),
    "largest": lambda x, y: x - x.max(1, keepdim=True).values + y.topk(2, 1).values[:, :1],
    "random directions": lambda x, y: torch.special.erfinv(x.tanh()) + torch.sigmoid(y),
}
NOT_A_NUMBER = torch.tensor([[float("nan"), float("inf"), -float("inf"), 0.0, -0.0]])


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_replaying_is_doing_again(work):
    x, y, out = random(3, 5), random(3, 5), torch.empty(3, 5)
    given = [(random(3, 5), random(3, 5)) for _ in range(3)]
    given.append((NOT_A_NUMBER.repeat(3, 1), random(3, 5)))
    tape = Tape(lambda: out.copy_(work(x, y)), [x, y, out])
    tape.begin()
    for a, b in given:
        x.copy_(a), y.copy_(b)
        tape.replay()
        torch.testing.assert_close(out, work(a, b), rtol=0, atol=0, equal_nan=True)


def test_gradients_are_replayed_without_autograd():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    x, found = random(2, 4), torch.empty(2, 4)

    def gradient(at: Tensor) -> Tensor:
        leaf = at.detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(net(leaf).sum(), leaf)[0]

    with torch.no_grad():
        tape = Tape(lambda: found.copy_(gradient(x)), [x, found])
        for _ in range(3):
            tape.begin()
            x.copy_(random(2, 4))
            tape.replay()
            torch.testing.assert_close(found, gradient(x))
            for weight in net.parameters():
                weight.add_(0.1)


def test_what_does_not_change_is_done_once():
    x, steady, out = random(2, 3), random(3, 3), torch.zeros(2, 3)
    tape = Tape(lambda: out.add_(x @ steady.exp().tril()), [x, out])
    assert [each.name for each in tape.once] == ["exp", "tril"]
    assert [each.name for each in tape.always] == ["mm", "add_"]
    out.zero_(), steady.add_(1)
    tape.begin()
    tape.replay()
    tape.replay()
    torch.testing.assert_close(out, 2 * x @ steady.exp().tril())


def test_what_nothing_depends_on_is_left_out():
    x = random(2, 3)
    tape = Tape(lambda: (x.exp(), x.add_(1)), [x])
    assert [each.name for each in tape.always] == ["add_"]


@pytest.mark.parametrize(("rows", "threads"), [(2, 1), (20_000, 3)])
def test_small_work_is_done_in_one_thread(monkeypatch, rows, threads):
    set_to = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr(torch, "set_num_threads", set_to.append)
    x = random(rows, 20)
    tape = Tape(lambda: x.copy_(x.exp()), [x])
    tape.replay()
    assert set_to == [threads, 3]


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = nn.Buffer(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls


REFUSED = {
    "branches": lambda x: x + 1 if x.sum() > 0 else x,
    "values": lambda x: x + x.max().item(),
    "arrays": lambda x: x + float(x.numpy().sum()),
    "lists": lambda x: x + x.tolist()[0][0],
    "sizes": lambda x: x + len(x[x > 0]),
    "chance": lambda x: x + torch.rand_like(x),
    "dropout": lambda x: nn.functional.dropout(x),
    "memories": Counting(),
    "size": lambda x: x + torch.ones(5000, 1000).sum(),
}


@pytest.mark.parametrize("work", REFUSED.values(), ids=REFUSED)
def test_what_a_tape_would_get_wrong_is_refused(work):
    x = random(2, 3)
    with pytest.raises(NotOnTapeError):
        Tape(lambda: x.copy_(work(x)), [x])
