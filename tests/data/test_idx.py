import struct
from contextlib import suppress

import numpy as np
import pytest
from data_files import idx, random_bytes, refused
from hypothesis import given
from hypothesis import strategies as st

from facetwalk.data.idx import parse_idx
from facetwalk.types import InputError

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@given(shapes)
def test_arrays_of_any_shape_are_what_was_written(shape):
    values = random_bytes(*shape)
    np.testing.assert_array_equal(parse_idx(idx(values), len(shape), "file"), values)


@given(shapes)
def test_a_file_cut_anywhere_is_refused(shape):
    content = idx(random_bytes(*shape))
    for length in range(len(content)):
        refused(lambda n=length: parse_idx(content[:n], len(shape), "file"), "^file .*again$")


@given(shapes, st.binary(min_size=1))
def test_a_file_with_something_behind_it_is_refused(shape, more):
    content = idx(random_bytes(*shape)) + more
    refused(lambda: parse_idx(content, len(shape), "file"), f"has {len(content)} bytes, but")


@given(st.binary(max_size=40), st.integers(1, 4))
def test_anything_else_gives_an_array_or_a_sentence(content, dimensions):
    with suppress(InputError):
        assert parse_idx(content, dimensions, "file").ndim == dimensions


@pytest.mark.parametrize("position", range(4))
def test_a_wrong_magic_number_is_refused(position):
    content = bytearray(idx(random_bytes(2, 3, 3)))
    content[position] ^= 1
    refused(
        lambda: parse_idx(bytes(content), 3, "file"),
        f"starts with {content[:4].hex()}, not with 00000803",
    )


def test_no_values_and_far_too_many_are_refused():
    for sizes in ((0, 28, 28), (2**32 - 1,) * 3):
        content = struct.pack(">BBBB3I", 0, 0, 8, 3, *sizes)
        refused(lambda content=content: parse_idx(content, 3, "file"), "header announces")
