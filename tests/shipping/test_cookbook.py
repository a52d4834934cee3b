"""The files on pages of the cookbook that no command of a page runs: manifests, Compose, nginx."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock import Client, Context, Server
from scripts import peers
from tests.docs.pages import blocks
from tests.ports import free_port
from tests.shipping.dockerfiles import problems

ROOT = Path(__file__).resolve().parents[2]
COOKBOOK = ROOT / "docs" / "cookbook"


def block(page: str, title: str) -> str:
    """The block of a page whose first line names the file."""
    text = (COOKBOOK / page).read_text(encoding="utf-8")
    (found,) = [one.text for one in blocks(text, page) if one.text.startswith(f"# {title}\n")]
    return found


def manifests() -> list[dict[str, Any]]:
    """The manifests for Kubernetes."""
    return list(yaml.safe_load_all(block("kubernetes.md", "tools.yaml")))


def test_pods_run_without_privileges() -> None:
    """As the baseline and the restricted standard of Kubernetes demand, with probes and limits."""
    (deployment,) = [one for one in manifests() if one["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"startupProbe", "livenessProbe", "readinessProbe", "resources"} <= container.keys()
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    text = (COOKBOOK / "kubernetes.md").read_text(encoding="utf-8")
    (grace,) = re.findall(r"grace=(\d+)", text)
    assert spec["terminationGracePeriodSeconds"] > pause + int(grace)


def test_the_parts_of_the_manifests_find_each_other() -> None:
    by_kind = {one["kind"]: one for one in manifests()}
    labels = by_kind["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert by_kind["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert by_kind["Service"]["spec"]["selector"] == labels
    assert by_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    (rule,) = by_kind["Ingress"]["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend["name"] == by_kind["Service"]["metadata"]["name"]
    assert backend["port"]["name"] in [one["name"] for one in by_kind["Service"]["spec"]["ports"]]


@pytest.mark.interop
def test_kubernetes_accepts_the_manifests(tmp_path: Path, installed: Callable[[str], Path]) -> None:
    """By the schemas of Kubernetes, strictly: no unknown field."""
    file = tmp_path / "tools.yaml"
    file.write_text(block("kubernetes.md", "tools.yaml"), encoding="utf-8")
    words = [str(installed("kubernetes-validate")), "-m", "kubernetes_validate", "--strict"]
    done = subprocess.run([*words, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_of_the_page_runs_without_privileges() -> None:
    services = yaml.safe_load(block("containers.md", "compose.yaml"))["services"]
    assert services["tools"]["read_only"] is True
    assert services["tools"]["cap_drop"] == ["ALL"]
    assert "ports" not in services["tools"]


@pytest.mark.interop
async def test_a_call_through_nginx(tmp_path: Path, installed: Callable[[str], Path]) -> None:
    """The configuration of the page, on free ports and without TLS: progress arrives while the call
    runs, and the server counts the client behind the proxy."""
    nginx = installed("nginx")
    server = Server("tools")

    @server.tool
    async def climb(ctx: Context) -> str:
        """Climb a stair."""
        ctx.progress(1, 2, "half way")
        await arrived.wait()
        assert ctx.request is not None
        return "up"

    arrived = asyncio.Event()
    async with server.serve_http(
        port=0, hosts=["tools.example.com"], proxies=["127.0.0.1"]
    ) as http:
        port = free_port()
        text = block("containers.md", "nginx.conf")
        text = re.sub(r"listen 443 ssl;", f"listen 127.0.0.1:{port};", text)
        text = re.sub(r".*(http2|ssl_certificate).*\n", "", text)
        text = text.replace("http://tools:8000", f"http://127.0.0.1:{http.port}")
        config = tmp_path / "nginx.conf"
        config.write_text(
            f"pid {tmp_path}/pid;\nerror_log {tmp_path}/error.log;\n"
            + text.replace("http {", f"http {{ access_log off; {temporary(tmp_path)}", 1)
        )
        words = [str(nginx), "-p", str(tmp_path), "-c", str(config)]
        checked = await asyncio.create_subprocess_exec(*words, "-t")
        assert await checked.wait() == 0
        proxy = await asyncio.create_subprocess_exec(*words, "-g", "daemon off;")
        try:
            await reachable(port)
            headers = {"Host": "tools.example.com"}
            url = f"http://127.0.0.1:{port}/mcp"
            async with Client(url, headers=headers) as client:
                result = await client.call_tool("climb", on_progress=lambda _: arrived.set())
                assert result.text == "up"
        finally:
            proxy.terminate()
            await proxy.wait()


def temporary(folder: Path) -> str:
    """Settings that keep the temporary files of nginx in a folder."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)


async def reachable(port: int) -> None:
    """Wait until somebody listens at a port."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0)
            continue
        writer.close()
        return


@pytest.mark.interop
@pytest.mark.parametrize("file", ["containers/Dockerfile", "new"])
def test_a_linter_of_dockerfiles_finds_nothing(
    file: str, tmp_path: Path, installed: Callable[[str], Path]
) -> None:
    """hadolint, beside the rules of our own."""
    path = ROOT / file
    if file == "new":
        words = ["-m", "interlock", "new", str(tmp_path / "tools"), "--http"]
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        path = tmp_path / "tools" / "Dockerfile"
    assert list(problems(path.read_text(encoding="utf-8"))) == []
    program = installed("hadolint").with_name("hadolint")
    done = subprocess.run(
        [str(program), str(path)], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.interop
@pytest.mark.slow
def test_uvx_runs_the_wheel(tmp_path: Path, installed: Callable[[str], Path]) -> None:
    """`uvx --from WHEEL interlock` in an empty folder, as a user would try it."""
    from scripts import dist  # late: the build backend is not needed by the other tests

    uv = installed("uv").with_name("uv")
    wheels = dist.build(tmp_path / "wheels")
    wheel = next(one for one in wheels if one.name.startswith("interlock-"))
    done = subprocess.run(
        [str(uv), "tool", "run", "--from", str(wheel), "interlock", "--version"],
        cwd=tmp_path,
        env={**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("interlock ")


def test_the_peers_of_these_tests_are_installed_by_name() -> None:
    assert {"hadolint", "kubernetes-validate", "nginx", "uv"} <= peers.INSTALLERS.keys()
