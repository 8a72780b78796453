"""All experiments in one folder, and a page that shows them beside what the paper says."""

from facetwalk.experiments.report.finished import Finished
from facetwalk.experiments.report.parts import PARTS, Asked, Part
from facetwalk.experiments.report.running import PAGE, describe_all, run_all

__all__ = ["PAGE", "PARTS", "Asked", "Finished", "Part", "describe_all", "run_all"]
