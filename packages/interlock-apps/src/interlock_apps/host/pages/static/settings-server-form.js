// @ts-check
// The form of one server: a command with its arguments and variables, or an address with headers.
import { Choice, Fold, Say, html, useId, useState } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { ServerPlan } from "./settings-plan.js";
import { setup } from "./store.js";

const REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** @param {Record<string, string>} pairs @param {string} between */
const written = (pairs, between) =>
  Object.entries(pairs ?? {})
    .map(([name, value]) => `${name}${between}${value}`)
    .join("\n");

/** @param {string} text */
const linesOf = (text) => text.split(/\r?\n/).filter((line) => line.trim() !== "");

/**
 * The pairs in lines of a text. Throws an error that quotes a line without the sign between.
 * @param {string} text
 * @param {string} between
 * @param {string} example
 */
function pairsOf(text, between, example) {
  const pairs = /** @type {Record<string, string>} */ ({});
  for (const line of linesOf(text)) {
    const at = line.indexOf(between);
    if (at < 1) throw new Error(`“${line}” is not ${example}.`);
    const value = line.slice(at + 1);
    pairs[line.slice(0, at).trim()] = between === ":" ? value.trim() : value;
  }
  return pairs;
}

const VARIABLES_HINT = [
  "NAME=value, one a line. The file keeps what you write here;",
  "${NAME} takes your own variable instead.",
].join(" ");

const EMPTY = {
  id: "",
  command: "",
  arguments: [],
  env: {},
  folder: "",
  url: "",
  headers: {},
  trusted: false,
  disabled: false,
  revision: "",
};

