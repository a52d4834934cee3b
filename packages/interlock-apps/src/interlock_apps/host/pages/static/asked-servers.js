// @ts-check
// Questions about servers: may one be started, may a changed feature be used, and may a skill be
// loaded.
import { Choice, Icon, Say, Warnings, cls, html, useMemo, useState, visible } from "../kit/kit.js";
import { Ask } from "./ask.js";
import { isSkill } from "./store.js";

/** May this server be started? The whole command is shown. */
export function StartQuestion({ question }) {
  return html`
    <${Ask}
      question=${question}
      title=${html`
        Start <${Say} text=${question.server} />?
      `}
      icon="server"
      denial=${{ label: "Do not start it" }}
      answers=${[
        {
          key: "a",
          label: question.runsCode === false ? "Connect" : "Start it",
          main: true,
          act: (send) => send({ type: "decision", allow: true }),
        },
      ]}
    >
      <${StartFacts} question=${question} />
    </${Ask}>
  `;
}

/** How a server would be started or reached. @param {any} question */
function startWords(question) {
  if (question.runsCode === false) return "The host would connect to this address:";
  return question.confinement
    ? "This command would run on your machine, in a sandbox:"
    : "This command would run on your machine, with your rights:";
}

/** What the person should know before a server is started. @param {{question: any}} props */
export const StartFacts = ({ question }) => html`
  <p class="ask-line">${startWords(question)}</p>
  <pre class="command wrap" tabindex="0" aria-label="The whole command">
    ${visible(question.command)}
  </pre>
  ${
    question.variables?.length > 0 &&
    html`
      <p class="quiet">
        It gets the variables${" "}
        ${question.variables.map(
          (name) => html`
            <code key=${name}>${visible(name)}</code>${" "}
          `,
        )}
      </p>
    `
  }
  ${
    question.confinement &&
    html`
      <p class="quiet">
        <${Say} text=${question.confinement} />
      </p>
    `
  }
  ${
    question.source &&
    html`
      <p class="quiet">
        Configured in${" "}
        <code>
          <${Say} text=${question.source} />
        </code>
      </p>
    `
  }
`;

/**
 * A diff: removed, added and unchanged lines.
 * @param {string} was
 * @param {string} now
 * @returns {{sign: " " | "-" | "+", text: string, old: number, fresh: number}[]}
 */
export function difference(was, now) {
  const old = was ? was.split("\n") : [];
  const fresh = now ? now.split("\n") : [];
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < fresh.length - head &&
    old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]
  )
    tail += 1;
  const a = old.slice(head, old.length - tail);
  const b = fresh.slice(head, fresh.length - tail);
  const lines = /** @type {any[]} */ ([]);
  let [left, right] = [0, 0];
  const say = (sign, text) =>
    lines.push({
      sign,
      text,
      old: sign === "+" ? 0 : (left += 1),
      fresh: sign === "-" ? 0 : (right += 1),
    });
  for (const text of old.slice(0, head)) say(" ", text);
  if (a.length * b.length > 4_000_000) {
    // too long for a diff by lines
    for (const text of a) say("-", text);
    for (const text of b) say("+", text);
  } else {
    const most = a.map(() => new Uint32Array(b.length + 1));
    most.push(new Uint32Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i -= 1)
      for (let j = b.length - 1; j >= 0; j -= 1)
        most[i][j] =
          a[i] === b[j] ? most[i + 1][j + 1] + 1 : Math.max(most[i + 1][j], most[i][j + 1]);
    let i = 0;
    let j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && a[i] === b[j]) (say(" ", a[i]), (i += 1), (j += 1));
      else if (i < a.length && (j >= b.length || most[i + 1][j] >= most[i][j + 1]))
        (say("-", a[i]), (i += 1));
      else (say("+", b[j]), (j += 1));
    }
  }
  for (const text of old.slice(old.length - tail)) say(" ", text);
  return lines;
}

const SIGNS = { "-": "went", "+": "came", " ": "" };

