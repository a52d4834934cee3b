"""Configuration texts as people and programs write them, made at random with their meaning
known.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from hypothesis import strategies as st

MARK = "§"  # in every comment and nowhere else, so that a test can take comments out by itself

words = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=MARK), max_size=8)
keys = st.one_of(
    st.sampled_from(
        ["a", "theme", "mcpServers", "notes", "weather", 'q"uote', "back\\slash", "ü ö", ""]
    ),
    words,
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    words,
    st.sampled_from(["// no comment", "/* none */", "{,}", "],"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)
servers = st.dictionaries(
    st.sampled_from(["notes", "files", "x y", "time"]),
    st.dictionaries(keys, values, max_size=2),
    max_size=3,
)
documents = st.one_of(
    st.dictionaries(keys, values, max_size=4).map(
        lambda data: {k: v for k, v in data.items() if k != "mcpServers"}
    ),
    st.tuples(st.dictionaries(keys, values, max_size=3), servers).map(
        lambda both: {**both[0], "mcpServers": both[1]}
    ),
)


def is_kept(before: str, after: str) -> bool:
    """Whether every character of one text is in the other, in the same order."""
    rest = iter(after)
    return all(letter in rest for letter in before)


@st.composite
def json_texts(draw: st.DrawFn, comments: bool) -> tuple[Any, str]:
    """Data, and a text that says it in some manner: spaced out, crowded, with comments anywhere."""
    data = draw(documents)
    chance = random.Random(
        draw(st.integers(0, 2**32))
    )  # a draw for every blank would take most of the time
    newline = chance.choice(["\n", "\r\n"])
    unit = chance.choice(["  ", "    ", "\t", ""])
    crowded = chance.random() < 0.5
    remarks = (
        ["", "", "", f"/*{MARK}*/", f' /* {MARK} {{,]" */ ', f' //{MARK} "{newline}']
        if comments
        else [""]
    )

    def gap() -> str:
        return chance.choice(remarks) + chance.choice(["", "", " ", newline])

    def write(value: Any, depth: int) -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=chance.random() < 0.5)
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        inline = crowded or chance.random() < 0.5
        inner = "" if inline else newline + unit * (depth + 1)
        parts = []
        for item in value.items() if isinstance(value, dict) else value:
            head = f"{json.dumps(item[0])}{gap()}:{gap()}" if isinstance(value, dict) else ""
            parts.append(
                inner
                + head
                + write(item[1] if isinstance(value, dict) else item, depth + 1)
                + gap()
            )
        end = gap() + ("" if inline else newline + unit * depth)
        trailing = "," if comments and parts and chance.random() < 0.3 else ""
        return opening + gap() + ",".join(parts) + trailing + end + closing

    return data, gap() + write(data, 0) + gap()


def without_comments(text: str) -> str:
    """The same as plain JSON, by means of the mark."""
    text = re.sub(rf"/\*[^*]*{MARK}[^*]*\*/|//{MARK}[^\n]*", "", text)
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(p if n % 2 else re.sub(r",(\s*[}\]])", r"\1", p) for n, p in enumerate(pieces))


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """A TOML text with tables of many kinds before, between and after the servers."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    blocks = [
        'model = "o5"  # the [best] one',
        'notes = """\n[mcp_servers.fake]\ncommand = \\"x\\"\n"""',
        "path = '''\n[mcp_servers.fake]\n'''",
        'list = [\n  "a", # ]\n  "[b]",\n  [1, 2],\n]',
        'inline = { a = "}", b = [1, 2] }',
        '[profiles.fast]\nmodel = "small" # [x]',
        "[[hooks]]\nname = 'one'",
        '[[hooks]]\nname = "two"\n\n  # indented\n  [hooks.inner]\n  a = 1',
        "[mcp_servers.notes]\ncommand = \"notes\"\nargs = [\n  '[mcp_servers.weather]',\n]",
        '[mcp_servers.notes.env]\nKEY = "a#b"',
        '[ mcp_servers . "x y" ] # odd\ncommand = "x"',
        "# a comment\n\n# another",
        "",
    ]
    heads = blocks[:5]
    tables = blocks[5:]
    chosen = [b for b in heads if draw(st.booleans())] + draw(
        st.permutations([b for b in tables if draw(st.booleans())])
    )
    if "[mcp_servers.notes.env]" in "".join(chosen) and "[mcp_servers.notes]" not in "".join(
        chosen
    ):
        chosen = [b for b in chosen if not b.startswith("[mcp_servers.notes.env]")]
    text = draw(st.sampled_from(["\n", "\n\n", "\n# c\n"])).join(chosen)
    return (text + draw(st.sampled_from(["", "\n", "\n\n"]))).replace("\n", newline)


@st.composite
def yaml_texts(draw: st.DrawFn) -> str:
    """A YAML text in block style, with what makes line counting hard: block scalars, long quotes,
    flow over lines, lists.
    """
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    step = draw(st.sampled_from(["  ", "    "]))
    tops = [
        'GOOSE_PROVIDER: "anthropic"  # which one',
        "GOOSE_MODEL: some-model",
        "paths:\n- /usr/bin\n- ~/bin",
        "paths2:\n  - a: 1\n    b: |\n      extensions:\n        fake:\n  - c",
        "text: |\n  extensions:\n    fake: 1\n\n  # no comment\n",
        "folded: >-\n   extensions:\n   more",
        'quoted: "a long\n  extensions: line\n  \\" end"',
        "single: 'it''s\n  extensions:\n  end'",
        "flow: {a: [1, 2], 'extensions':\n  {b: \"}\"}}",
        "closing: [\n  1,\n  2,\n]",
        "'quoted key': yes",
        "# a comment",
        "",
    ]
    entries = [
        "{s}developer:\n{s}{s}bundled: true\n{s}{s}enabled: true\n{s}{s}type: builtin",
        "{s}memory:\n{s}{s}type: builtin\n\n{s}# about memory\n{s}{s}timeout: 300",
        "{s}\"odd name\":\n{s}{s}args:\n{s}{s}- run\n{s}{s}- 'x'\n{s}{s}description: "
        "|-\n{s}{s}{s}weather:\n{s}{s}{s}  two",
        "{s}remote: {{type: sse, uri: 'http://x/#y'}}",
    ]
    chosen = [top for top in tops if draw(st.booleans())]
    head = draw(
        st.sampled_from(
            [
                "extensions:",
                "extensions:  # all of them",
                "extensions: {}",
                "extensions: {} # none",
                "extensions: ~",
                None,
            ]
        )
    )
    if head is not None:
        inside = (
            [e.format(s=step) for e in entries if draw(st.booleans())]
            if "{" not in head and "~" not in head
            else []
        )
        chosen.insert(draw(st.integers(0, len(chosen))), "\n".join([head, *inside]))
    start = draw(st.sampled_from(["", "", "---\n", "# first\n"]))
    return (start + "\n".join(chosen) + draw(st.sampled_from(["", "\n", "\n\n"]))).replace(
        "\n", newline
    )
