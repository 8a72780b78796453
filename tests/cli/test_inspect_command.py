import numpy as np
import pytest
import torch

from facetwalk.zoo import digits, digits_net, random_network


def live_by_hand(x: torch.Tensor) -> list[float]:
    """Share of positive pre-activations at the two hidden layers of a random network."""
    net = random_network((5, 7, 6, 2), 3)
    first = net[0](x)
    second = net[2](first.relu())
    return [(first > 0).double().mean().item(), (second > 0).double().mean().item()]


@pytest.mark.parametrize("suffix", ["npy", "npz", "pt"])
def test_live_shares_on_given_inputs(run, read_json, tmp_path, suffix):
    x = torch.randn(150, 5, generator=torch.Generator().manual_seed(0))
    path, out = tmp_path / f"x.{suffix}", tmp_path / "out.json"
    if suffix == "pt":
        torch.save(x, path)
    else:
        (np.save if suffix == "npy" else np.savez)(path, x.numpy())
    printed = run("inspect", "random:5,7,6,2", "--seed", 3, "--inputs", path, "--json", out)
    data = read_json(out)
    expected = live_by_hand(x)
    assert [site["live"] for site in data["sites"]] == pytest.approx(expected)
    assert data["live"] == pytest.approx((7 * expected[0] + 6 * expected[1]) / 13)
    assert [(s["name"], s["op"], s["shape"], s["neurons"]) for s in data["sites"]] == [
        ("1#0", "relu", [7], 7),
        ("3#0", "relu", [6], 6),
    ]
    assert (data["neurons"], data["affine"], data["input_shape"]) == (13, True, [5])
    assert data["points"] == f"150 inputs of {path}"
    assert f"{expected[0]:.1%}" in printed
    assert f"{data['live']:.1%}" in printed
    assert "is affine" in printed


def test_a_single_input_needs_no_batch(run, read_json, tmp_path):
    x = torch.linspace(-1, 1, 5)
    np.save(tmp_path / "x.npy", x.numpy())
    arguments = ("--inputs", tmp_path / "x.npy", "--json", tmp_path / "out.json")
    run("inspect", "random:5,7,6,2", "--seed", 3, *arguments)
    live = [site["live"] for site in read_json(tmp_path / "out.json")["sites"]]
    assert live == pytest.approx(live_by_hand(x[None]))


def test_random_points_fill_the_box(run, read_json, tmp_path):
    out = tmp_path / "out.json"
    arguments = ("inspect", "random:5,7,6,2", "--seed", 3, "--json", out)
    run(*arguments, "--samples", 4000, "--box", 2, 4)
    expected = live_by_hand(2 + 2 * torch.rand(4000, 5))
    data = read_json(out)
    assert [site["live"] for site in data["sites"]] == pytest.approx(expected, abs=0.03)
    assert data["points"] == "4000 random points of the box 2 4"
    run(*arguments)
    assert read_json(out)["points"] == "64 random points of the box -1 1"


def test_digits_are_seen_on_their_test_images(run, read_json, tmp_path):
    out = tmp_path / "out.json"
    printed = run("inspect", "digits", "--json", out)
    data = read_json(out)
    with torch.no_grad():
        live = (digits_net()[0](digits("test")[0]) > 0).double().mean().item()
    assert data["sites"][0]["live"] == pytest.approx(live)
    assert (data["points"], data["neurons"]) == ("500 test images", 1600)
    assert "1,600" in printed
    run("inspect", "digits", "--json", out, "--box", 0, 1)
    assert read_json(out)["points"] == "64 random points of the box 0 1"


def test_a_network_that_is_not_affine_gets_a_note(run, read_json, networks, tmp_path):
    printed = run("inspect", f"{networks}:Soft", "--json", tmp_path / "out.json")
    data = read_json(tmp_path / "out.json")
    assert data["affine"] is False
    assert "not affine before model#0" in data["notes"][0]
    assert f"note: {data['notes'][0]}" in printed
    assert "is affine" not in printed


def test_a_shape_is_passed_on(run, networks, read_json, tmp_path):
    run("inspect", f"{networks}:conv", "--shape", "1,5,5", "--json", tmp_path / "out.json")
    assert read_json(tmp_path / "out.json")["sites"][0]["shape"] == [2, 3, 3]


def test_a_double_network_takes_inputs_in_single_precision(run, networks, read_json, tmp_path):
    data = []
    for dtype in (np.float32, np.float64):
        np.save(tmp_path / "x.npy", np.zeros((2, 3), dtype=dtype))
        options = ("--inputs", tmp_path / "x.npy", "--json", tmp_path / "out.json")
        run("inspect", f"{networks}:double", *options)
        data.append(read_json(tmp_path / "out.json")["sites"])
    assert data[0] == data[1]


@pytest.mark.parametrize("length", [30, 75])
def test_long_names_are_not_cut(run, tmp_path, length):
    (tmp_path / "deep.py").write_text(
        "from collections import OrderedDict\n"
        "from torch import nn\n"
        "def net():\n"
        f"    net = nn.Sequential(OrderedDict(a=nn.Linear(2, 2), {'Q' * length}=nn.ReLU()))\n"
        "    net.input_shape = (2,)\n"
        "    return net\n"
    )
    *_, table = run("inspect", f"{tmp_path / 'deep.py'}:net").partition(":\n")
    assert table.count("Q") == length
    assert all(len(line) <= 80 for line in table.splitlines())


def test_no_file_is_refused(refused, tmp_path):
    refused("there is no file .*x.npy", "inspect", "random:3,1", "--inputs", tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["[bold]"], r"'\[bold\]' names no network"),
        (["random:3,x"], "must be integers"),
        (["random:3,4,1", "--shape", "3,x"], "--shape 3,x must be integers"),
        (["random:3,4,1", "--shape", "4"], "takes inputs of shape"),
        (["random:3,4,1", "--box", "1", "-1"], "low <= high"),
        (["random:3,1"], "no ReLU was found in random:3,1: name a network that has some$"),
        (["random:3,4,1", "--json", "nowhere/out.json"], "there is no folder nowhere"),
        (["random:3,4,1", "--json", "out.txt"], "--json out.txt must end with .json"),
        (["random:3,4,1", "--json", "/"], "/ is a folder"),
    ],
)
def test_what_cannot_be_inspected_is_refused(refused, arguments, match):
    refused(match, "inspect", *arguments)
