"""The digits, a network that withstands attacks on them, and the libraries' random numbers."""

import tempfile
import warnings

import numpy as np
import pytest
import torch

from facetwalk.zoo import digits, digits_net

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Please import `gaussian_filter`", DeprecationWarning)
    import foolbox  # noqa: F401

with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as home:
    # ART writes a file into the home folder when it is first imported, and fails where two
    # processes do so at the same time.
    patch.setenv("HOME", home)
    import art.config  # noqa: F401


@pytest.fixture(autouse=True)
def _same_random_numbers():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        np.random.seed(0)
        yield


@pytest.fixture
def net():
    return digits_net()


@pytest.fixture
def images():
    return digits("test")[0][:100]


@pytest.fixture
def labels():
    return digits("test")[1][:100]
