"""Evaluations that go on after an interruption."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from classifiers import Counting, batch, linear
from evaluation_cases import EPS, Lazy, assert_same, case
from torch import nn

import facetwalk as fw
from facetwalk.robustness import evaluate
from facetwalk.solvers import Sign


class TestGoingOn:
    def test_from_a_file_cut_anywhere_gives_the_same_samples(self, tmp_path):
        net, images, labels = case(6, wrong=1)
        options = {"attacks": {"sign": Sign(steps=8)}, "folder": tmp_path}
        whole = evaluate(net, images, labels, EPS / 10, **options)
        file = tmp_path / "samples.jsonl"
        content = file.read_bytes()
        ends = [0, *(i + 1 for i, byte in enumerate(content) if byte == ord("\n"))]
        for length in (*ends, *range(ends[-3], len(content))):
            file.write_bytes(content[:length])
            again = evaluate(net, images, labels, EPS / 10, **options)
            assert_same(again.samples, whole.samples)
            done = sum(end <= length for end in ends)
            assert file.read_bytes().startswith(content[: ends[done - 1]])
            assert file.read_bytes().count(b"\n") == 6

    @pytest.mark.parametrize("seed", range(3))
    def test_gives_the_very_numbers_of_one_that_was_not_interrupted(self, tmp_path, seed):
        """What is missing is attacked among the others of its chunk: another batch rounds
        otherwise."""
        net = nn.Sequential(linear(64, 32, seed), nn.ReLU(), linear(32, 10)).eval()
        images, labels = batch(net, 12, features=64)
        net = net.float()
        options = {"attacks": {"sign": Sign(steps=9)}, "folder": tmp_path, "chunk": 6}
        whole = evaluate(net, images, labels, EPS / 10, **options)
        file = tmp_path / "samples.jsonl"
        content = file.read_bytes()
        lines = content.splitlines(keepends=True)
        for done in range(12):
            file.write_bytes(b"".join(lines[:done]))
            assert evaluate(net, images, labels, EPS / 10, **options).samples == whole.samples
            assert file.read_bytes() == content

    @pytest.mark.parametrize(
        ("done", "left_alone"),
        [
            ([], []),
            ([0, 1, 2], []),
            ([1, 4, 5], [4, 5]),
            ([0, 1, 2, 3, 4], [0, 1, 2, 3]),
            ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
        ],
    )
    def test_only_attacks_chunks_of_which_a_part_is_missing(self, tmp_path, done, left_alone):
        net, images, labels = case(6, wrong=0)
        counting = Counting(net)
        options = {"attacks": {"sign": Sign(steps=200)}, "folder": tmp_path, "chunk": 4}
        evaluate(counting, images, labels, 1e-4, **options)
        file = tmp_path / "samples.jsonl"
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[i] for i in done))
        counting.passes.clear()
        report = evaluate(counting, images, labels, 1e-4, **options)
        assert len(report.samples) == 6
        points = torch.cat(counting.passes)
        near = ((points[:, None] - images).abs() <= 1.1e-4).all(2).sum(0)
        assert [i for i in range(6) if near[i] < 150] == left_alone
        written = file.read_bytes().splitlines(keepends=True)
        assert written == [
            *(lines[i] for i in done),
            *(x for x in lines if lines.index(x) not in done),
        ]

    def test_an_evaluation_that_fails_keeps_what_is_done(self, tmp_path):
        net, images, labels = case()
        whole = evaluate(net, images, labels, EPS, budget=60)
        broken = images.clone()
        broken[17] = torch.nan
        options = {"budget": 60, "chunk": 4, "folder": tmp_path}
        with pytest.raises(fw.InputError, match="NaN"):
            evaluate(net, Lazy(broken), labels, EPS, **options | {"folder": None})

        class Unplugged(Lazy):
            def __getitem__(self, part):
                if part.start == 12:
                    raise OSError("unplugged")
                return super().__getitem__(part)

        with pytest.raises(OSError, match="unplugged"):
            evaluate(net, Unplugged(images), labels, EPS, **options)
        assert (tmp_path / "samples.jsonl").read_bytes().count(b"\n") == 12
        again = evaluate(net, images, labels, EPS, **options)
        assert_same(again.samples, whole.samples)

    def test_after_being_killed(self, tmp_path):
        script = tmp_path / "run.py"
        script.write_text(
            f"import sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "from classifiers import Calls, batch, relu_network\n"
            "from facetwalk.robustness import evaluate\n"
            "net = relu_network()\n"
            "images, labels = batch(net, 20, features=4, wrong=3)\n"
            "slow = Calls(net, lambda net, x: time.sleep(0.01) or net(x))\n"
            f"evaluate(slow, images, labels, {EPS}, budget=60, chunk=2, folder=sys.argv[1])\n"
        )
        folder = tmp_path / "records"
        lines = folder / "samples.jsonl"
        process = subprocess.Popen([sys.executable, script, folder])
        try:
            deadline = time.monotonic() + 60
            while not lines.exists() or lines.read_bytes().count(b"\n") < 4:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
        finally:
            process.kill()
            process.wait()
        kept = lines.read_bytes()
        assert kept.count(b"\n") < 20
        net, images, labels = case()
        again = evaluate(net, images, labels, EPS, budget=60, folder=folder)
        assert lines.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
        whole = evaluate(net, images, labels, EPS, budget=60)
        assert_same(again.samples, whole.samples)
        assert again.robust_accuracy == whole.robust_accuracy
        assert again.broken == whole.broken
