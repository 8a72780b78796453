"""Where a model's ReLUs are, what they do on an input, and how to run it with other gates."""

from facetwalk.sites.audit import audit
from facetwalk.sites.discovery import Site, Sites, SiteSelection, discover
from facetwalk.sites.patterns import Pattern, first_facet, pattern, pattern_of, tangents

__all__ = [
    "Pattern",
    "Site",
    "SiteSelection",
    "Sites",
    "audit",
    "discover",
    "first_facet",
    "pattern",
    "pattern_of",
    "tangents",
]
