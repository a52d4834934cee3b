// @ts-check
// The mode of a conversation beside the composer, its bounds, its taint, and what can be undone.
import {
  Dialog,
  Icon,
  Say,
  cls,
  html,
  several,
  signal,
  useEffect,
  useId,
  useState,
} from "../kit/kit.js";
import { attempt, changedFiles, consents, roots, samplings, usualMode } from "./store.js";

/** @type {[string, string, string][]} */
const MODES = [
  ["ask", "Ask", "You are asked about every call that no rule allows."],
  [
    "read",
    "Read freely",
    "Read-only tools of servers that you trust run. You are asked otherwise.",
  ],
  [
    "plan",
    "Plan first",
    "The model shows its plan. What you approve runs, the rest is asked about.",
  ],
  ["bounds", "Within bounds", "Calls run without a question until a bound is reached."],
];

/** The mode chosen before the first message of a conversation. */
const next = signal(/** @type {{mode: string, bounds?: any} | null} */ (null));

/** Give a new conversation the mode that was chosen for it. @param {string} session */
export async function applyMode(session) {
  const chosen = next.value;
  next.value = null;
  if (chosen) await attempt("mode", { session, ...chosen });
}

/** Choose the mode of a conversation, or of the next one. */
async function choose(id, mode, bounds) {
  const chosen = bounds ? { mode, bounds } : { mode };
  if (id) await attempt("mode", { session: id, ...chosen });
  else next.value = chosen;
}

const modeOf = (id) => (id ? consents.value[id]?.mode : next.value?.mode) ?? usualMode.value;

/** The choice of the mode. @param {{id: string}} props */
export function ModeControl({ id }) {
  const [asking, setAsking] = useState(false);
  const mode = modeOf(id);
  const change = (event) => {
    const wanted = event.currentTarget.value;
    if (wanted === "bounds") setAsking(true);
    else choose(id, wanted, null);
    event.currentTarget.value = mode;
  };
  const title = MODES.find(([name]) => name === mode)?.[2];
  return html`
    <select class="small mode" aria-label="Mode" title=${title} value=${mode} onChange=${change}>
      ${MODES.map(
        ([name, words]) => html`
          <option key=${name} value=${name}>
            ${words}
          </option>
        `,
      )}
    </select>
    ${
      asking &&
      html`
        <${BoundsDialog}
          id=${id}
          onClose=${() => setAsking(false)}
          onChoose=${(bounds) => {
            setAsking(false);
            choose(id, "bounds", bounds);
          }}
        />
      `
    }
  `;
}

/** A number in a text field; null if it is empty. @param {string} text */
const numberOf = (text) => (text.trim() === "" ? null : Number(text));
const isWrong = (value, least) => value !== null && !(Number.isFinite(value) && value >= least);

