"""What the adapters need, and what they say where it is missing."""

import importlib
import sys

import pytest

from facetwalk.types import MissingExtraError

LIBRARIES = {"torchattacks": "torchattacks", "foolbox": "Foolbox", "art": "ART"}
"""By the names of their packages, which are those of our extras."""


@pytest.fixture
def without(monkeypatch):
    """Hides a package, and lets our adapters be imported anew."""

    def hide(library):
        for name in list(sys.modules):
            if name.split(".")[0] == library or name.startswith("facetwalk.adapters"):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, library, None)

    return hide


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_library_names_the_extra(without, library):
    without(library)
    sentence = rf"the attack for {LIBRARIES[library]} needs .*'facetwalk\[{library}\]'"
    with pytest.raises(MissingExtraError, match=sentence):
        importlib.import_module(f"facetwalk.adapters.for_{library}")


def test_the_room_itself_needs_none(without):
    for library in LIBRARIES:
        without(library)
    importlib.import_module("facetwalk.adapters")
