import pickle
import warnings
from contextlib import suppress

import numpy as np
import pytest
from data_files import cifar_records, python_2_pickle, refused
from hypothesis import given
from hypothesis import strategies as st

from facetwalk.data.cifar_pickle import parse_pickle
from facetwalk.types import InputError

RECORDS = cifar_records(3)
CONTENT = python_2_pickle(RECORDS)


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_the_pickles_of_these_tests_are_what_pythons_own_reader_takes():
    with warnings.catch_warnings(action="ignore"):
        batch = pickle.loads(CONTENT, encoding="bytes")
    np.testing.assert_array_equal(batch[b"data"], RECORDS[:, 1:])
    assert batch[b"labels"] == RECORDS[:, 0].tolist()


def test_pixels_and_labels_are_what_was_written():
    pixels, labels = parse_pickle(CONTENT, "batch")
    np.testing.assert_array_equal(pixels, RECORDS[:, 1:])
    assert labels.tolist() == RECORDS[:, 0].tolist()


def test_an_array_in_fortran_order_is_turned_around():
    turned = CONTENT.replace(b"\x89T", b"\x88T").replace(
        RECORDS[:, 1:].tobytes(), RECORDS[:, 1:].T.tobytes()
    )
    np.testing.assert_array_equal(parse_pickle(turned, "batch")[0], RECORDS[:, 1:])


@given(st.integers(0, len(CONTENT) - 1))
def test_a_pickle_cut_anywhere_is_refused(length):
    refused(lambda: parse_pickle(CONTENT[:length], "batch"), "^batch cannot be read .*again$")


def test_short_pickles_are_refused_at_every_length():
    for length in range(200):
        refused(lambda n=length: parse_pickle(CONTENT[:n], "batch"), "^batch cannot be read")


def test_a_broken_number_takes_neither_memory_nor_time():
    numbered = b"\x80\x02}r" + (2**31).to_bytes(4, "little") + b"."
    refused(lambda: parse_pickle(numbered, "batch"), "it numbers something 2147483648, in 9 bytes")


@given(st.integers(0, 120), st.integers(0, 255))
def test_a_changed_byte_gives_arrays_or_a_sentence(position, byte):
    changed = CONTENT[:position] + bytes([byte]) + CONTENT[position + 1 :]
    with suppress(InputError):
        pixels, labels = parse_pickle(changed, "batch")
        assert pixels.shape == (len(labels), 3072)


def test_nothing_that_a_pickle_asks_for_is_run(tmp_path):
    harmful = pickle.dumps({"data": Touch(tmp_path / "touched")}, protocol=2)
    refused(lambda: parse_pickle(harmful, "batch"), r"open does not belong there\): delete")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (pickle.dumps([1, 2]), "TypeError"),
        (pickle.dumps({b"labels": [1]}), "KeyError"),
        (CONTENT.replace(b"U\x02u1", b"U\x02f4"), "not .N, 3072. in bytes"),
        (CONTENT.replace(b"J\x00\x0c\x00\x00", b"J\x00\x06\x00\x00"), r"shape \(3, 1536\)"),
        (CONTENT.replace(b"J\x03\x00\x00\x00", b"J\x04\x00\x00\x00"), "holds 4 images"),
        (python_2_pickle(RECORDS[:0]), "holds 0 images"),
    ],
)
def test_what_is_no_batch_is_refused(content, match):
    refused(lambda: parse_pickle(content, "batch"), f"batch cannot be read .*{match}")