/** The bounds within which calls run. */
function BoundsDialog({ id, onClose, onChoose }) {
  const known = consents.value[id]?.mode === "bounds" ? consents.value[id].bounds : null;
  const [calls, setCalls] = useState(known ? String(known.calls ?? "") : "20");
  const [minutes, setMinutes] = useState(known?.seconds ? String(known.seconds / 60) : "10");
  const [tokens, setTokens] = useState(known?.tokens ? String(known.tokens) : "");
  const [cost, setCost] = useState(known?.cost ? String(known.cost) : "");
  const shared = [...new Set(Object.values(roots.value).flat())];
  const [folders, setFolders] = useState((known?.folders ?? shared).join("\n"));
  const [anywhere, setAnywhere] = useState(known ? known.folders === null : !shared.length);
  const [destructive, setDestructive] = useState(known?.destructive ?? false);
  const name = useId();
  const given = {
    calls: numberOf(calls),
    seconds: numberOf(minutes) === null ? null : Number(minutes) * 60,
    tokens: numberOf(tokens),
    cost: numberOf(cost),
    folders: anywhere
      ? null
      : folders
          .split("\n")
          .map((line) => line.trim())
          .filter(Boolean),
    destructive,
  };
  const wrong =
    isWrong(given.calls, 0) ||
    (given.calls !== null && !Number.isInteger(given.calls)) ||
    isWrong(given.seconds, 1) ||
    isWrong(given.tokens, 1) ||
    (given.tokens !== null && !Number.isInteger(given.tokens)) ||
    isWrong(given.cost, 0);
  const endless = [given.calls, given.seconds, given.tokens, given.cost].every(
    (one) => one === null,
  );
  const field = (label, value, onInput) => html`
    <div class="field narrow">
      <label for=${`${name}-${label}`}>${label}</label>
      <input
        id=${`${name}-${label}`}
        inputmode="decimal"
        value=${value}
        placeholder="no limit"
        onInput=${(event) => onInput(event.currentTarget.value)}
      />
    </div>
  `;
  const submit = (event) => {
    event.preventDefault();
    if (!wrong && !endless) onChoose(given);
  };
  return html`
    <${Dialog}
      title="Run within bounds"
      onClose=${onClose}
      foot=${html`
        <span class="grow"></span>
        <button type="button" class="quiet" onClick=${onClose}>
          Cancel
        </button>
        <button type="submit" form=${name} class="main" disabled=${wrong || endless}>
          Run within these bounds
        </button>
      `}
    >
      <form id=${name} class="bounds" onSubmit=${submit}>
        <p>
          Calls run without a question until a bound is reached. Then you are asked. Rules that deny
          or ask, suspicious tools and orders in results still stop a call.
        </p>
        <div class="field-row">
          ${field("Calls", calls, setCalls)} ${field("Minutes", minutes, setMinutes)}
          ${field("Tokens", tokens, setTokens)} ${field("Dollars", cost, setCost)}
        </div>
        <p class="quiet small-line">
          Dollars are counted for models whose price is known.
        </p>
        <label class="call-choice">
          <input
            type="checkbox"
            checked=${!anywhere}
            onChange=${(event) => setAnywhere(!event.currentTarget.checked)}
          />
          <span>Only files in these folders</span>
        </label>
        ${
          !anywhere &&
          html`
            <textarea
              rows="3"
              aria-label="Folders, one in each line"
              value=${folders}
              onInput=${(event) => setFolders(event.currentTarget.value)}
            ></textarea>
            <p class="quiet small-line">
              The host checks the paths in the arguments. It cannot see what a server opens by
              itself; a sandbox can.
            </p>
          `
        }
        <label class="call-choice">
          <input
            type="checkbox"
            checked=${destructive}
            onChange=${(event) => setDestructive(event.currentTarget.checked)}
          />
          <span>Also tools that say they are destructive</span>
        </label>
        ${endless && html`<p class="wrong">Set at least one bound.</p>`}
      </form>
    </${Dialog}>
  `;
}

/** What is used of the bounds. @param {any} consent */
function used(consent) {
  const { bounds } = consent;
  const parts = [];
  if (bounds.calls !== null) parts.push(`${consent.calls} of ${several(bounds.calls, "call")}`);
  else parts.push(several(consent.calls, "call"));
  if (bounds.tokens !== null)
    parts.push(
      `${consent.tokens.toLocaleString("en")} of ${bounds.tokens.toLocaleString("en")} tokens`,
    );
  if (bounds.cost !== null) parts.push(`$${consent.cost.toFixed(2)} of $${bounds.cost}`);
  return parts.join(", ");
}

/** The time since the bounds were set, counted on the page between two events. */
function Elapsed({ consent }) {
  const [now, setNow] = useState(0);
  useEffect(() => {
    const began = Date.now();
    setNow(0);
    const timer = window.setInterval(() => setNow((Date.now() - began) / 1000), 5000);
    return () => window.clearInterval(timer);
  }, [consent]);
  const minutes = (seconds) => Math.floor(seconds / 60);
  const most = consent.bounds.seconds;
  if (most === null) return null;
  return html`<span>${`, ${minutes(consent.seconds + now)} of ${Math.ceil(most / 60)} min`}</span>`;
}

