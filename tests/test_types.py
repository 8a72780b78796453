"""Errors reach people from other processes too."""

import pickle

from facetwalk.types import MissingExtraError


def test_a_missing_extra_survives_pickling():
    error = MissingExtraError("flying", "wings")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, MissingExtraError)
    assert str(again) == str(error)
