"""Dockerfiles: ours and those of `interlock new` follow the rules, and what they start responds to
their health checks. Where a builder answers, the images are built too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from interlock.cli.new.command import new
from scripts import images
from tests.ports import free_port
from tests.shipping.dockerfiles import Stage, parse, problems, whole

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "containers" / "Dockerfile"

GOOD = """FROM python:3.13-slim
USER 10001:10001
HEALTHCHECK NONE
ENTRYPOINT ["tool"]
"""
FAULTS = {
    "no tag": (GOOD.replace(":3.13-slim", ""), "no tag"),
    "the newest": (GOOD.replace("3.13-slim", "latest"), "no tag"),
    "large": (GOOD.replace("-slim", ""), "not slim"),
    "root": (GOOD.replace("USER 10001:10001\n", ""), "as root"),
    "root by number": (GOOD.replace("10001:10001", "0:0"), "as root"),
    "user by name": (GOOD.replace("10001:10001", "nobody"), "without a number"),
    "no probe": (GOOD.replace("HEALTHCHECK NONE\n", ""), "no HEALTHCHECK"),
    "shell probe": (GOOD.replace("NONE", "CMD tool --check"), "needs a shell"),
    "unprobed port": (GOOD.replace("USER", "EXPOSE 80\nUSER"), "nothing probes"),
    "shell": (GOOD.replace('["tool"]', "tool"), "exec form"),
    "add": (GOOD.replace("USER", "ADD x /x\nUSER"), "use COPY"),
    "secret": (GOOD.replace("USER", "ENV API_KEY=1\nUSER"), "a secret"),
    "cache": (GOOD.replace("USER", "RUN pip install x\nUSER"), "its cache"),
    "fetch": (GOOD.replace("USER", "RUN curl -O x\nUSER"), "by hand"),
}


@pytest.mark.parametrize("text, alarm", FAULTS.values(), ids=FAULTS)
def test_each_fault_is_found(text: str, alarm: str) -> None:
    """One fault, one alarm; without a fault none."""
    assert list(problems(GOOD)) == []
    (found,) = problems(text)
    assert alarm in found


def test_our_images_follow_the_rules() -> None:
    text = OURS.read_text(encoding="utf-8")
    assert list(problems(text)) == []
    assert {stage.name for stage in parse(text)} - {"build"} == set(images.TARGETS)


@pytest.mark.parametrize("options", [[], ["--http"], ["--http", "--app", "--skill"]], ids=str)
def test_the_image_of_a_new_project_follows_the_rules(tmp_path: Path, options: list[str]) -> None:
    made = CliRunner().invoke(new, [str(tmp_path / "hello"), *options])
    assert made.exit_code == 0, made.output
    assert list(problems((tmp_path / "hello" / "Dockerfile").read_text(encoding="utf-8"))) == []


def test_compose_runs_them_without_privileges() -> None:
    """Read-only roots, no capabilities, and ports of the loopback address only."""
    compose = yaml.safe_load((ROOT / "containers" / "compose.yaml").read_text(encoding="utf-8"))
    for name, service in compose["services"].items():
        assert service["image"].removeprefix("interlock:") in images.TARGETS, name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name


@pytest.mark.parametrize("name", ["server", "issuer"])
def test_what_an_image_starts_is_healthy(name: str, tmp_path: Path) -> None:
    """Its entry point with its command runs as a process, with nothing but its data folder to write
    to, until its own health check succeeds."""
    stages = parse(OURS.read_text(encoding="utf-8"))
    (stage,) = [whole(stages, one) for one in stages if one.name == name]
    inside = command_of(stage, "EXPOSE")[0]
    port = str(free_port())
    started = [*command_of(stage, "ENTRYPOINT"), *command_of(stage, "CMD")]
    started = [
        word.replace("0.0.0.0", "127.0.0.1").replace(inside, port)
        for word in [*started, *(["--port", port] if name == "issuer" else [])]
    ]
    probe = [word.replace(inside, port) for word in command_of(stage, "HEALTHCHECK")]
    assert (started[0], probe[0]) == ("interlock", "python")
    data = tmp_path / "data"
    data.mkdir()
    env = {"HOME": str(data), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    python = [sys.executable]
    if name == "issuer":
        add = ["-m", "interlock", "auth", "account", "add", "admin"]
        password = "correct horse battery staple\n"
        subprocess.run([*python, *add], cwd=data, env=env, input=password, text=True, check=True)
    with subprocess.Popen(
        [*python, "-m", "interlock", *started[1:]],
        cwd=data,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            while subprocess.run([*python, *probe[1:]], env=env, capture_output=True).returncode:
                assert process.poll() is None, process.communicate()[0]
        finally:
            process.terminate()
            process.communicate(timeout=300)


def command_of(stage: Stage, name: str) -> list[str]:
    """The words of the last instruction of a name."""
    found = stage.last(name)
    assert found is not None, name
    return found.command() or found.words.split()


@pytest.mark.slow
@pytest.mark.interop
def test_the_images_are_built() -> None:
    """By the builder of this machine. The skip is loud: the summary of a run names it."""
    if images.builder() is None:
        pytest.skip("NO IMAGE WAS BUILT: no Docker engine, Podman or Buildah is on this machine")
    done = subprocess.run(["make", "images"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
