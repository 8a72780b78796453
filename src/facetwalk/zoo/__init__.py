"""Networks to work on: random ones, trained ones, and those of users.

Importing this needs no extra; `load_onnx`, `digits` and `digits_net` name theirs when called.
"""

from facetwalk.zoo.digits import DigitsNet, digits, digits_net
from facetwalk.zoo.loaded import Loaded
from facetwalk.zoo.loading import load_model
from facetwalk.zoo.mnist import MnistCnn
from facetwalk.zoo.onnx import load_onnx
from facetwalk.zoo.random_networks import MODEL_A, MODEL_B, MODEL_C, random_network
from facetwalk.zoo.stacked import StackedNetworks

__all__ = [
    "MODEL_A",
    "MODEL_B",
    "MODEL_C",
    "DigitsNet",
    "Loaded",
    "MnistCnn",
    "StackedNetworks",
    "digits",
    "digits_net",
    "load_model",
    "load_onnx",
    "random_network",
]
