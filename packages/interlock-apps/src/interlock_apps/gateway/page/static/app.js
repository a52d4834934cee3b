// @ts-check
// The gateway's page: servers and views, what waits for an approval, and the audit.
import {
  Dialog,
  Icon,
  IconButton,
  Say,
  cls,
  html,
  several,
  size,
  useId,
  useState,
  visible,
  when,
} from "../kit/kit.js";
import { looks, next } from "../kit/looks.js";
import { barred, line, reachable } from "../kit/net.js";
import {
  approvals,
  attempt,
  audit,
  counters,
  entries,
  notice,
  ready,
  servers,
  source,
  started,
  views,
} from "./store.js";

const LOOKS = {
  "": ["half", "follows the system"],
  light: ["sun", "light"],
  dark: ["moon", "dark"],
};

/** The dot and the words of each condition of a server. */
const CONDITIONS = {
  idle: ["is-off", "Not needed yet"],
  opening: ["is-starting", "Connecting"],
  up: ["is-up", "Connected"],
  down: ["is-down", "Not reachable"],
  "open circuit": ["is-refused", "Not tried: failed too often"],
  draining: ["is-waiting", "Ends its last requests"],
};

const IDENTITIES = {
  none: "no credentials",
  service: "the gateway's credentials",
  user: "each user's own login",
};

function Bar() {
  const [icon, words] = LOOKS[looks.value];
  const reload = () =>
    attempt("reload", {}, (changes) =>
      changes.length ? `Reloaded. ${changes.join(" ")}` : "Reloaded. Nothing has changed.",
    );
  return html`
    <header class="bar">
      <img src="kit/icon.svg" alt="" width="24" height="24" />
      <h1 class="bar-title grow">Gateway</h1>
      <button type="button" class="small" disabled=${!reachable.value} onClick=${reload}>
        Reload the settings
      </button>
      <${IconButton} name=${icon} label=${`Appearance: ${words}. Change`} onClick=${next} />
    </header>
  `;
}

/** A lost connection to the gateway, and the outcome of the last act. */
function Notices() {
  const lost = line.value === "lost" || barred.value;
  const { level, words } = notice.value;
  return html`
    ${
      lost &&
      html`
        <p class="banner lost" role="alert">
          <${Icon} name="warn" />
          <span class="wrap">
            <${Say} text=${barred.value || "The gateway is not reachable. Retrying …"} />
          </span>
        </p>
      `
    }
    <div role="status">
      ${
        words &&
        html`
          <p class=${cls("banner", level === "error" && "lost")}>
            <span class="wrap grow"><${Say} text=${words} /></span>
            <${IconButton}
              name="close"
              label="Close the notice"
              onClick=${() => (notice.value = { level: "info", words: "" })}
            />
          </p>
        `
      }
    </div>
  `;
}

/** One server behind the gateway. */
function Server({ one }) {
  const [kind, words] = CONDITIONS[one.condition] ?? ["", one.condition];
  return html`
    <li class="card">
      <p class="card-head">
        <span class=${cls("dot", kind)} aria-hidden="true"></span>
        <strong><${Say} text=${one.name} /></strong>
        <span class="quiet">${words}</span>
      </p>
      <p><code><${Say} text=${one.shown} /></code></p>
      <p class="quiet">
        ${several(one.tools, "tool")} · ${several(one.connections, "connection")} ·
        ${several(one.calls, "running request")} · ${IDENTITIES[one.identity] ?? one.identity}
        ${one.required && " · required"}
      </p>
      ${one.words && html`<p class="card-error wrap"><${Say} text=${one.words} /></p>`}
    </li>
  `;
}

function Servers() {
  return html`
    <section aria-labelledby="servers">
      <h2 id="servers">Servers</h2>
      ${
        servers.value.length === 0
          ? html`<p class="quiet">The settings have no servers.</p>`
          : html`
            <ul class="cards">
              ${servers.value.map((one) => html`<${Server} key=${one.name} one=${one} />`)}
            </ul>
          `
      }
    </section>
  `;
}