/** A unified diff. */
const Unified = ({ lines }) => html`
  <table class="diff">
    <caption class="hidden-text">What changed, line by line</caption>
    <tbody>
      ${lines.map(
        (line, at) => html`
          <tr key=${at} class=${SIGNS[line.sign]}>
            <td class="no">${line.old || ""}</td>
            <td class="no">${line.fresh || ""}</td>
            <td class="sign">${line.sign}</td>
            <td class="text">${visible(line.text)}</td>
          </tr>
        `,
      )}
    </tbody>
  </table>
`;

/** A side-by-side diff: removed lines beside added ones. */
function Beside({ lines }) {
  const rows = /** @type {any[]} */ ([]);
  for (let at = 0; at < lines.length;) {
    if (lines[at].sign === " ") {
      rows.push([lines[at], lines[at]]);
      at += 1;
      continue;
    }
    const left = [];
    const right = [];
    for (; at < lines.length && lines[at].sign !== " "; at += 1)
      (lines[at].sign === "-" ? left : right).push(lines[at]);
    for (let i = 0; i < Math.max(left.length, right.length); i += 1) rows.push([left[i], right[i]]);
  }
  return html`
    <table class="diff beside">
      <colgroup>
        <col class="numbers" />
        <col />
        <col class="numbers" />
        <col />
      </colgroup>
      <thead>
        <tr>
          <th colspan="2" scope="col">
            As approved
          </th>
          <th colspan="2" scope="col">
            As it is now
          </th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          ([left, right], at) => html`
            <tr key=${at}>
              <td class=${cls("no", left?.sign === "-" && "went")}>${left?.old || ""}</td>
              <td class=${cls("text", left?.sign === "-" && "went")}>
                ${left ? visible(left.text) : ""}
              </td>
              <td class=${cls("no", right?.sign === "+" && "came")}>${right?.fresh || ""}</td>
              <td class=${cls("text", right?.sign === "+" && "came")}>
                ${right ? visible(right.text) : ""}
              </td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
}

const KINDS = {
  tool: "The tool",
  prompt: "The prompt",
  instructions: "What the server tells the model",
};

/** @param {{was: string, now: string}} change */
function howOf({ was, now }) {
  if (!was) return "is new";
  return now ? "is not what you approved" : "has gone";
}

/** The change of a feature. @param {{change: any, way: string}} props */
function Difference({ change, way }) {
  const lines = useMemo(() => difference(change.was, change.now), [change]);
  const beside = way === "beside" && change.was && change.now;
  return html`
    <div class="diff-box" tabindex="0" role="group" aria-label="The difference">
      ${beside ? html`<${Beside} lines=${lines} />` : html`<${Unified} lines=${lines} />`}
    </div>
  `;
}

const named = (change) => html`
  ${KINDS[change.kind]}
  ${
    change.kind !== "instructions" &&
    html`
      ${" "}
      <code>
        <${Say} text=${change.name} />
      </code>
    `
  }
`;

const WAYS = [
  ["beside", "Side by side"],
  ["unified", "One below the other"],
];

/** Features that differ from their approved form, with the differences. */
export function PinQuestion({ question }) {
  const [way, setWay] = useState(window.innerWidth > 900 ? "beside" : "unified");
  const changes = question.changes ?? [];
  const choice =
    changes.some((change) => change.was && change.now) &&
    html`
      <${Choice}
        label="How the difference is shown"
        value=${way}
        options=${WAYS}
        onChange=${setWay}
      />
    `;
  let Kind = changes.length === 1 ? OneChange : ManyChanges;
  if (isSkill(question)) Kind = Skill;
  return html`<${Kind} question=${question} changes=${changes} way=${way} choice=${choice} />`;
}

const CARE = html`
  <p class="ask-line">
    <${Icon} name="warn" /> It stays blocked until you have decided. Read what is different: a
    server can say one thing on the day you approve it, and another one later.
  </p>
`;

/**
 * May the model load this skill? Its frontmatter and all its files are shown, with their digests.
 */
