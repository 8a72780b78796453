"""What children are made of: coordinates of two elites, and some drawn anew."""

import pytest
import torch
from populations import NET, bred, spaces
from scipy.stats import kstest

import facetwalk as fw


class TestChildren:
    def test_each_coordinate_is_that_of_one_of_two_elites(self):
        settings = {"population": 12, "generations": 5, "elites": 4, "redrawn": 0}
        points, values, _ = bred(spaces(3)["box"], **settings)
        both = 0
        for g in range(1, 5):
            for b in range(3):
                value, x = (torch.cat([seen[b] for seen in s[:g]]) for s in (values, points))
                elites = x[value.argsort(descending=True)[:4]]
                for child in points[g][b]:
                    from_elite = child == elites
                    assert from_elite.any(0).all()
                    pairs = from_elite[:, None] | from_elite[None]
                    assert pairs.all(-1).any()
                    both += not from_elite.all(-1).any()
        assert both > 60  # of 144: only parents of different kinds make something new

    def test_parents_take_equal_shares_and_every_elite_is_one(self):
        settings = {"population": 400, "generations": 2, "elites": 3, "redrawn": 0}
        points, values, _ = bred(spaces(1)["box"], **settings)
        elites = points[0][0][values[0][0].argsort(descending=True)[:3]]
        shares = (points[1][0][:, None] == elites).double().mean((0, 2))
        assert shares.tolist() == pytest.approx([1 / 3] * 3, abs=0.06)

    @pytest.mark.parametrize("redrawn", [0.0, 0.2, 0.5, 0.8])
    def test_each_child_has_equal_shares_of_both_parents_in_what_is_not_redrawn(self, redrawn):
        """Of k coordinates kept, those of one parent are binomial: their variance is k / 4."""
        settings = {"population": 3000, "generations": 2, "elites": 2, "redrawn": redrawn}
        points, values, _ = bred(fw.Box(-1, 3, shape=(8,)), **settings)
        one, other = points[0][0][values[0][0].argsort(descending=True)[:2]]
        from_one, from_other = (points[1][0] == one).sum(1), (points[1][0] == other).sum(1)
        kept = from_one + from_other
        assert kept.double().mean().item() == pytest.approx(8 * (1 - redrawn), abs=0.2)
        some = kept > 0
        spread = (from_one - from_other)[some].square() / kept[some]
        assert spread.mean().item() == pytest.approx(1, abs=0.15)
        assert (from_one.sum() / kept.sum()).item() == pytest.approx(0.5, abs=0.02)

    def test_in_a_linf_ball_they_are_the_parents_up_to_rounding(self):
        settings = {"population": 12, "generations": 2, "elites": 12, "redrawn": 0}
        points, _, _ = bred(spaces(3)["linf"], **settings)
        distance = (points[1][:, :, None] - points[0][:, None]).abs().amin(2)
        assert distance.max() < 1e-15

    @pytest.mark.parametrize("kind", ["box", "linf", "l2", "l1", "intersection"])
    @pytest.mark.parametrize("redrawn", [0.0, 0.5])
    def test_they_lie_in_the_space(self, kind, redrawn):
        space = spaces(4)[kind]
        points, _, result = bred(
            space, population=6, generations=4, epochs=2, elites=3, redrawn=redrawn
        )
        for generation in points:
            for member in generation.unbind(1):
                assert space.contains(member).all()
        assert space.contains(result.x).all()

    def test_what_is_drawn_anew_is_uniform(self):
        points, _, _ = bred(fw.Box(-1, 3, shape=(8,)), population=300, generations=3, redrawn=1.0)
        for generation in points[1:]:
            drawn = generation.flatten().numpy()
            assert kstest((drawn + 1) / 4, "uniform").pvalue > 1e-3
        everything = torch.cat([generation[0] for generation in points])[1:]
        assert len(everything[:, 0].unique()) > 0.99 * len(everything)

    @pytest.mark.parametrize(
        ("share", "of_eight"), [(0.0, 0.0), (0.01, 1 / 8), (0.4, 0.4), (0.5, 0.5), (0.9, 0.9)]
    )
    def test_some_coordinates_are_drawn_anew(self, share, of_eight):
        points, _, _ = bred(fw.Box(-1, 3, shape=(8,)), population=500, generations=2, redrawn=share)
        old, new = points[0][0], points[1][0]
        drawn = ~(new[:, None] == old).any(1)
        assert drawn.double().mean().item() == pytest.approx(of_eight, abs=0.04)
        assert not drawn.all()
        if share:
            assert kstest((new[drawn].numpy() + 1) / 4, "uniform").pvalue > 1e-3

    def test_generations_and_members_differ(self):
        points, _, _ = bred(fw.Box(-1, 3, shape=(8,)), population=8, generations=4)
        everyone = torch.cat([generation[0] for generation in points])
        assert len(everyone.unique(dim=0)) > 24  # of 32: a child may have one parent twice

    def test_the_first_generation_starts_at_the_centre_and_random_points(self):
        space = spaces(3)["box"]
        points, _, result = bred(space, population=4, generations=2)
        assert torch.equal(points[0][:, 0], space.center)
        assert len(points[0].flatten(0, 1).unique(dim=0)) == 12
        torch.testing.assert_close(result.initial_value, NET(space.center)[:, 0].detach())
