"""Bars 3 and 4: a batch gives what single calls give, and nothing of the user's is changed.

For every solver: the largest difference in value and in x between a batch of 32 problems with two
starts each and 32 single calls; and whether the model's parameters, buffers, flags, gradients and
hooks and the global random state are the same after a call, and after one that raises.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from report import RESULTS, markdown, save
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.solvers import BY_NAME, Fgsm, Solver

PROBLEMS = 32
STEPS = 40


class Classifier(nn.Module):
    """A convolution, batch norm and in-place ReLUs; raises after `calls_left` calls."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv1d(1, 6, 3, padding=1), nn.BatchNorm1d(6)
        self.out, self.act = nn.Linear(60, 4), nn.ReLU(inplace=True)
        self.calls_left = 10**9

    def forward(self, x: Tensor) -> Tensor:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise RuntimeError("raised on purpose")
        return self.out(self.act(self.norm(self.conv(x[:, None]))).flatten(1))


def largest_difference(model: nn.Module, solver: Solver) -> tuple[float, float]:
    generator = torch.Generator().manual_seed(1)
    centers = torch.rand(PROBLEMS, 10, generator=generator, dtype=torch.float64)
    space = fw.LinfBall(centers, eps=0.2, bounds=(0, 1))
    objective = fw.objectives.CrossEntropy(torch.arange(PROBLEMS) % 4)
    together = fw.maximize(fw.Problem(model, objective, space), solver=solver, starts=2)
    of_value, of_x = 0.0, 0.0
    for b in range(PROBLEMS):
        row = torch.tensor([b])
        problem = fw.Problem(model, objective.select(row), space.select(row))
        alone = fw.maximize(problem, solver=solver, starts=2, seed=b)
        of_value = max(of_value, (alone.value[0] - together.value[b]).abs().item())
        of_x = max(of_x, (alone.x[0] - together.x[b]).abs().max().item())
    return of_value, of_x


def fingerprint(model: nn.Module) -> list[Any]:
    tensors = [*model.parameters(), *model.buffers()]
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return [
        [tensor.tolist() for tensor in tensors],
        [(tensor.requires_grad, tensor.grad) for tensor in tensors],
        [(m.training, [len(getattr(m, name)) for name in hooks]) for m in model.modules()],
        len(nn.modules.module._global_forward_hooks),
        len(nn.modules.module._global_forward_pre_hooks),
        torch.get_rng_state().tolist(),
    ]


def leaves_alone(model: Classifier, solver: Solver, calls: int) -> bool:
    """Whether a call that may use the model so many times changes nothing."""
    before = fingerprint(model)
    model.calls_left = calls
    space = fw.Box(-1, 1, shape=(10,))
    try:
        fw.maximize(fw.Problem(model, fw.objectives.Output(0), space), solver=solver, starts=2)
    except RuntimeError as error:
        if "raised on purpose" not in str(error):
            raise
    finally:
        model.calls_left = 10**9
    return fingerprint(model) == before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Classifier().double().eval()
    rows, data = [], []
    for name, kind in BY_NAME.items():
        solver = kind() if kind is Fgsm else kind(steps=STEPS)
        of_value, of_x = largest_difference(model, solver)
        untouched = all(leaves_alone(model, solver, calls) for calls in (10**9, 0, 1, 2))
        rows.append([name, f"{of_value:.1e}", f"{of_x:.1e}", "yes" if untouched else "NO"])
        data.append({"solver": name, "value": of_value, "x": of_x, "untouched": untouched})
    headers = ["solver", "difference in value", "difference in x", "model and RNG untouched"]
    title = f"A batch of {PROBLEMS} against {PROBLEMS} single calls, double precision"
    save("invariants", title, markdown(headers, rows), data, "cpu", options.out)


if __name__ == "__main__":
    main()
