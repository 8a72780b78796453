"""Tables in terminals of any width."""

import pytest

from facetwalk.cli.output import show_table
from facetwalk.training import RECIPES

COLUMNS = ("network", "under PGD", "gradients an image")
ROWS = (
    ("mnist-strided-0.3", "99.99%", "1,234,567"),
    ("two words", "0.001%", "12"),
)


@pytest.mark.parametrize("width", range(18, 81, 3))
def test_no_word_or_number_is_broken(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    show_table(COLUMNS, ROWS, total=("total", "", "3"), words=("network",))
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= width
    words = printed.split()
    for cell in (cell for row in ROWS for cell in row):
        assert all(word in words for word in cell.split())
    assert ("network: mnist-strided-0.3" in " ".join(words)) == (width < 39)


def test_a_row_in_a_narrow_terminal_is_a_list(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "14")
    show_table(("", "value"), [("wrong without attack", "1,234,567")], words=("",))
    assert capsys.readouterr().out == "\nwrong without\nattack\nvalue:\n1,234,567\n\n"


def test_a_search_in_a_narrow_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    printed = run("maximize", "random:3,8,4", "--box", -1, 1, "--evaluations", 7)
    assert "status: finished\n" in printed
    assert "gradients: 7\n" in printed


def test_recipes_in_a_narrow_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    words = run("train", "--list").split()
    assert all(name in words for name in RECIPES)
