// @ts-check
// The section of the settings about the policy: its rules as sentences, changed on the page and
// written to the policy file after a look at the difference.
import {
  Fold,
  Icon,
  IconButton,
  Say,
  cls,
  html,
  useEffect,
  useId,
  useRef,
  useState,
} from "../kit/kit.js";
import { ArgumentsEditor } from "../kit/fields.js";
import { act } from "../kit/net.js";
import { attempt, current, rules, servers } from "./store.js";

/** @type {Record<string, [any, string]>} */
const DECISIONS = {
  allow: ["check", "Allow"],
  ask: ["ask", "Ask"],
  deny: ["cross", "Deny"],
};
/** @type {[string, string][]} */
const CHOICES = [
  ["allow", "Allow"],
  ["ask", "Ask"],
  ["deny", "Deny"],
];
/** @type {[string, string][]} */
const PATTERNS = [
  ["is", "is"],
  ["glob", "matches (* for any characters)"],
  ["in", "is one of (a line each)"],
  ["under", "is under the folder"],
  ["matches", "matches the expression"],
  ["least", "is at least"],
  ["most", "is at most"],
  ["given", "is given"],
  ["absent", "is not given"],
];
/** @type {[string, string][]} */
const HINTS = [
  ["readOnly", "Read-only"],
  ["destructive", "Destructive"],
  ["idempotent", "Safe to repeat"],
  ["openWorld", "Open-world"],
];

/** The section. */
export function PolicySection() {
  const [view, setView] = useState(/** @type {any} */ (null));
  const [form, setForm] = useState(/** @type {any} */ (null));
  const [change, setChange] = useState(/** @type {any} */ (null));
  const [words, setWords] = useState("");
  const load = async () => setView((await attempt("policy")) ?? null);
  useEffect(() => {
    load();
  }, []);
  if (!view) return html`<h2>Policy</h2>`;
  const fail = (bad) => setWords(bad instanceof Error ? bad.message : String(bad));
  /** Ask the host what a change does to the file. */
  const prepare = async (wanted) => {
    setWords("");
    try {
      const made = await act("changePolicy", { ...wanted, digest: view.digest });
      setChange({ wanted, ...made });
    } catch (bad) {
      fail(bad);
    }
  };
  const save = async () => {
    setWords("");
    try {
      await act("changePolicy", { ...change.wanted, digest: view.digest, save: true });
      setForm(null);
    } catch (bad) {
      fail(bad);
    }
    setChange(null);
    await load();
  };
  const editable = view.path !== "" && !view.problem;
  const list = (table, listed) => html`
    <ol aria-label=${table === "rules" ? "Rules" : "Results to review"}>
      ${listed.map(
        (one, at) => html`
          <${RuleRow}
            key=${`${at} ${one.words}`}
            one=${one}
            at=${at}
            count=${listed.length}
            editable=${editable}
            onEdit=${() => setForm({ table, at, rule: one.rule })}
            onMove=${(to) => prepare({ what: "move", table, at, to })}
            onRemove=${() => prepare({ what: "remove", table, at })}
          />
        `,
      )}
    </ol>
  `;
  const setting = (what, label, value) => html`
    <label class="field">
      <span class="label">${label}</span>
      <select
        value=${value}
        disabled=${!editable}
        onChange=${(event) => {
          const wanted = event.currentTarget.value;
          event.currentTarget.value = value;
          prepare({ what, value: wanted });
        }}
      >
        ${CHOICES.map(([key, name]) => html`<option key=${key} value=${key}>${name}</option>`)}
      </select>
    </label>
  `;
  return html`
    <h2>Policy</h2>
    <div class="policy">
      <p>
        Rules decide which calls run. A rule that denies wins over one that asks, and that over one
        that allows, in whatever order they stand.
      </p>
      ${
        view.path
          ? html`
            <p class="quiet">
              The rules are in${" "}
              <code class="wrap">
                <${Say} text=${view.path} />
              </code>
            </p>
          `
          : html`
            <p class="quiet">This host has no policy file: its rules cannot be changed here.</p>
          `
      }
      ${view.problem && html`<${Wrong} words=${view.problem} />`}
      ${words && html`<${Wrong} words=${words} />`}
      ${
        change &&
        html`<${Change} change=${change} onSave=${save} onCancel=${() => setChange(null)} />`
      }
      <h3>Rules</h3>
      ${
        view.rules.length > 0
          ? list("rules", view.rules)
          : html`<p class="quiet">There are no rules yet.</p>`
      }
      ${
        form
          ? html`
            <${RuleForm}
              key=${`${form.table} ${form.at}`}
              form=${form}
              onCancel=${() => setForm(null)}
              onReady=${(rule) =>
                prepare({
                  what: form.at === null ? "add" : "replace",
                  table: form.table,
                  at: form.at,
                  rule,
                })}
            />
          `
          : html`
            <div class="buttons">
              <button
                type="button"
                disabled=${!editable}
                onClick=${() => setForm({ table: "rules", at: null, rule: { decision: "ask" } })}
              >
                <${Icon} name="plus" /> Add a rule
              </button>
            </div>
          `
      }
      <h3>Calls that no rule decides</h3>
      <div class="field-row">
        ${setting("default", "All tools", view.default)}
        ${setting("trustedReadOnly", "Read-only tools of trusted servers", view.trustedReadOnly)}
      </div>
      ${
        view.review.length > 0 &&
        html`
          <h3>Results that you see before the model</h3>
          ${list("review", view.review)}
        `
      }
      <${Remembered} learned=${view.learned} onForgot=${load} />
      <h3>What would happen to this call?</h3>
      <${Explain} />
    </div>
  `;
}

