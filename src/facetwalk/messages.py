"""Puts the errors of other libraries into one sentence of ours."""

from __future__ import annotations


def reason(error: BaseException) -> str:
    """The kind of `error` and the first line of its message.

    >>> reason(KeyError("weight"))
    "KeyError: 'weight'"
    """
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