/** The state of the consent above the message box: taint, bounds, plan, and sampling. */
export function ConsentStrip({ id }) {
  const [listed, setListed] = useState(false);
  const consent = consents.value[id];
  const allowed = Object.entries(samplings.value[id] ?? {});
  if (!id || !consent) return null;
  const { taint, mode, planned } = consent;
  const files = changedFiles.value[id] ?? 0;
  return html`
    ${
      taint &&
      html`
        <p class="consent-line is-tainted" role="alert">
          <${Icon} name="warn" />
          <span class="grow">
            A result of <${Say} text=${taint.tool} /> on <${Say} text=${taint.server} /> seems to
            give orders to the model. You are asked about every call that writes.
          </span>
          <button
            type="button"
            class="small"
            onClick=${() => attempt("clearTaint", { session: id })}
          >
            Clear
          </button>
        </p>
      `
    }
    ${
      mode === "bounds" &&
      html`
        <p class="consent-line">
          <${Icon} name="lock" />
          <span class="grow">
            Within bounds: ${used(consent)}
            <${Elapsed} consent=${consent} />
          </span>
          <button type="button" class="small quiet" onClick=${() => setListed(true)}>
            What was done
          </button>
          <button type="button" class="small" onClick=${() => choose(id, "ask", null)}>
            End
          </button>
        </p>
      `
    }
    ${
      mode === "plan" &&
      html`
        <p class="consent-line">
          <${Icon} name="list" />
          <span class="grow">
            ${
              planned
                ? `The approved plan covers ${several(planned, "more call")}.`
                : "Plan first: no approved step is left."
            }
          </span>
          <button type="button" class="small quiet" onClick=${() => setListed(true)}>
            What was done
          </button>
        </p>
      `
    }
    ${
      files > 0 &&
      !["bounds", "plan"].includes(mode) &&
      html`
        <p class="consent-line">
          <${Icon} name="file" />
          <span class="grow">Calls have changed ${several(files, "file")}.</span>
          <button type="button" class="small quiet" onClick=${() => setListed(true)}>
            What was done
          </button>
        </p>
      `
    }
    ${allowed.map(
      ([server, left]) => html`
        <p key=${server} class="consent-line">
          <${Icon} name="talk" />
          <span class="grow">
            <${Say} text=${server} /> may ask models: ${several(left.requests, "request")} and${" "}
            ${several(left.tokens, "token")} left
          </span>
          <button
            type="button"
            class="small"
            aria-label=${`Ask again about ${server}`}
            onClick=${() => attempt("revokeSampling", { session: id, server })}
          >
            Ask again
          </button>
        </p>
      `,
    )}
    ${listed && html`<${Done} id=${id} onClose=${() => setListed(false)} />`}
  `;
}

/** @type {[string, string, string][]} */
const EFFECTS = [
  ["destructive", "Destructive", "These tools say that they delete or overwrite."],
  ["unknown", "Unknown", "The servers do not say what these tools do, or are not trusted."],
  ["not destructive", "Not destructive", "They add something, according to a trusted server."],
  ["idempotent", "Safe to repeat", "A repetition changes nothing, according to a trusted server."],
  ["read-only", "Read-only", "Nothing to undo, according to a trusted server."],
];
const HOW = { changed: "changed", created: "created", deleted: "deleted" };

/** The calls that ran, by what is known about undoing them. */
export function Done({ id, onClose }) {
  const [calls, setCalls] = useState(/** @type {any[] | null} */ (null));
  const load = async () => {
    const found = await attempt("doneCalls", { session: id });
    setCalls(found ? found.calls : []);
  };
  useEffect(() => {
    load();
  }, []);
  const restore = async (call, path) => {
    await attempt("restoreFile", { session: id, call, path });
    await load();
  };
  const files = (calls ?? []).flatMap((call) =>
    (call.files ?? []).map((file) => ({ ...file, call: call.call, tool: call.tool })),
  );
  return html`
    <${Dialog} title="What was done" onClose=${onClose}>
      ${calls === null && html`<p class="quiet">Reading …</p>`}
      ${
        calls !== null &&
        !calls.length &&
        html`<p class="quiet">No call has run since the host started.</p>`
      }
      ${
        files.length > 0 &&
        html`
          <h3>Files that can be restored</h3>
          <ul class="offers" aria-label="Changed files">
            ${files.map(
              (file) => html`
                <li key=${file.call + file.path}>
                  <div class="offer-head">
                    <span class="grow">
                      <code class="wrap">
                        <${Say} text=${file.path} />
                      </code>
                      <span class="quiet block">${HOW[file.how]} by ${file.tool}</span>
                    </span>
                    ${
                      file.restorable
                        ? html`
                          <button
                            type="button"
                            class="small"
                            onClick=${() => restore(file.call, file.path)}
                          >
                            ${file.how === "created" ? "Delete it" : "Restore"}
                          </button>
                        `
                        : html`<span class="quiet">no copy</span>`
                    }
                  </div>
                </li>
              `,
            )}
          </ul>
        `
      }
      ${EFFECTS.map(([effect, title, words]) => {
        const found = (calls ?? []).filter((call) => call.effect === effect);
        if (!found.length) return null;
        const counts = new Map();
        for (const { server, tool } of found) {
          const key = `${tool} on ${server}`;
          counts.set(key, (counts.get(key) ?? 0) + 1);
        }
        return html`
          <h3 key=${effect}>${title}</h3>
          <p class="quiet">${words}</p>
          <ul class="plain-list">
            ${[...counts].map(
              ([key, count]) => html`
                <li key=${key} class=${cls(effect)}>
                  <${Say} text=${key} />
                  ${count > 1 ? `, ${count} times` : ""}
                </li>
              `,
            )}
          </ul>
        `;
      })}
      <p class="quiet small-line">
        Copies are kept of files that a call names in folders that you share. What else a server
        changed is not known.
      </p>
    </${Dialog}>
  `;
}
