import pytest
from small_problems import TinyNet

from facetwalk.zoo import ARCHITECTURES


@pytest.fixture(autouse=True)
def tiny_architecture(monkeypatch) -> None:
    """Registers the network of `small_problems.tiny`."""
    monkeypatch.setitem(ARCHITECTURES, "tiny", TinyNet)
