"""A method's step, projected, is what its solver takes."""

import pytest
import torch

from facetwalk.experiments.gradients.cases import Case, random_case, stand_in
from facetwalk.experiments.gradients.walks import NAMES, methods, walk

CASES = {
    "random networks": lambda: random_case("A", 3, "cpu"),
    "digits": lambda: stand_in(3, "cpu")[0][0],
}


@pytest.mark.parametrize("number", range(2), ids=NAMES)
@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_steps_are_those_of_the_solver(make, number):
    case: Case = make()
    method, problem = methods(6)[number], case.problem
    walked = walk(problem, method)
    assert walked.x.shape[:2] == walked.value.shape == (6, 3)
    for t in range(5):
        x = walked.x[t].clone().requires_grad_()
        value = problem.objective(problem.model(x))
        torch.testing.assert_close(value.detach(), walked.value[t])
        (gradient,) = torch.autograd.grad(value.sum(), x)
        taken = problem.space.project(walked.x[t] + method.step(problem.space, gradient, t))
        torch.testing.assert_close(taken, walked.x[t + 1])


def test_all_is_in_double_precision():
    for case in (make() for make in CASES.values()):
        walked = walk(case.problem, methods(2)[0])
        assert walked.x.dtype == walked.value.dtype == torch.float64
