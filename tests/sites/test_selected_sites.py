"""Some sites of a model, and what is done with their tensors."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
import torch.nn.functional as F
from site_cases import AFFINE, Case
from torch import Tensor, nn

from facetwalk.sites import discover
from facetwalk.types import InputError


def two_layers() -> nn.Module:
    return nn.Sequential(
        OrderedDict(
            layer1=nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.Hardtanh()),
            layer10=nn.Sequential(nn.Linear(6, 5), nn.ReLU()),
            head=nn.Linear(5, 2),
        )
    )


LAYERS = Case(two_layers, (4,), [])
NAMES = ["layer1.1#0", "layer1.3#0", "layer1.3#1", "layer10.1#0"]


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ("all", [0, 1, 2, 3]),
        ("last", [3]),
        ("layer1", [0, 1, 2]),
        ("layer10", [3]),
        ("layer1.3", [1, 2]),
        ("layer1.3#1", [2]),
        (["layer1.1#0"], [0]),
        (["layer10", "layer1.1"], [0, 3]),
        (("layer1", "layer1.3#0"), [0, 1, 2]),
        (iter(["layer10.1#0", "layer1.3#0"]), [1, 3]),
        (lambda site: site.op == "hardtanh", [1, 2]),
        (lambda site: site.neurons == 5, [3]),
    ],
)
def test_sites_are_selected(selection, chosen):
    sites = discover(LAYERS.model(), LAYERS.inputs())
    assert [site.name for site in sites] == NAMES
    selected = sites.select(selection)
    assert [site.name for site in selected] == [NAMES[i] for i in chosen]
    assert selected.model is sites.model


@pytest.mark.parametrize(
    "selection",
    ["layer", "layer2", "layer1.1#1", "head", "", ["layer1", "nowhere"], [], lambda site: False],
)
def test_a_selection_that_fits_nothing_lists_the_names(selection):
    with pytest.raises(InputError, match=", ".join(NAMES)):
        discover(LAYERS.model(), LAYERS.inputs()).select(selection)


def test_sites_that_are_not_selected_stay_relus():
    model, x = LAYERS.model(), LAYERS.inputs()
    sites = discover(model, x).select(["layer1.1", "layer10"])
    half = [torch.full((len(x), size), 0.5, dtype=x.dtype) for size in (6, 5)]
    output, seen = sites.gated(x, half)
    first = model.layer1[0](x)
    second = F.hardtanh(model.layer1[2](first / 2))
    third = model.layer10[0](second)
    torch.testing.assert_close(seen, [first, third])
    torch.testing.assert_close(output, model.head(third / 2))


def test_run_replaces_each_hinge_by_what_it_is_told():
    model, x = LAYERS.model(), LAYERS.inputs()
    sites = discover(model, x)
    asked = []

    def replacement(i: int, z: Tensor) -> Tensor:
        asked.append((i, tuple(z.shape)))
        return torch.full_like(z, i)

    output = sites.run(x, replacement)
    assert asked == [(0, (40, 6)), (1, (40, 6)), (2, (40, 6)), (3, (40, 5))]
    torch.testing.assert_close(output, model.head(torch.full((40, 5), 3.0, dtype=x.dtype)))


def test_join_split_parts_and_spread_fit_together():
    case = AFFINE["residual, shared in-place ReLU"]
    sites = discover(case.model(), case.inputs())
    shapes = [shape for _, _, shape in case.sites]
    tensors = [torch.randn(3, *shape) for shape in shapes]
    joined = sites.join(tensors)
    assert joined.shape == (3, sites.neurons) == (3, 2 * 32 + 2 * 48)
    assert all(torch.equal(a, b) for a, b in zip(sites.split(joined), tensors, strict=True))
    assert torch.equal(sites.join(sites.split(joined)), joined)
    assert torch.equal(torch.cat(sites.parts(joined), 1), joined)
    for part, tensor in zip(sites.parts(joined), tensors, strict=True):
        assert torch.equal(part, tensor.flatten(1))
    by_site = torch.randn(3, len(sites))
    spread = sites.spread(by_site)
    assert spread.shape == joined.shape
    for i, whole in enumerate(sites.split(spread)):
        assert (whole == by_site[:, i].reshape(3, 1, 1, 1)).all()


def test_what_lies_with_channels_last_is_joined_and_split_without_copies():
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)).eval()
    x = torch.rand(3, 2, 6, 6)
    plain = discover(net, x)
    last = discover(net.to(memory_format=torch.channels_last), x)
    (site,), (z,) = last.sites, last.pre_activations(x)[1]
    assert (plain.sites[0].channels_last, site.channels_last) == (False, True)
    assert site.flat(z).data_ptr() == z.data_ptr()
    assert site.unflat(site.flat(z)).data_ptr() == z.data_ptr()
    assert torch.equal(site.unflat(site.flat(z)), z)
    assert torch.equal(last.split(last.join([z]))[0], z)
    assert torch.equal(last.join([z]), z.permute(0, 2, 3, 1).flatten(1))
