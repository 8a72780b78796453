import pytest
import torch
from torch import nn

import facetwalk as fw
from facetwalk.solvers import ActivationDescent
from facetwalk.zoo import (
    CifarCnn,
    CifarResNet,
    Normalize,
    ResNet18,
    ResNet20,
    SqueezeNet,
    Vgg19,
)

NETWORKS = {
    "CifarCnn": (CifarCnn, 32),
    "CifarResNet": (CifarResNet, 32),
    "ResNet18": (lambda: nn.Sequential(Normalize(), ResNet18()), 8),
    "ResNet20": (lambda: nn.Sequential(Normalize(), ResNet20()), 8),
    "SqueezeNet": (lambda: nn.Sequential(Normalize(), SqueezeNet(classes=5)), 17),
    "Vgg19": (lambda: nn.Sequential(Normalize(), Vgg19()), 32),
}


@pytest.mark.parametrize(("make", "size"), NETWORKS.values(), ids=NETWORKS)
def test_activation_descent_raises_their_loss_within_the_ball(make, size):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = make().eval()
        images, labels = torch.rand(3, 3, size, size), torch.arange(3)
        for part in net.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_uniform_(part.weight, nonlinearity="relu")
    space = fw.LinfBall(images, eps=0.05, bounds=(0, 1))
    problem = fw.Problem(net, fw.objectives.CrossEntropy(labels), space)
    result = fw.maximize(problem, solver=ActivationDescent(steps=6))
    assert (result.value > result.initial_value + 1e-3).all()
    assert space.contains(result.x).all()
    with torch.no_grad():
        losses = nn.functional.cross_entropy(net(result.x), labels, reduction="none")
    torch.testing.assert_close(result.value, losses)
