import sys
from importlib.util import find_spec

import pytest

from facetwalk.types import ModelError
from facetwalk.zoo.torchvision_stub import torchvision_or_stub


def torchvision_modules() -> dict[str, object]:
    return {name: m for name, m in sys.modules.items() if name.split(".")[0] == "torchvision"}


@pytest.fixture
def write_torchvision(tmp_path, monkeypatch):
    """Writes a package of that name which is found before any installed one."""
    for name in torchvision_modules():
        monkeypatch.delitem(sys.modules, name)

    def write(main: str, ops: str = "") -> None:
        package = tmp_path / "torchvision"
        package.mkdir()
        (package / "__init__.py").write_text(main)
        (package / "ops.py").write_text(ops)
        (package / "fragment.py").touch()
        monkeypatch.syspath_prepend(tmp_path)

    yield write
    for name in torchvision_modules():
        del sys.modules[name]


def use_stub() -> None:
    import torchvision
    from torchvision.ops import roi_align

    assert find_spec("torchvision") is torchvision.__spec__
    for operator in (roi_align, torchvision.ops.nms, torchvision.ops.box_convert):
        with pytest.raises(ModelError, match="needs torchvision"):
            operator(None, iou_threshold=0.5)


def test_a_torchvision_that_fails_half_way_leaves_nothing(write_torchvision):
    write_torchvision("import torchvision.fragment\nraise RuntimeError('built for another torch')")
    with torchvision_or_stub():
        use_stub()
    assert torchvision_modules() == {}


def test_a_missing_torchvision_stays_missing(monkeypatch):
    for name in torchvision_modules():
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with torchvision_or_stub():
        use_stub()
    assert torchvision_modules() == {"torchvision": None}


def test_the_stub_goes_when_the_body_fails(write_torchvision):
    write_torchvision("raise RuntimeError")
    with pytest.raises(ZeroDivisionError), torchvision_or_stub():
        _ = 1 / 0
    assert torchvision_modules() == {}


def test_a_working_torchvision_is_used_and_stays(write_torchvision):
    write_torchvision("", ops="roi_align = 'the real one'")
    with torchvision_or_stub():
        from torchvision.ops import roi_align
    assert roi_align == "the real one"
    assert set(torchvision_modules()) == {"torchvision", "torchvision.ops"}