/** A labelled text field. */
function Field({ label, hint = "", value, onChange, area = false, ...rest }) {
  const id = useId();
  const given = {
    id,
    value,
    autocomplete: "off",
    spellcheck: false,
    "aria-describedby": hint ? `${id}-hint` : undefined,
    onInput: (event) => onChange(event.currentTarget.value),
    ...rest,
  };
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${area ? html`<textarea ...${given}></textarea>` : html`<input ...${given} />`}
      ${hint && html`<p class="about" id=${`${id}-hint`}>${hint}</p>`}
    </div>
  `;
}

/** A labelled checkbox. */
function Check({ label, hint = "", checked, onChange, disabled = false }) {
  const id = useId();
  return html`
    <div class="check-field">
      <label>
        <input
          type="checkbox"
          checked=${checked}
          disabled=${disabled}
          aria-describedby=${hint ? id : undefined}
          onChange=${(event) => onChange(event.currentTarget.checked)}
        />
        <span>${label}</span>
      </label>
      ${hint && html`<p class="about" id=${id}>${hint}</p>`}
    </div>
  `;
}

export { Check, Field };

/** What a sandbox means here. */
const sandboxHint = () =>
  setup.value?.sandbox
    ? `No sandbox works on this computer: ${setup.value.sandbox}`
    : "It can use its own folders and public websites, but not your other files.";

/** The fields of a program that the host starts. */
const CommandFields = ({ form, set, texts, setTexts }) => html`
  <${Field}
    label="Command"
    hint="A program, or a whole command line."
    placeholder="uvx mcp-server-git"
    required
    value=${form.command}
    onChange=${(command) => set({ command })}
  />
  <${Field}
    label="Arguments"
    hint="One argument a line."
    area
    rows="2"
    value=${texts.arguments}
    onChange=${(value) => setTexts({ arguments: value })}
  />
  <${Field}
    label="Variables"
    hint=${VARIABLES_HINT}
    area
    rows="2"
    value=${texts.env}
    onChange=${(value) => setTexts({ env: value })}
  />
  <${Field}
    label="Folder"
    hint="Where the program runs. Empty: beside the file."
    value=${form.folder}
    onChange=${(folder) => set({ folder })}
  />
  <${Check}
    label="Run it in a sandbox"
    hint=${sandboxHint()}
    disabled=${!!setup.value?.sandbox && !form.sandbox}
    checked=${form.sandbox === true}
    onChange=${(sandbox) => set({ sandbox })}
  />
`;

/** The fields of a server that runs already. */
const AddressFields = ({ form, set, texts, setTexts }) => html`
  <${Field}
    label="Address"
    type="url"
    placeholder="https://example.com/mcp"
    required
    value=${form.url}
    onChange=${(url) => set({ url })}
  />
  <${Field}
    label="Headers"
    hint=${"Name: value, one a line. Leave them out if the server has a login."}
    area
    rows="2"
    value=${texts.headers}
    onChange=${(value) => setTexts({ headers: value })}
  />
`;

/**
 * The form of a server, and the review of its change.
 * @param {{
 *   form?: any, was?: string, missing?: string,
 *   onDone: (server: string) => void, onBack: () => void,
 * }} props `missing`: a variable to fill in
 */
export function ServerForm({ form: given, was = "", missing = "", onDone, onBack }) {
  const [form, setForm] = useState({ ...EMPTY, sandbox: !setup.value?.sandbox, ...given });
  const [texts, setAll] = useState({
    arguments: form.arguments.join("\n"),
    env: written(form.env, "=") + (missing ? `\n${missing}=` : ""),
    headers: written(form.headers, ": "),
  });
  const [kind, setKind] = useState(form.url ? "url" : "command");
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState("");
  const set = (change) => setForm({ ...form, ...change });
  const setTexts = (change) => setAll({ ...texts, ...change });
  const review = async (event) => {
    event.preventDefault();
    setWrong("");
    try {
      const started = kind === "command";
      const whole = {
        ...form,
        command: started ? form.command : "",
        arguments: started ? linesOf(texts.arguments) : [],
        env: started ? pairsOf(texts.env, "=", "NAME=value") : {},
        folder: started ? form.folder : "",
        url: started ? "" : form.url,
        headers: started ? {} : pairsOf(texts.headers, ":", "Name: value"),
        sandbox: started ? form.sandbox : null,
      };
      setPlan(await act("planServer", { form: whole, was }));
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
    }
  };
  if (plan)
    return html`
      <${ServerPlan}
        plan=${plan}
        title=${html`
          ${was ? "Change" : "Add"} <${Say} text=${plan.server} />?
        `}
        label=${was ? "Save" : "Add and start"}
        onDone=${onDone}
        onBack=${() => setPlan(null)}
      />
    `;
  const fill = (pasted) => {
    setForm({ ...form, ...pasted, id: pasted.id || form.id });
    setAll({
      arguments: pasted.arguments.join("\n"),
      env: written(pasted.env, "="),
      headers: written(pasted.headers, ": "),
    });
    setKind(pasted.url ? "url" : "command");
  };
  const shared = { form, set, texts, setTexts };
  return html`
    <form
      class="fields boxed"
      onSubmit=${review}
      aria-label=${was ? "Edit the server" : "Add a server"}
    >
      ${!was && html`<${Pasted} onForm=${fill} />`}
      <${Field}
        label="Name"
        required
        value=${form.id}
        placeholder="git"
        onChange=${(id) => set({ id })}
      />
      <${Choice}
        label="How the server is reached"
        value=${kind}
        options=${[
          ["command", "Command"],
          ["url", "Address"],
        ]}
        onChange=${setKind}
      />
      ${
        kind === "command"
          ? html`<${CommandFields} ...${shared} />`
          : html`<${AddressFields} ...${shared} />`
      }
      <${Check}
        label="Trust what it says about its tools"
        hint="Tools that it marks as read-only then run without a question."
        checked=${form.trusted}
        onChange=${(trusted) => set({ trusted })}
      />
      <${Revision} value=${form.revision} onChange=${(revision) => set({ revision })} />
      ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
      <div class="buttons">
        <button type="submit" class="main">Continue</button>
        <button type="button" class="quiet" onClick=${onBack}>Cancel</button>
      </div>
    </form>
  `;
}

/**
 * The form for a configuration in JSON, as the documentation of servers shows it: an object with
 * the servers by name, or one entry. Throws an error for anything else.
 * @param {string} text
 */
function formOf(text) {
  const read = JSON.parse(text);
  const listed =
    read.mcpServers ?? read.servers ?? (read.command || read.url ? { "": read } : read);
  const [[id, entry] = []] = Object.entries(listed);
  if (!entry?.command && !entry?.url) throw new Error("There is no server in this text.");
  return {
    id,
    command: entry.command ?? "",
    arguments: (entry.args ?? []).map(String),
    env: entry.env ?? {},
    folder: entry.cwd ?? "",
    url: entry.url ?? "",
    headers: entry.headers ?? {},
  };
}

/**
 * A field that fills in the form from a configuration.
 * @param {{onForm: (form: any) => void}} props
 */
function Pasted({ onForm }) {
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState("");
  const read = (value) => {
    setText(value);
    setWrong("");
    if (!value.trim()) return;
    try {
      onForm(formOf(value));
      setText("");
    } catch (bad) {
      const words = bad instanceof Error ? bad.message : String(bad);
      setWrong(bad instanceof SyntaxError ? "This is not complete JSON." : words);
    }
  };
  return html`
    <${Fold} title="Paste a configuration">
      <${Field}
        label="Configuration in JSON"
        hint="It fills in the form."
        area
        rows="4"
        value=${text}
        onChange=${read}
      />
      ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
    </${Fold}>
  `;
}

/** Which revision is spoken. @param {{value: string, onChange: (value: string) => void}} props */
function Revision({ value, onChange }) {
  const id = useId();
  return html`
    <div class="field">
      <label for=${id}>Protocol revision</label>
      <select id=${id} value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
        <option value="">Detect it</option>
        ${REVISIONS.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
      </select>
    </div>
  `;
}
