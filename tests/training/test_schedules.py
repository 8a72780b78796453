from facetwalk.training.schedules import radius_factor, rate_factor


def test_rate_and_radius_rise_and_only_the_rate_falls():
    assert [rate_factor(done) for done in (0, 0.2, 1)] == [0, 1, 0]
    assert [radius_factor(done) for done in (0, 1 / 6, 1 / 3, 1)] == [0, 0.5, 1, 1]
