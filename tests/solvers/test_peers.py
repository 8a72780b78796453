"""Our APGD against the authors' implementation, on the same network and images."""

import pytest
import torch

import facetwalk as fw
from facetwalk.zoo import digits, digits_net

apgd_of_its_authors = pytest.importorskip(
    "pyautoattack.autopgd_base", reason="pyautoattack is not installed"
)


EPS = 0.2


@pytest.mark.filterwarnings("ignore:there are .* points with zero gradient")
@pytest.mark.parametrize("loss", ["ce", "dlr"])
def test_apgd_does_what_its_authors_code_does_from_the_same_points(loss):
    model, (images, labels) = digits_net(), digits("test")
    noise = torch.rand(images.shape, generator=torch.Generator().manual_seed(0))
    start = (images + EPS * (2 * noise - 1)).clamp(0, 1)
    attack = apgd_of_its_authors.APGDAttack(
        model, n_iter=100, n_restarts=1, norm="Linf", eps=EPS, loss=loss, seed=0, device="cpu"
    )
    attack.init_hyperparam(images)
    with torch.random.fork_rng():
        _, still_right, their_best, _ = attack.attack_single_run(images, labels, x_init=start)
    their_success = 1 - still_right.double().mean().item()

    fooled = torch.zeros(len(images), dtype=torch.bool)

    def watch(step):
        with torch.no_grad():
            fooled.logical_or_(model(step.x).argmax(1) != labels)

    objective = {"ce": fw.objectives.CrossEntropy, "dlr": fw.objectives.DLR}[loss](labels)
    space = fw.LinfBall(images, EPS, bounds=(0, 1))
    ours = fw.maximize(
        fw.Problem(model, objective, space),
        solver=fw.solvers.Apgd(steps=101),
        x0=start,
        callback=watch,
    )
    assert 0.3 < their_success < 0.7
    assert abs(fooled.double().mean().item() - their_success) <= 0.01
    assert ours.value.median().item() == pytest.approx(their_best.median().item(), rel=0.02)
