"""Networks to work on: random ones, trained ones, and those of users.

Importing this needs no extra; what needs one (`load_onnx`, `load_trained`, `digits`, `digits_net`,
`shipped_net`, `coinrun_policy`) names it when called.
"""

from facetwalk.zoo.architectures import ARCHITECTURES, fresh_net
from facetwalk.zoo.checkpoints import load_weights
from facetwalk.zoo.cifar import CifarCnn, CifarResNet
from facetwalk.zoo.digits import DigitsNet, digits, digits_net
from facetwalk.zoo.impala import ImpalaPolicy, coinrun_policy, impala_policy
from facetwalk.zoo.loaded import Loaded
from facetwalk.zoo.loading import load_model
from facetwalk.zoo.mnist import MnistCnn, MnistStrided
from facetwalk.zoo.normalize import Normalize
from facetwalk.zoo.onnx import load_onnx
from facetwalk.zoo.random_networks import (
    MODEL_A,
    MODEL_B,
    MODEL_C,
    notebook_network,
    random_network,
    uniform_network,
)
from facetwalk.zoo.resnet import ResNet18, WideResNet50_2
from facetwalk.zoo.resnet20 import ResNet20
from facetwalk.zoo.shipped import BY_NAME as SHIPPED_NETS
from facetwalk.zoo.shipped import shipped_net
from facetwalk.zoo.squeezenet import SqueezeNet
from facetwalk.zoo.stacked import StackedNetworks
from facetwalk.zoo.trained import load_trained
from facetwalk.zoo.vgg import Vgg19

__all__ = [
    "ARCHITECTURES",
    "MODEL_A",
    "MODEL_B",
    "MODEL_C",
    "SHIPPED_NETS",
    "CifarCnn",
    "CifarResNet",
    "DigitsNet",
    "ImpalaPolicy",
    "Loaded",
    "MnistCnn",
    "MnistStrided",
    "Normalize",
    "ResNet18",
    "ResNet20",
    "SqueezeNet",
    "StackedNetworks",
    "Vgg19",
    "WideResNet50_2",
    "coinrun_policy",
    "digits",
    "digits_net",
    "fresh_net",
    "impala_policy",
    "load_model",
    "load_onnx",
    "load_trained",
    "load_weights",
    "notebook_network",
    "random_network",
    "shipped_net",
    "uniform_network",
]
