"""The documentation site: built, checked, and searched in a browser without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock.cli.program import COMMANDS
from scripts.site import checks

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, installed: Callable[[str], Path]) -> Path:
    """The built site. The build checks links, headings and assets itself."""
    installed("docs")
    place = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "scripts.site", str(place)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "api" / "interlock.html").read_text(encoding="utf-8")
    names = set(interlock.__all__) - {"__version__"}
    assert [name for name in sorted(names) if f">{name}<" not in text] == []


def test_every_command_is_in_the_reference(site: Path) -> None:
    pages = {page.stem for page in (site / "reference" / "commands").glob("*.html")}
    assert COMMANDS.keys() <= pages


def test_llms_txt_leads_to_the_sources(site: Path) -> None:
    """Each page is listed with its Markdown, which is there."""
    lines = (site / "llms.txt").read_text(encoding="utf-8").splitlines()
    paths = [line.partition("](")[2].partition(")")[0] for line in lines if line.startswith("- ")]
    assert "guide/server.md" in paths
    assert all((site / path).read_text(encoding="utf-8").startswith("# ") for path in paths)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_search_works_from_the_disk(site: Path, chromium: Any) -> None:
    """Without a network: nothing is requested from elsewhere, and a search finds its page."""
    context = await chromium.new_context(offline=True)
    page = await context.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    await page.goto((site / "index.html").as_uri())
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search").last.fill("dependencies")
    await page.locator("a[href*='guide/dependencies.html']").last.wait_for()
    assert [url for url in requested if not url.startswith(("file:", "data:", "blob:"))] == []
    await context.close()


def test_faults_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="gone.html">x</a> <a href="#gone">x</a> <a href="#here">x</a> <p id="here">'
        '<script src="https://cdn.example/x.js"></script><img src="gone.png">'
    )
    (tmp_path / "style.css").write_text('@import "https://fonts.example/x.css";')
    found = "\n".join(checks.problems(tmp_path))
    for words in ("gone.html", "#gone", "cdn.example", "gone.png", "fonts.example", "search"):
        assert words in found
    assert "#here" not in found
