"""What an evaluation finds wrong with its own figures."""

import pytest
import torch
import torch.nn.functional as F
from classifiers import Calls, batch, linear, worst_margin
from evaluation_cases import EPS, case
from torch import nn

from facetwalk.robustness import RobustnessWarning, evaluate


class TestFindings:
    def test_are_warnings_and_in_the_report(self):
        net = nn.Sequential(linear(), nn.Softmax(1)).eval()
        with pytest.warns(RobustnessWarning, match="probabilities, not logits") as caught:
            report = evaluate(net, *batch(net), EPS, budget=20)
        assert [finding.name for finding in report.findings] == ["softmax"]
        assert [warning.filename for warning in caught] == [__file__]

    def test_are_none_where_all_is_well(self):
        assert evaluate(*case(), EPS, budget=20).findings == []

    def test_come_with_samples_from_a_folder_too(self, tmp_path):
        net = nn.Sequential(linear(), nn.Softmax(1)).eval()
        for _ in range(2):
            with pytest.warns(RobustnessWarning):
                report = evaluate(net, *batch(net), EPS, budget=20, folder=tmp_path)
            assert len(report.findings) == 1

    def test_a_randomised_model_is_evaluated_with_a_warning(self):
        net = Calls(linear(), lambda net, x: net(x) + 0.1 * torch.randn(len(x), 4))
        random = torch.get_rng_state()
        with pytest.warns(RobustnessWarning, match="other outputs for the same images"):
            evaluate(net, *batch(linear()), EPS, budget=20)
        assert torch.equal(torch.get_rng_state(), random)

    def test_what_only_a_batch_breaks_is_robust_and_marked(self):
        net = linear()
        images, labels = batch(net, 60)
        robust = worst_margin(net, images, labels, "inf", 0.02).argmin()
        image, label = images[robust], labels[robust]

        def forward(net, x):
            moved = (len(x) > 1) * (x[:, :1] - image[:1])
            return net(x) - 1e4 * moved * F.one_hot(label, 4)

        given = image.expand(4, 5), label.expand(4)
        report = evaluate(Calls(net, forward), *given, 0.02, bounds=None, budget=60)
        assert report.robust_accuracy == 1
        assert all(sample.depends_on_batch for sample in report.samples)
        assert evaluate(net, *given, 0.02, bounds=None, budget=60).robust_accuracy == 1