function Views() {
  return html`
    <section aria-labelledby="views">
      <h2 id="views">Views</h2>
      <ul class="cards">
        ${views.value.map(
          (one) => html`
            <li class="card" key=${one.name}>
              <p class="card-head">
                <strong><${Say} text=${one.name || "default"} /></strong>
                <code><${Say} text=${one.path} /></code>
              </p>
              <p class="quiet">
                <${Say} text=${one.servers.join(", ") || "no servers"} />
                ${one.scopes.length > 0 && html` · needs <${Say} text=${one.scopes.join(" ")} />`}
              </p>
              ${one.left_out.map(
                (words) => html`
                <p class="card-error wrap" key=${words}>
                  <${Say} text=${words} />
                </p>
              `,
              )}
            </li>
          `,
        )}
      </ul>
    </section>
  `;
}

/** One form of a tool: text of its server, with line breaks. */
const Form = ({ title, text }) => html`
  <h3>${title}</h3>
  <pre class="form wrap" tabindex="0" aria-label=${title}>
    <${Say} text=${text} />
  </pre>
`;

/** What was pinned and what is offered now, and the button that approves it. */
function Comparison({ one, onClose }) {
  const approve = async () => {
    await attempt("approve", { ids: [one.id] }, (count) =>
      count ? `${visible(one.name)} is approved.` : "It has changed again, and was not approved.",
    );
    onClose();
  };
  return html`
    <${Dialog}
      title=${`${visible(one.name)} of ${visible(one.server)}`}
      class="wide"
      onClose=${onClose}
      foot=${html`
        <div class="buttons">
          <button type="button" onClick=${onClose}>Keep withheld</button>
          <button type="button" class="main" onClick=${approve}>Approve this form</button>
        </div>
      `}
    >
      <p>${visible(one.why)} A model reads all of this text. Approve it only if you trust it.</p>
      ${one.before && html`<${Form} title="As it was pinned" text=${one.before} />`}
      <${Form} title="As it is now" text=${one.after} />
    <//>
  `;
}

function Approvals() {
  const [shown, setShown] = useState("");
  const all = approvals.value;
  const one = all.find((each) => each.id === shown);
  return html`
    <section aria-labelledby="approvals">
      <h2 id="approvals">Withheld until approved</h2>
      ${all.length === 0 && html`<p class="quiet">Nothing is withheld.</p>`}
      <ul class="rows">
        ${all.map(
          (each) => html`
            <li class="row" key=${each.id}>
              <span class="grow">
                <strong><${Say} text=${each.name} /></strong>
                <span class="quiet"> ${each.kind} of <${Say} text=${each.server} /></span>
                <span class="block">${visible(each.why)}</span>
              </span>
              <button
                type="button"
                class="small"
                aria-label=${`Review ${visible(each.name)} of ${visible(each.server)}`}
                onClick=${() => setShown(each.id)}
              >
                Review
              </button>
            </li>
          `,
        )}
      </ul>
      ${one && html`<${Comparison} one=${one} onClose=${() => setShown("")} />`}
    </section>
  `;
}

/** What one entry of the audit says. @param {Record<string, any>} entry */
function summary(entry) {
  if (entry.event === "suspicion") return `Suspicion: ${entry.why}`;
  if (entry.event === "withheld") return `Withheld: ${entry.why}`;
  if (entry.event === "approved") return `Approved${entry.by ? ` by ${entry.by}` : ""}`;
  if (entry.event === "started") return "Started";
  const decided = entry.decision && entry.decision !== "allow" ? `${entry.why} ` : "";
  return `${decided}${entry.outcome ?? ""}`;
}

