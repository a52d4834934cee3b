"""The installation of peers: they are built once for each lock, atomically, and a failure has a
message."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from scripts import peers


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """The builds, in the test's own folder."""
    monkeypatch.setattr(peers, "PEERS", tmp_path / "peers")
    return []


def make_in(made: list[Path], tmp_path: Path) -> Path:
    """Install a peer that consists of one file."""

    def make(place: Path) -> None:
        made.append(place)
        place.mkdir()
        (place / "it").write_text(f"number {len(made)}")

    return peers.once(tmp_path / "peers" / "one", [tmp_path / "lock"], make)


def test_a_peer_is_made_once_for_each_lock(made: list[Path], tmp_path: Path) -> None:
    """The same lock causes no build; another lock rebuilds the peer in the same place, without
    leftovers."""
    for lock, number in (("a", 1), ("a", 1), ("b", 2), ("b", 2)):
        (tmp_path / "lock").write_text(lock)
        assert (make_in(made, tmp_path) / "it").read_text() == f"number {number}"
    assert [path.name for path in (tmp_path / "peers").iterdir()] == ["one"]


def test_a_peer_whose_interpreter_has_gone_is_made_anew(made: list[Path], tmp_path: Path) -> None:
    """An environment needs the Python that created it; without that Python it is unusable."""
    (tmp_path / "lock").write_text("a")
    place = make_in(made, tmp_path)
    (place / "bin").mkdir()
    (place / "bin" / "python").symlink_to(tmp_path / "gone")
    assert (make_in(made, tmp_path) / "it").read_text() == "number 2"


def test_what_fails_leaves_nothing_behind(made: list[Path], tmp_path: Path) -> None:
    """An incomplete peer is never in its place, and the message says what failed."""
    (tmp_path / "lock").write_text("a")

    def fail(place: Path) -> None:
        place.mkdir()
        peers.run([sys.executable, "-c", "import sys; sys.exit('no such luck')"])

    with pytest.raises(peers.NotInstalled, match="no such luck"):
        peers.once(tmp_path / "peers" / "one", [tmp_path / "lock"], fail)
    assert list((tmp_path / "peers").iterdir()) == []


def test_a_second_maker_takes_what_the_first_has_made(made: list[Path], tmp_path: Path) -> None:
    """With two concurrent installers, the second one waits, builds nothing, and does not replace a
    peer that may be in use."""
    (tmp_path / "lock").write_text("a")
    second = threading.Thread(target=make_in, args=(made, tmp_path))

    def make(place: Path) -> None:
        second.start()
        second.join(0.2)  # enough time for a build, if it did not wait
        place.mkdir()
        (place / "it").write_text("the first's")

    place = peers.once(tmp_path / "peers" / "one", [tmp_path / "lock"], make)
    second.join()
    assert (place / "it").read_text() == "the first's"
    assert made == []
    assert [path.name for path in (tmp_path / "peers").iterdir()] == ["one"]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, made: list[Path], tmp_path: Path) -> Path:
    """A machine whose only programs are in the returned folder, and whose apt-get installs only
    `browser-shell`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    place_program(
        programs / "apt-get",
        f"""case $* in
*install*browser-shell)
  echo >> {tmp_path}/done
  echo > {programs}/browser-shell
  /bin/chmod +x {programs}/browser-shell;;
*update) ;;
*) exit 1;;
esac""",
    )
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(peers.os, "geteuid", lambda: 0)
    (tmp_path / "peers").mkdir()
    return programs


def place_program(place: Path, script: str = "") -> Path:
    """Install a program."""
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return place


def test_a_program_of_the_machine_is_taken_as_it_is(machine: Path, tmp_path: Path) -> None:
    """Any of its names matches, the first before the second, and nothing is installed."""
    second = place_program(machine / "second")
    assert peers.install_debian("nothing", "first", "second", "third") == second
    assert not (tmp_path / "done").exists()


def test_a_program_that_debian_has_is_installed_once(machine: Path, tmp_path: Path) -> None:
    """It is installed even if a substitute exists: the substitute is only for a failed
    installation."""
    place_program(machine / "browser")
    for _ in range(2):
        assert (
            peers.install_debian("browser-shell", "browser-shell", instead=("browser",))
            == machine / "browser-shell"
        )
    assert (tmp_path / "done").read_text() == "\n"


def test_a_program_that_cannot_be_installed(machine: Path) -> None:
    """A substitute on the machine is used if there is one; otherwise the message says what
    failed."""
    with pytest.raises(peers.NotInstalled, match="apt-get -qq install"):
        peers.install_debian("no-browser", "no-browser", instead=("browser",))
    place_program(machine / "browser")
    assert (
        peers.install_debian("no-browser", "no-browser", instead=("browser",))
        == machine / "browser"
    )


def test_a_program_for_whoever_may_not_install(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only root installs; other users get a message that says what to install."""
    monkeypatch.setattr(peers.os, "geteuid", lambda: 1000)
    with pytest.raises(peers.NotInstalled, match="apt-get install browser-shell"):
        peers.install_debian("browser-shell", "browser-shell")


def test_a_peer_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    """The error lists the existing peers."""
    assert peers.main(["nonsense"]) == 2
    assert ", ".join(peers.INSTALLERS) in capsys.readouterr().err