const Wrong = ({ words }) => html`
  <p class="wrong wrap" role="alert">
    <${Icon} name="warn" />
    <${Say} text=${words} />
  </p>
`;

/** A rule as a sentence. */
function RuleRow({ one, at, count, editable, onEdit, onMove, onRemove }) {
  const [icon] = DECISIONS[one.rule.decision] ?? ["ask"];
  return html`
    <li class="policy-rule">
      <span class=${cls("decision", one.rule.decision)}>
        <${Icon} name=${icon} />
      </span>
      <span class="grow">
        <${Say} text=${one.words} />
        ${
          one.rule.reason &&
          html`
            <span class="quiet block">
              <${Say} text=${one.rule.reason} />
            </span>
          `
        }
      </span>
      <span class="buttons">
        <button
          type="button"
          class="small"
          disabled=${!editable}
          aria-label=${`Change: ${one.words}`}
          onClick=${onEdit}
        >
          Change
        </button>
        <button
          type="button"
          class="small quiet"
          disabled=${!editable || at === 0}
          aria-label=${`Move up: ${one.words}`}
          onClick=${() => onMove(at - 1)}
        >
          Up
        </button>
        <button
          type="button"
          class="small quiet"
          disabled=${!editable || at === count - 1}
          aria-label=${`Move down: ${one.words}`}
          onClick=${() => onMove(at + 1)}
        >
          Down
        </button>
        <button
          type="button"
          class="small quiet"
          disabled=${!editable}
          aria-label=${`Remove: ${one.words}`}
          onClick=${onRemove}
        >
          Remove
        </button>
      </span>
    </li>
  `;
}

const LINES = { "+": "added", "-": "removed" };

/** What a change does to the file, before it is saved. */
function Change({ change, onSave, onCancel }) {
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => {
    box.current?.focus();
    box.current?.scrollIntoView({ block: "nearest" });
  }, [change]);
  return html`
    <section ref=${box} class="explained" tabindex="-1" aria-label="The change of the policy file">
      ${
        change.words &&
        html`
          <p class="strong">
            <${Say} text=${change.words} />
          </p>
        `
      }
      <pre class="diff-lines">${change.lines.map(
        (line, at) => html`<span key=${at} class=${LINES[line[0]] ?? ""}>${line || " "}</span>`,
      )}</pre>
      ${!change.lines.length && html`<p class="quiet">The file stays as it is.</p>`}
      <div class="buttons">
        <button type="button" class="main" onClick=${onSave}>
          Save to the file
        </button>
        <button type="button" class="quiet" onClick=${onCancel}>
          Cancel
        </button>
      </div>
    </section>
  `;
}

