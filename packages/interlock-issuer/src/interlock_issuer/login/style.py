"""The style sheet of the pages, and the Content-Security-Policy that allows it."""

from __future__ import annotations

import base64
import hashlib

CSS = """
:root {
  color-scheme: light dark;
  --paper: #f4f5f3;
  --card: #ffffff;
  --ink: #1c2321;
  --quiet: #5a6561;
  --line: #d9dedb;
  --field: #8b9691;
  --accent: #0d6b58;
  --on-accent: #ffffff;
  --accent-strong: #0a5446;
  --care: #fdf3dc;
  --care-line: #d9a520;
  --wrong: #fbe9e6;
  --bad: #a3261b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #131715;
    --card: #1c2220;
    --ink: #e8edea;
    --quiet: #a3afaa;
    --line: #343d39;
    --field: #6d7974;
    --accent: #55c7a9;
    --on-accent: #06241c;
    --accent-strong: #7ad9c0;
    --care: #332a12;
    --care-line: #c9992a;
    --wrong: #3a1d19;
    --bad: #ff9d8f;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0;
  min-height: 100vh;
  padding: 3rem 1rem;
  display: flex;
  flex-direction: column;
  align-items: center;
  background: var(--paper);
  color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
}
main {
  width: 100%;
  max-width: 28rem;
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 12px;
  padding: 2rem;
}
header, footer {
  width: 100%;
  max-width: 28rem;
  color: var(--quiet);
  font-size: .875rem;
  padding: 0 .25rem;
}
header:empty { display: none; }
header { margin-bottom: .75rem; }
footer { margin-top: .75rem; }
h1 {
  font-size: 1.375rem;
  line-height: 1.3;
  font-weight: 650;
  margin: 0 0 .5rem;
  overflow-wrap: anywhere;
}
h2 { font-size: .875rem; font-weight: 600; color: var(--quiet); margin: 1.5rem 0 .25rem; }
p { margin: 0 0 .75rem; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); }
ul { margin: 0; padding: 0; list-style: none; }
li { padding: .5rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
li:first-child { border-top: 0; }
li code { display: block; color: var(--quiet); font-size: .8125rem; }
code {
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace;
  font-size: .875rem;
  overflow-wrap: anywhere;
}
code b { color: var(--ink); }
.code { font-size: 1.5rem; letter-spacing: .08em; display: block; margin: .25rem 0 1rem; }
.care, .bad {
  border-left: 4px solid var(--care-line);
  background: var(--care);
  border-radius: 6px;
  padding: .75rem 1rem;
  margin: 1rem 0;
}
.bad { border-left-color: var(--bad); background: var(--wrong); }
main > :last-child { margin-bottom: 0; }
.bad p, .care p { margin: 0; }
.care p + p { margin-top: .5rem; }
.row { display: flex; flex-wrap: wrap; gap: 0 .75rem; }
label { display: block; font-weight: 600; font-size: .9375rem; margin: 1rem 0 .25rem; }
label.tick {
  font-weight: 400;
  display: flex;
  gap: .5rem;
  align-items: baseline;
  margin: 1.25rem 0 0;
}
input:not([type=checkbox]) {
  width: 100%;
  font: inherit;
  padding: .625rem .75rem;
  border: 1px solid var(--field);
  border-radius: 8px;
  background: var(--card);
  color: inherit;
}
input[type=checkbox] { accent-color: var(--accent); width: 1rem; height: 1rem; }
input.code {
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace;
  text-transform: uppercase;
}
.buttons { display: flex; gap: .75rem; margin-top: 1.5rem; }
button, a.button {
  flex: 1;
  font: inherit;
  font-weight: 600;
  text-align: center;
  text-decoration: none;
  padding: .625rem 1rem;
  border-radius: 8px;
  border: 1px solid var(--field);
  background: transparent;
  color: inherit;
  cursor: pointer;
  min-height: 2.75rem;
}
button:hover { border-color: var(--ink); }
button.yes, a.button {
  background: var(--accent);
  border-color: var(--accent);
  color: var(--on-accent);
}
button.yes:hover, a.button:hover {
  background: var(--accent-strong);
  border-color: var(--accent-strong);
}
button.plain {
  flex: none;
  border: 0;
  padding: 0;
  min-height: 0;
  font-weight: 400;
  font-size: inherit;
  color: var(--accent);
  text-decoration: underline;
}
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media (max-width: 30rem) {
  body { padding: 1rem .75rem; }
  main { padding: 1.25rem; border-radius: 10px; }
  .buttons { flex-direction: column-reverse; }
}
"""

_DIGEST = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()

# No script, no picture, no font, no frame: only this style sheet, and forms that go to where they
# came from.
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
