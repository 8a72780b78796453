import json
import math

import numpy as np
import pytest
import torch

from facetwalk.cli.files import read_inputs, read_tensor
from facetwalk.cli.results import write_json
from facetwalk.types import InputError


def test_pickles_are_not_run(tmp_path):
    np.save(tmp_path / "x.npy", np.array([print], dtype=object))
    torch.save({"f": print}, tmp_path / "x.pt")
    np.savez(tmp_path / "x.npz", np.array([print], dtype=object))
    for name in ("x.npy", "x.npz", "x.pt"):
        with pytest.raises(InputError, match="cannot be read as an array: it must hold"):
            read_tensor(tmp_path / name)


def test_files_that_hold_no_single_array_are_refused(tmp_path):
    np.savez(tmp_path / "two.npz", a=np.zeros(3), b=np.zeros(3))
    np.savez(tmp_path / "none.npz")
    torch.save({"weight": torch.zeros(3)}, tmp_path / "state.pt")
    np.save(tmp_path / "text.npy", np.array(["a", "b"]))
    for broken in ("broken.npy", "broken.pt"):
        (tmp_path / broken).write_text("nothing")
    for name, match in [
        ("two.npz", "must hold exactly one array; it holds a, b"),
        ("none.npz", "must hold exactly one array; it holds none"),
        ("state.pt", "holds a value of type dict, not numbers"),
        ("text.npy", "holds an array of <U1, not numbers"),
        ("broken.npy", "cannot be read as an array: it must hold numbers saved by numpy"),
        ("broken.pt", "cannot be read as an array: it must hold a tensor saved by torch.save"),
        ("x.csv", "must be a file of a known kind: .npy, .npz, .pt, .pth"),
        ("x.npy", "there is no file"),
    ]:
        with pytest.raises(InputError, match=match) as caught:
            read_tensor(tmp_path / name)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (np.zeros((2, 4)), r"has shape \(2, 4\), and the network takes inputs of shape \(3,\)"),
        (np.zeros((0, 3)), "holds no inputs: save at least one"),
        (np.zeros(()), "has shape"),
        (np.zeros((2, 3), dtype=np.uint8), "save floats, for images usually x / 255"),
        (np.full((2, 3), np.nan), "holds NaN or infinite values"),
    ],
)
def test_arrays_that_are_no_inputs_are_refused(tmp_path, array, match):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(InputError, match=match):
        read_inputs(tmp_path / "x.npy", (3,))


def test_json_is_strict_and_names_the_versions(tmp_path):
    data = {"x": torch.tensor([1.0, math.inf]), "y": (math.nan, -math.inf, None, True, "a")}
    write_json(tmp_path / "out.json", data)
    read = json.loads((tmp_path / "out.json").read_text(), parse_constant=pytest.fail)
    assert read["x"] == [1.0, None]
    assert read["y"] == [None, None, None, True, "a"]
    assert read["versions"]["torch"] == torch.__version__
