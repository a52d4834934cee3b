"""How peers are put in place: made once for each lock, whole or not at all, and with words where it fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import peers


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """What was made, in a folder of the test's own."""
    monkeypatch.setattr(peers, "PEERS", tmp_path / "peers")
    return []


def make_in(made: list[Path], tmp_path: Path) -> Path:
    """Ask for a peer that is one file."""

    def make(place: Path) -> None:
        made.append(place)
        place.mkdir()
        (place / "it").write_text(f"number {len(made)}")

    return peers.once(tmp_path / "peers" / "one", [tmp_path / "lock"], make)


def test_a_peer_is_made_once_for_each_lock(made: list[Path], tmp_path: Path) -> None:
    """The same lock makes nothing; another one makes it anew in the same place, and nothing of the making is left behind."""
    for lock, number in (("a", 1), ("a", 1), ("b", 2), ("b", 2)):
        (tmp_path / "lock").write_text(lock)
        assert (make_in(made, tmp_path) / "it").read_text() == f"number {number}"
    assert [path.name for path in (tmp_path / "peers").iterdir()] == ["one"]


def test_a_peer_whose_interpreter_has_gone_is_made_anew(made: list[Path], tmp_path: Path) -> None:
    """An environment leans on the Python that made it; without that it is no use."""
    (tmp_path / "lock").write_text("a")
    place = make_in(made, tmp_path)
    (place / "bin").mkdir()
    (place / "bin" / "python").symlink_to(tmp_path / "gone")
    assert (make_in(made, tmp_path) / "it").read_text() == "number 2"


def test_what_fails_leaves_nothing_behind(made: list[Path], tmp_path: Path) -> None:
    """A half-made peer never stands in its place, and the words say what went wrong."""
    (tmp_path / "lock").write_text("a")

    def fail(place: Path) -> None:
        place.mkdir()
        peers.run([sys.executable, "-c", "import sys; sys.exit('no such luck')"])

    with pytest.raises(peers.NotInstalled, match="no such luck"):
        peers.once(tmp_path / "peers" / "one", [tmp_path / "lock"], fail)
    assert list((tmp_path / "peers").iterdir()) == []


def test_a_second_maker_takes_what_the_first_has_made(made: list[Path], tmp_path: Path) -> None:
    """Two at once: whoever comes second leaves in place what may be in use already."""
    (tmp_path / "lock").write_text("a")

    def make(place: Path) -> None:
        make_in(made, tmp_path)  # the first, who is quicker
        place.mkdir()

    place = peers.once(tmp_path / "peers" / "one", [tmp_path / "lock"], make)
    assert (place / "it").exists()
    assert [path.name for path in (tmp_path / "peers").iterdir()] == ["one"]


def test_a_peer_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    """The program names those that there are."""
    assert peers.main(["nonsense"]) == 2
    assert "python-2, python-1, fastmcp, typescript" in capsys.readouterr().err
