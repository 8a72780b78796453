"""Data sets of images in the files that their authors publish.

`load` and the functions beneath it read what lies in a folder; only `download` uses the network.
Importing this needs no extra; photographs need Pillow, which is named when it is missing.
"""

from facetwalk.data.cifar_files import cifar10
from facetwalk.data.dataset import NAMES, Dataset, load
from facetwalk.data.downloads import download
from facetwalk.data.image_files import ImageFiles
from facetwalk.data.imagenet_files import imagenet_val
from facetwalk.data.mnist_files import fashion_mnist, mnist

__all__ = [
    "NAMES",
    "Dataset",
    "ImageFiles",
    "cifar10",
    "download",
    "fashion_mnist",
    "imagenet_val",
    "load",
    "mnist",
]