// -- a rule as a form

/** The pattern of an argument as the row of a form. */
function conditionOf([path, pattern]) {
  if (typeof pattern === "string")
    return /[*?[]/.test(pattern)
      ? { path, kind: "glob", value: pattern }
      : { path, kind: "is", value: JSON.stringify(pattern) };
  if (typeof pattern !== "object") return { path, kind: "is", value: JSON.stringify(pattern) };
  const entries = Object.entries(pattern);
  if (entries.length !== 1) return { path, kind: "json", value: JSON.stringify(pattern) };
  const [[key, value]] = entries;
  if (key === "given") return { path, kind: value ? "given" : "absent", value: "" };
  if (key === "in")
    return { path, kind: "in", value: value.map((one) => JSON.stringify(one)).join("\n") };
  if (key === "under")
    return { path, kind: "under", value: Array.isArray(value) ? value.join("\n") : value };
  if (key === "is") return { path, kind: "is", value: JSON.stringify(value) };
  if (["matches", "least", "most"].includes(key)) return { path, kind: key, value: String(value) };
  return { path, kind: "json", value: JSON.stringify(pattern) };
}

/** A typed value: JSON where it is JSON, otherwise text. @param {string} text */
function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @returns {any} the pattern of a row */
function patternOf({ kind, value }) {
  const lines = value.split("\n").filter((line) => line.trim());
  switch (kind) {
    case "glob":
      return value;
    case "in":
      return { in: lines.map(valueOf) };
    case "under":
      return { under: lines.length > 1 ? lines : value.trim() };
    case "matches":
      return { matches: value };
    case "least":
    case "most":
      return { [kind]: Number(value) };
    case "given":
      return { given: true };
    case "absent":
      return { given: false };
    case "json":
      return JSON.parse(value);
    default:
      return { is: valueOf(value) };
  }
}

/**
 * The form of a rule.
 * @param {{form: any, onReady: (rule: any) => void, onCancel: () => void}} props
 */
function RuleForm({ form, onReady, onCancel }) {
  const given = form.rule;
  const id = useId();
  const box = useRef(/** @type {any} */ (null));
  const [decision, setDecision] = useState(given.decision);
  const [server, setServer] = useState(given.server ?? "*");
  const [tool, setTool] = useState(given.tool ?? "*");
  const [reason, setReason] = useState(given.reason ?? "");
  const [hints, setHints] = useState(() =>
    Object.fromEntries(HINTS.map(([name]) => [name, given[name] ?? null])),
  );
  const [conditions, setConditions] = useState(() =>
    Object.entries(given.arguments ?? {}).map(conditionOf),
  );
  const [words, setWords] = useState("");
  useEffect(() => box.current?.querySelector("select, input")?.focus(), []);
  const put = (at, changes) =>
    setConditions(conditions.map((one, place) => (place === at ? { ...one, ...changes } : one)));
  const submit = (event) => {
    event.preventDefault();
    setWords("");
    try {
      const set = Object.entries(hints).filter(([, value]) => value !== null);
      onReady({
        ...given,
        ...Object.fromEntries(HINTS.map(([name]) => [name, null])),
        decision,
        server: server.trim() || "*",
        tool: tool.trim() || "*",
        reason,
        arguments: Object.fromEntries(conditions.map((one) => [one.path, patternOf(one)])),
        ...Object.fromEntries(set),
      });
    } catch {
      setWords("A condition is not valid JSON.");
    }
  };
  const tools = servers.value
    .filter((one) => server === "*" || one.id === server)
    .flatMap((one) => (one.tools ?? []).map((each) => each.tool));
  return html`
    <form ref=${box} class="explained policy" onSubmit=${submit} aria-label="Rule">
      <div class="field-row">
        ${
          form.table === "rules" &&
          html`
            <div class="field narrow">
              <label for=${`${id}-decision`}>Decision</label>
              <select
                id=${`${id}-decision`}
                value=${decision}
                onChange=${(event) => setDecision(event.currentTarget.value)}
              >
                ${CHOICES.map(
                  ([key, name]) => html`
                    <option key=${key} value=${key}>
                      ${name}
                    </option>
                  `,
                )}
              </select>
            </div>
          `
        }
        <div class="field">
          <label for=${`${id}-server`}>Server (* for all)</label>
          <input
            id=${`${id}-server`}
            list=${`${id}-servers`}
            value=${server}
            onInput=${(event) => setServer(event.currentTarget.value)}
          />
          <datalist id=${`${id}-servers`}>
            ${servers.value.map((one) => html`<option key=${one.id} value=${one.id}></option>`)}
          </datalist>
        </div>
        <div class="field">
          <label for=${`${id}-tool`}>Tool (* for all)</label>
          <input
            id=${`${id}-tool`}
            list=${`${id}-tools`}
            value=${tool}
            onInput=${(event) => setTool(event.currentTarget.value)}
          />
          <datalist id=${`${id}-tools`}>
            ${[...new Set(tools)].map((name) => html`<option key=${name} value=${name}></option>`)}
          </datalist>
        </div>
      </div>
      ${conditions.map(
        (one, at) => html`
          <div key=${at} class="condition">
            <div class="field">
              <label for=${`${id}-path-${at}`}>Argument</label>
              <input
                id=${`${id}-path-${at}`}
                required
                value=${one.path}
                onInput=${(event) => put(at, { path: event.currentTarget.value })}
              />
            </div>
            <div class="field">
              <label for=${`${id}-kind-${at}`}>Condition</label>
              <select
                id=${`${id}-kind-${at}`}
                value=${one.kind}
                onChange=${(event) => put(at, { kind: event.currentTarget.value })}
              >
                ${[...PATTERNS, ...(one.kind === "json" ? [["json", "as JSON"]] : [])].map(
                  ([key, name]) => html`
                    <option key=${key} value=${key}>
                      ${name}
                    </option>
                  `,
                )}
              </select>
            </div>
            ${
              !["given", "absent"].includes(one.kind) &&
              html`
                <div class="field">
                  <label for=${`${id}-value-${at}`}>Value</label>
                  <textarea
                    id=${`${id}-value-${at}`}
                    rows=${["in", "under"].includes(one.kind) ? 2 : 1}
                    required
                    value=${one.value}
                    onInput=${(event) => put(at, { value: event.currentTarget.value })}
                  ></textarea>
                </div>
              `
            }
            <${IconButton}
              name="close"
              label=${`Remove the condition about ${one.path || "an argument"}`}
              onClick=${() => setConditions(conditions.filter((_, place) => place !== at))}
            />
          </div>
        `,
      )}
      <div class="buttons">
        <button
          type="button"
          class="small"
          onClick=${() => setConditions([...conditions, { path: "", kind: "is", value: "" }])}
        >
          <${Icon} name="plus" /> Condition about an argument
        </button>
      </div>
      <${Fold}
        title="Kinds of tools"
        open=${Object.values(hints).some((value) => value !== null)}
      >
        <p class="quiet small-line">
          Only servers that you trust are believed about these.
        </p>
        <div class="field-row">
          ${HINTS.map(
            ([name, label]) => html`
              <div key=${name} class="field narrow">
                <label for=${`${id}-${name}`}>${label}</label>
                <select
                  id=${`${id}-${name}`}
                  value=${String(hints[name])}
                  onChange=${(event) => {
                    const value = event.currentTarget.value;
                    setHints({ ...hints, [name]: value === "null" ? null : value === "true" });
                  }}
                >
                  <option value="null">Any</option>
                  <option value="true">Yes</option>
                  <option value="false">No</option>
                </select>
              </div>
            `,
          )}
        </div>
      </${Fold}>
      <div class="field">
        <label for=${`${id}-reason`}>Reason (shown to you, and to the model if it denies)</label>
        <input
          id=${`${id}-reason`}
          value=${reason}
          onInput=${(event) => setReason(event.currentTarget.value)}
        />
      </div>
      ${words && html`<${Wrong} words=${words} />`}
      <div class="buttons">
        <button type="submit" class="main">
          Show the change
        </button>
        <button type="button" class="quiet" onClick=${onCancel}>
          Cancel
        </button>
      </div>
    </form>
  `;
}

/** Answers that were remembered, which are not in the file. */
function Remembered({ learned, onForgot }) {
  if (!learned.length) return null;
  const forget = async (id) => {
    if ((await attempt("forget", { rule: id })) === undefined) return;
    rules.value = rules.value.filter((rule) => rule.id !== id);
    onForgot();
  };
  return html`
    <h3>Remembered answers</h3>
    <ul aria-label="Remembered answers">
      ${learned.map(
        (one) => html`
          <li key=${one.id} class="policy-rule">
            <span class="grow">
              <${Say} text=${one.words} />
              ${one.rule.session && html` <span class="tag">one conversation</span>`}
            </span>
            <button
              type="button"
              class="small"
              aria-label=${`Forget: ${one.words}`}
              onClick=${() => forget(one.id)}
            >
              Forget
            </button>
          </li>
        `,
      )}
    </ul>
  `;
}

const OUTCOMES = {
  allow: ["check", "It runs without a question."],
  ask: ["ask", "You are asked."],
  deny: ["cross", "It is denied."],
  blocked: ["lock", "It cannot be made."],
};

/** What would happen to a call. */
function Explain() {
  const up = servers.value.filter((one) => one.tools?.length);
  const [chosen, setChosen] = useState("");
  const [values, setValues] = useState(/** @type {any} */ ({}));
  const [wrong, setWrong] = useState(false);
  const [found, setFound] = useState(/** @type {any} */ (null));
  const id = useId();
  const all = up.flatMap((one) =>
    one.tools.map((tool) => ({ key: JSON.stringify([one.id, tool.tool]), server: one.id, tool })),
  );
  const item = all.find((one) => one.key === chosen) ?? all[0];
  if (!item) return html`<p class="quiet">No server is running.</p>`;
  const explain = async (event) => {
    event.preventDefault();
    const wanted = { server: item.server, tool: item.tool.tool, arguments: values };
    setFound((await attempt("explain", { ...wanted, session: current.value })) ?? null);
  };
  const [icon, outcome] = found ? OUTCOMES[found.decision] : ["ask", ""];
  return html`
    <form class="policy" onSubmit=${explain} aria-label="A call to explain">
      <div class="field">
        <label for=${id}>Tool</label>
        <select
          id=${id}
          value=${item.key}
          onChange=${(event) => {
            setChosen(event.currentTarget.value);
            setValues({});
            setFound(null);
          }}
        >
          ${all.map(
            (one) => html`
              <option key=${one.key} value=${one.key}>
                ${`${one.tool.tool} on ${one.server}`}
              </option>
            `,
          )}
        </select>
      </div>
      <${ArgumentsEditor}
        key=${item.key}
        schema=${item.tool.inputSchema}
        value=${values}
        onChange=${(value, bad) => {
          setValues(value);
          setWrong(bad);
          setFound(null);
        }}
      />
      <div class="buttons">
        <button type="submit" disabled=${wrong}>
          Explain
        </button>
      </div>
      <div role="status">
        ${
          found &&
          html`
            <div class="explained">
              <p class="strong">
                <${Icon} name=${icon} /> ${outcome}
              </p>
              <p>
                <${Say} text=${found.why} />
              </p>
              ${
                found.risk &&
                html`
                  <p class="risk">
                    <${Icon} name="warn" />
                    <span>
                      <${Say} text=${found.risk} />
                    </span>
                  </p>
                `
              }
              ${
                found.matching.length > 0 &&
                html`
                  <p class="quiet">Rules that fit, of which the strictest decides:</p>
                  <ul class="plain-list">
                    ${found.matching.map(
                      (words) => html`
                        <li key=${words}>
                          <${Say} text=${words} />
                        </li>
                      `,
                    )}
                  </ul>
                `
              }
            </div>
          `
        }
      </div>
    </form>
  `;
}
