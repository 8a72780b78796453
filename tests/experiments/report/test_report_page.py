from html.parser import HTMLParser

from facetwalk.experiments.experiment import Experiment
from facetwalk.experiments.report.finished import Finished
from facetwalk.experiments.report.page import page
from facetwalk.experiments.reproducing import Outcome
from facetwalk.experiments.tables import Table

EMPTY = {"link", "meta", "source", "img"}


class Reader(HTMLParser):
    """Refuses tags that do not match, and remembers cells, links and what is read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.linked: list[str] = []
        self.rows: list[list[tuple[str, str]]] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.linked += [given[name] for name in ("href", "src") if name in given]
        if tag not in EMPTY:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append((given.get("class") or "", ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            kind, before = self.rows[-1][-1]
            self.rows[-1][-1] = kind, before + data


TABLE = Table(
    "Values <best>",
    ["method", "value", "paper", "PGD in the paper"],
    [["a_b & c", "1.0 ± 0.1", "2.0", "3"]],
    words=["method"],
)


def experiment(name: str) -> Experiment:
    nothing = lambda records: []  # noqa: E731
    return Experiment(name, f"About {name}", ["It is < `x & y`."], nothing, nothing, nothing)


def finished(name: str, sentences: int = 1) -> Finished:
    outcome = Outcome(
        [{}, {}],
        [TABLE],
        [f"Sentence {number}." for number in range(sentences)],
        ["Left: <this>."],
        [f"facetwalk reproduce {name} --out 'my run'"],
        ["table.md", "figure.png", "figure.pdf"],
    )
    return Finished(experiment(name), outcome)


def test_tables_stand_on_the_page_with_the_papers_columns_marked():
    assert Reader(page([finished("one")], [])).rows == [
        [("word", "method"), ("", "value"), ("paper", "paper"), ("paper", "PGD in the paper")],
        [("word", "a_b & c"), ("", "1.0 ± 0.1"), ("paper", "2.0"), ("paper", "3")],
    ]


def test_everything_that_an_experiment_says_is_there():
    read = Reader(page([finished("one", 2)], ["facetwalk reproduce all --out r"])).text
    for words in (
        "About one",
        "It is < x & y.",
        "Values <best>",
        "Sentence 0.",
        "Sentence 1.",
        "Left: <this>.",
        "facetwalk reproduce one --out 'my run'",
        "facetwalk reproduce all --out r",
        "2 records",
    ):
        assert words in read
    assert "quick" not in read


def test_the_page_needs_nothing_but_files_beside_it():
    text = page([finished("one"), finished("two")], [])
    assert "<script" not in text
    assert "//" not in text
    assert "url(" not in text
    linked = Reader(text).linked
    assert {"#one", "#two", "one/figure.png", "two/figure.pdf", "two/table.md"} <= set(linked)
    assert all(link.startswith(("#", "one/", "two/")) for link in linked)


def test_what_failed_or_was_left_out_is_named():
    text = page(
        [
            Finished(experiment("one"), failed="the <file> is missing"),
            Finished(experiment("two"), left_out="it needs more: pip install 'x[y]'"),
            Finished(experiment("three")),
        ],
        ["facetwalk reproduce all --quick --out r"],
    )
    read = Reader(text).text
    assert "This experiment failed: the <file> is missing." in read
    assert "Left out: it needs more: pip install 'x[y]'." in read
    assert "Left out: it has no records here." in read
    assert "These are the quick forms" in read
    assert text.count("<figure>") == 0


def test_many_sentences_stand_in_two_columns():
    assert '<ul class="many">' in page([finished("one", 9)], [])
    assert '<ul class="many">' not in page([finished("one", 8)], [])
