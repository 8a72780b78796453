"""What crossover is good for."""

import torch
from torch import Tensor, nn

import facetwalk as fw
from facetwalk.objectives import Output
from facetwalk.solvers import Recombination, Sign


def tents(blocks: int) -> nn.Sequential:
    """A sum over inputs of a wide low tent around -0.5 and a narrow high one around 0.7.

    Alone, each input has its best, 1, at 0.7, and a local maximum of 0.5 at -0.5.
    """
    net = nn.Sequential(nn.Linear(blocks, 6 * blocks), nn.ReLU(), nn.Linear(6 * blocks, 1))
    net = net.double().eval()
    for parameter in net.parameters():
        parameter.data.zero_()
    for b in range(blocks):
        for i, (middle, reach, height) in enumerate([(-0.5, 0.9, 0.5), (0.7, 0.3, 1.0)]):
            for j, (knot, slope) in enumerate([(-reach, 1), (0, -2), (reach, 1)]):
                neuron = 6 * b + 3 * i + j
                net[0].weight.data[neuron, b] = 1
                net[0].bias.data[neuron] = -(middle + knot)
                net[2].weight.data[0, neuron] = slope * height / reach
    return net


class TestCrossover:
    BLOCKS, PROBLEMS = 8, 60
    INNER = Sign(steps=20, step_size=0.1)

    def problem(self) -> fw.Problem:
        low = -torch.ones(self.PROBLEMS, self.BLOCKS, dtype=torch.float64)
        return fw.Problem(tents(self.BLOCKS), Output(0), fw.Box(low, -low, shape=(self.BLOCKS,)))

    def solved(self, solver, starts: int) -> tuple[int, Tensor]:
        result = fw.maximize(self.problem(), solver=solver, starts=starts, x0="sample")
        return int((result.value > self.BLOCKS - 0.2).sum()), result.evaluations.backward

    def test_it_combines_what_members_found_apart(self):
        breeding = Recombination(
            population=30,
            generations=6,
            first=self.INNER,
            inner=self.INNER,
            elites=12,
            redrawn=0,
        )
        together, cost = self.solved(breeding, starts=1)
        apart, same = self.solved(self.INNER, starts=180)
        assert torch.equal(cost, same)
        assert cost.unique().tolist() == [3600]
        assert apart < 0.1 * self.PROBLEMS
        assert together > 0.8 * self.PROBLEMS
