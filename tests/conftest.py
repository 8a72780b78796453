"""What tests of several folders need."""

import pytest

from facetwalk import FacetwalkError
from facetwalk.control.environments import procgen


@pytest.fixture(scope="session")
def procgen_is_there():
    """Skips where Procgen, or a library of the system that it asks for, is missing."""
    try:
        procgen("coinrun", 1).close()
    except FacetwalkError as error:
        pytest.skip(str(error))
