"""Training of policies for Procgen's games, by PPO.

make_policy(PolicyRecipe(game="coinrun"), out)   weights for `zoo.impala_policy`, and a record
python -m facetwalk.training.policies --help     the same from a terminal

Importing this needs no extra; training needs `control` and `procgen`.
"""

from facetwalk.training.policies.making import make_policy
from facetwalk.training.policies.recipe import PolicyRecipe

__all__ = ["PolicyRecipe", "make_policy"]
