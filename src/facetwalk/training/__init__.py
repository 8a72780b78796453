"""Training of image classifiers, natural and adversarial.

make(recipe_of("mnist-pgd"), data, out)      from files to weights and a record of what they are
train(recipe, images, labels)                a network from tensors
measure(net, images, labels, radius)         accuracy, and accuracy under attack
"""

from facetwalk.training.checkpoint import Checkpoint
from facetwalk.training.fitting import Trained, train
from facetwalk.training.making import make
from facetwalk.training.measuring import measure
from facetwalk.training.recipe import Recipe
from facetwalk.training.recipes import RECIPES, recipe_of

__all__ = [
    "RECIPES",
    "Checkpoint",
    "Recipe",
    "Trained",
    "make",
    "measure",
    "recipe_of",
    "train",
]