function Skill({ question, changes: [change], way, choice }) {
  const name = html`
    <code>
      <${Say} text=${change.name} />
    </code>
  `;
  const title = change.was
    ? html`The skill ${name} has changed since you approved it`
    : html`Let the model load the skill ${name}?`;
  const load = {
    label: change.was ? "Load the changed skill" : "Load the skill",
    act: (send) => send({ type: "decision", allow: true }),
  };
  return html`
    <${Ask}
      question=${question}
      title=${title}
      icon="lock"
      denial=${{ label: "Do not load it", main: true }}
      answers=${[load]}
    >
      <p class="ask-line">
        Nothing of the skill is read until you have decided. This is what the server says of it.
      </p>
      ${choice}
      <${Difference} change=${change} way=${way} />
    </${Ask}>
  `;
}

function OneChange({ question, changes: [change], way, choice }) {
  const flagged = change.warnings?.length > 0;
  let label = "Approve it";
  if (change.was) label = change.now ? "Approve the change" : "Forget it";
  const approve = {
    key: flagged ? undefined : "a",
    label,
    main: !flagged,
    act: (send) => send({ type: "decision", allow: true }),
  };
  return html`
    <${Ask}
      question=${question}
      title=${html`
        ${named(change)} ${howOf(change)}
      `}
      icon="lock"
      denial=${{ label: change.now ? "Keep it blocked" : "Leave it", main: flagged }}
      answers=${[approve]}
    >
      ${CARE} ${choice}
      <${Difference} change=${change} way=${way} />
    </${Ask}>
  `;
}

/** Many features at once: flagged ones come first, and are not preselected. */
function ManyChanges({ question, changes, way, choice }) {
  const plain = () => new Set([...changes.keys()].filter((at) => !changes[at].warnings?.length));
  const [chosen, setChosen] = useState(plain);
  const turn = (at) => {
    const now = new Set(chosen);
    if (!now.delete(at)) now.add(at);
    setChosen(now);
  };
  const all = chosen.size === changes.length;
  const fresh = changes.filter((change) => !change.was).length;
  const counts = [
    fresh && `${fresh} new`,
    changes.length - fresh && `${changes.length - fresh} changed`,
  ].filter(Boolean);
  const approve = (send) => {
    const only = [...chosen].sort((one, other) => one - other);
    return send({ type: "decision", allow: true, ...(all ? {} : { only }) });
  };
  const label = all
    ? `Approve all ${changes.length}`
    : `Approve ${chosen.size} of ${changes.length}`;
  const title = html`
    <${Say} text=${question.server} /> has ${counts.join(" and ")} features
  `;
  return html`
    <${Ask}
      question=${question}
      title=${title}
      icon="lock"
      denial=${{ label: "Keep all blocked" }}
      answers=${[{ key: "a", label, main: true, off: !chosen.size, act: approve }]}
    >
      ${CARE}
      <div class="buttons">
        ${choice}
        <button type="button" class="small" onClick=${() => setChosen(new Set(changes.keys()))}>
          Choose all
        </button>
        <button type="button" class="small" onClick=${() => setChosen(new Set())}>
          Clear all
        </button>
      </div>
      <ul class="pins" aria-label="What changed">
        ${changes.map(
          (change, at) => html`
            <${Change}
              key=${at}
              change=${change}
              way=${way}
              chosen=${chosen.has(at)}
              onTurn=${() => turn(at)}
            />
          `,
        )}
      </ul>
    </${Ask}>
  `;
}

/** One of many: whether it is approved, and what is different about it. */
function Change({ change, way, chosen, onTurn }) {
  const [open, setOpen] = useState(false);
  const flagged = change.warnings?.length > 0;
  return html`
    <li class=${cls("pin", flagged && "is-flagged")}>
      <label class="pin-head">
        <input type="checkbox" checked=${chosen} onChange=${onTurn} />
        <span class="grow">
          ${named(change)} ${howOf(change)}
        </span>
        ${
          flagged &&
          html`
            <span class="tag care">
              <${Icon} name="warn" /> look
            </span>
          `
        }
      </label>
      <${Warnings} warnings=${change.warnings} />
      <details class="fold" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <${Icon} name="chevron" />
          <span class="fold-title">What changed</span>
        </summary>
        ${open && html`<${Difference} change=${change} way=${way} />`}
      </details>
    </li>
  `;
}
