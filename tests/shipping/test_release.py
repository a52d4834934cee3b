"""Releases: the workflow calls what exists and publishes without a password, and the same sources
give the same archives."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import dist

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = ROOT / ".github" / "workflows" / "release.yml"
MAKE = re.compile(r"make ((?:[a-z-]+ ?)+)")


def jobs(file: Path) -> dict[str, Any]:
    """The jobs of a workflow."""
    found = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_steps_call_targets_that_exist(file: Path) -> None:
    """Each step runs targets of the Makefile, or uses an action in a named version."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for name, job in jobs(file).items():
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w.-]+/[\w.-]+@[\w./-]+", step["uses"]), step
                continue
            found = MAKE.match(step["run"])
            assert found is not None, f"{name}: {step['run']}"
            assert set(found[1].split()) <= targets, f"{name}: {step['run']}"


def test_only_one_job_may_publish() -> None:
    """It holds the identity token and nothing else, runs no code of the repository, and waits for
    the tests."""
    workflow = yaml.safe_load(RELEASE.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads `on` as true
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "release"
    assert publish["needs"] == "build"
    assert workflow["jobs"]["build"]["needs"] == "test"
    assert all("uses" in step for step in publish["steps"])
    others = [job for name, job in workflow["jobs"].items() if name != "publish"]
    assert all("permissions" not in job for job in others)
    text = RELEASE.read_text(encoding="utf-8")
    assert "secrets." not in text
    assert re.search(r"^\s*password:", text, re.MULTILINE) is None


def test_a_tag_with_another_version_stops_a_release() -> None:
    dist.check_tag(f"v{dist.version('interlock')}")
    with pytest.raises(SystemExit, match="interlock-issuer is"):
        dist.check_tag("v999.0.0")


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    """Two builds, in processes with another umask, time zone and hash seed."""
    digests = []
    for name, umask, zone in (("one", "022", "UTC"), ("two", "077", "Asia/Tokyo")):
        folder = tmp_path / name
        env = {name: text for name, text in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
        shell = ["sh", "-c", f'umask {umask} && exec "$@"', "-"]
        subprocess.run(
            [*shell, sys.executable, "scripts/dist.py", str(folder)],
            cwd=ROOT,
            env={**env, "TZ": zone, "PYTHONHASHSEED": str(len(digests))},
            check=True,
            capture_output=True,
        )
        digests.append(
            {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
        )
    assert digests[0] == digests[1]
    assert len(digests[0]) == 2 * len(dist.DISTRIBUTIONS)


def test_a_source_archive_holds_the_package_alone(tmp_path: Path) -> None:
    """No tests and no caches: what the wheel is built from."""
    for archive in dist.build_sources(tmp_path):
        with tarfile.open(archive) as opened:
            names = opened.getnames()
        assert any(name.endswith("/pyproject.toml") for name in names)
        assert [name for name in names if "__pycache__" in name or "/tests/" in name] == []
