"""The static files of a page: which addresses it names, and which of them may be cached."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request

from interlock_apps.web.page_files import FOREVER, PageFiles

PAGE = """<!doctype html><html><head><link rel="stylesheet" href="kit/kit.css">
<script type="module" src="static/main.js"></script></head><body></body></html>"""
FILES = {
    "static/index.html": PAGE,
    "static/main.js": 'import "./first.js";\nimport {\n  one,\n  two,\n} from "../kit/kit.js";\n',
    "static/first.js": '// import "./comment.js"\nexport { x } from "../kit/deep/er.js";\n',
    "static/alone.js": "export const x = 1;\n",
    "kit/kit.js": 'import { er } from "./deep/er.js";\nconst late = () => import("./late.js");\n',
    "kit/deep/er.js": 'export const text = \'from "./nothing.js"\';\nimport "../kit.js";\n',
    "kit/late.js": "",
    "kit/kit.css": "",
}


def made(folder: Path, files: dict[str, str]) -> PageFiles:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return PageFiles({name: folder / name for name in ("static", "kit")})


def test_a_page_names_every_module_that_it_imports(tmp_path: Path) -> None:
    """Not those that it imports late or not at all; every address has the version."""
    files = made(tmp_path, FILES)
    page = files.page("static/index.html")
    named = [part.partition('"')[0] for part in page.split('modulepreload" href="')[1:]]
    assert sorted(named) == [
        f"{files.version}/{name}" for name in ("kit/deep/er.js", "kit/kit.js", "static/first.js")
    ]
    assert f'<link rel="stylesheet" href="{files.version}/kit/kit.css">' in page
    assert f'<script type="module" src="{files.version}/static/main.js"></script>' in page


def test_other_files_have_another_version(tmp_path: Path) -> None:
    """So that a browser never shows files of another version of the program."""
    before = made(tmp_path / "before", FILES)
    after = made(tmp_path / "after", {**FILES, "kit/late.js": "1;"})
    assert before.version != after.version
    assert before.version == made(tmp_path / "again", FILES).version


@pytest.mark.parametrize(
    "address, status, caching",
    [
        ("/static/main.js", 200, None),
        ("/VERSION/static/main.js", 200, FOREVER),
        ("/VERSION/kit/deep/er.js", 200, FOREVER),
        ("/v-0123456789abcdef/static/main.js", 404, None),
        ("/VERSION/VERSION/static/main.js", 404, None),
        ("/VERSION/static/../kit/kit.js", 404, None),
        ("/static/", 404, None),
    ],
)
async def test_only_addresses_with_the_version_may_be_cached(
    tmp_path: Path, address: str, status: int, caching: str | None
) -> None:
    files = made(tmp_path, FILES)
    path = address.replace("VERSION", files.version)
    answer = await files.answer(Request({"type": "http", "method": "GET", "path": path}))
    assert answer.status_code == status
    assert answer.headers.get("cache-control") == caching
    if status == 200:
        assert answer.headers["content-type"].startswith("text/javascript")
