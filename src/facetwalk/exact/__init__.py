"""Proven bounds and optima of small ReLU networks."""

from facetwalk.exact.certificate import Certificate, local_certificate
from facetwalk.exact.proof import Proof
from facetwalk.exact.proving import maximize

__all__ = ["Certificate", "Proof", "local_certificate", "maximize"]