/** Whether an entry needs attention. @param {Record<string, any>} entry */
const marked = (entry) =>
  ["suspicion", "withheld"].includes(entry.event) ||
  entry.decision === "deny" ||
  /^(error|denied)/.test(entry.outcome ?? "");

const keyOf = (entry) => `${entry.time} ${entry.id ?? ""} ${entry.event} ${entry.name ?? ""}`;

const matches = (entry, words) =>
  words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => JSON.stringify(entry).toLowerCase().includes(word));

function Line({ entry }) {
  const at = Date.parse(entry.time) / 1000;
  return html`
    <tr class=${cls(marked(entry) && "is-marked")}>
      <td><time datetime=${entry.time}>${when(at)}</time></td>
      <td><${Say} text=${entry.subject || entry.client || "–"} /></td>
      <td>
        <${Say} text=${entry.server ?? ""} />
        <span class="block"><${Say} text=${entry.name ?? ""} /></span>
      </td>
      <td>
        ${marked(entry) && html`<${Icon} name="warn" /> `}<${Say} text=${summary(entry)} />
      </td>
      <td class="number">
        ${entry.ms !== undefined && `${entry.ms.toFixed(1)} ms`}
        ${
          entry.resultBytes !== undefined &&
          html`<span class="block">${size(entry.resultBytes)}</span>`
        }
      </td>
    </tr>
  `;
}

function Audit() {
  const [words, setWords] = useState("");
  const field = useId();
  const found = entries.value.filter((entry) => !words.trim() || matches(entry, words.trim()));
  const check = () =>
    attempt("check", {}, (result) => {
      if (!result) return "There is no file to check.";
      const { entries: count, broken, last } = result;
      return broken === null
        ? `The chain of ${several(count, "entry", "entries")} is whole. Last hash: ${last}`
        : `The chain is broken at line ${broken}.`;
    });
  return html`
    <section aria-labelledby="audit">
      <h2 id="audit">Audit</h2>
      <div class="audit-bar">
        <label class="hidden-text" for=${field}>Find in the audit</label>
        <input
          id=${field}
          type="search"
          placeholder="Find"
          value=${words}
          onInput=${(event) => setWords(event.target.value)}
        />
        <button type="button" class="small" onClick=${check}>Check the chain</button>
      </div>
      <p class="quiet">
        ${
          audit.value.path
            ? html`The newest entries of <code><${Say} text=${audit.value.path} /></code>`
            : "The newest entries of this process; no file is set."
        }
        ${audit.value.lost > 0 && ` ${several(audit.value.lost, "entry is", "entries are")} lost.`}
      </p>
      ${
        found.length === 0
          ? html`<p class="quiet">No entries.</p>`
          : html`
            <div class="table-box" tabindex="0" role="region" aria-label="Entries of the audit">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Time</th>
                    <th scope="col">Caller</th>
                    <th scope="col">What</th>
                    <th scope="col">Outcome</th>
                    <th scope="col" class="number">Cost</th>
                  </tr>
                </thead>
                <tbody>
                  ${found
                    .slice(0, 200)
                    .map((entry) => html`<${Line} key=${keyOf(entry)} entry=${entry} />`)}
                </tbody>
              </table>
            </div>
          `
      }
    </section>
  `;
}

/** The whole page. */
export function App() {
  const names = Object.keys(counters.value).sort();
  return html`
    <div class="gateway">
      <a class="skip" href="#content">Skip to the content</a>
      <${Bar} />
      <${Notices} />
      <main id="content" class="content" tabindex="-1">
        ${
          ready.value &&
          html`
            <p class="quiet">
              ${source.value ? html`<code><${Say} text=${source.value} /></code> · ` : ""}
              since ${when(started.value)}
              ${names.map((name) => html` · ${name} ${counters.value[name].toLocaleString("en")}`)}
            </p>
            <${Approvals} />
            <${Servers} />
            <${Views} />
            <${Audit} />
          `
        }
      </main>
    </div>
  `;
}
