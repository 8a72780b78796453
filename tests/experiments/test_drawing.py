from facetwalk.experiments.drawing import blank_figure, save_figure


def figure():
    found = blank_figure(2, 1)
    found.subplots().set_title("a title")
    return found


def test_the_same_figure_makes_the_same_pdf(tmp_path):
    for name in ("one.pdf", "two.pdf"):
        save_figure(figure(), tmp_path / name)
    content = (tmp_path / "one.pdf").read_bytes()
    assert content == (tmp_path / "two.pdf").read_bytes()
    assert b"/Type0" in content  # fonts whole, as type 42, and not as drawings
    assert b"/Type3" not in content


def test_saving_changes_no_settings(tmp_path):
    from matplotlib import rcParams

    before = rcParams["pdf.fonttype"]
    save_figure(figure(), tmp_path / "one.pdf")
    assert rcParams["pdf.fonttype"] == before != 42
