// @ts-check
// Tools: the list with annotations, arguments as a form and as JSON, calls with progress, results.
import {
  Icon,
  Say,
  cls,
  html,
  took,
  useEffect,
  useLayoutEffect,
  useMemo,
  useState,
  visible,
} from "../../kit/kit.js";
import { ResourceActionsContext, Json } from "../../kit/content.js";
import { ArgumentsEditor } from "../../kit/fields.js";
import { act } from "../../kit/net.js";
import { Result } from "../../kit/result.js";
import { attempt, on, show, spoken, view } from "../store.js";
import {
  Closed,
  Command,
  ErrorBox,
  ListBeside,
  NotOpen,
  TASKS,
  hasExtension,
  isOpen,
  keyOf,
  offers,
  useAct,
} from "./common.js";
import { AppFrame } from "../../kit/app-frame.js";
import { appServices } from "./app-services.js";
import { QuestionCard } from "./questions.js";

/** The annotations of a tool as words; they are hints of the server, which may be wrong. */
function hints(annotations) {
  if (!annotations) return [];
  const said = [];
  if (annotations.readOnlyHint === true) said.push("read-only");
  if (annotations.readOnlyHint === false) said.push("writes");
  if (annotations.destructiveHint === true) said.push("destructive");
  if (annotations.destructiveHint === false) said.push("not destructive");
  if (annotations.idempotentHint === true) said.push("idempotent");
  if (annotations.openWorldHint === true) said.push("network");
  if (annotations.openWorldHint === false) said.push("no network");
  return said;
}

const Tags = ({ words }) =>
  words.length
    ? html`
      <span class="tags">
        ${words.map((one) => html`<span key=${one} class="tag">${one}</span>`)}
      </span>
    `
    : null;

const titleOf = (tool) => tool.title || tool.annotations?.title || tool.name;

/** The arguments that a call begins with: the defaults of its schema. */
function defaultsOf(schema) {
  const properties = Object.entries(schema?.properties ?? {});
  return Object.fromEntries(
    properties
      .filter(([, node]) => node && typeof node === "object" && "default" in node)
      .map(([name, node]) => [name, node.default]),
  );
}

/** @param {{connection: any}} props */
function Tools({ connection }) {
  const loaded = useAct("listTools", { connection: connection.name }, keyOf(connection));
  if (!isOpen(connection)) return html`<${NotOpen} connection=${connection} />`;
  const tools = loaded.value ?? [];
  const chosen = view.value.tool ?? "";
  const tool = tools.find((one) => one.name === chosen);
  const items = tools.map((one) => ({
    key: one.name,
    title: titleOf(one),
    about: titleOf(one) === one.name ? "" : one.name,
    tags: html`<${Tags} words=${hints(one.annotations)} />`,
  }));
  return html`
    <${ListBeside}
      label="Tools"
      items=${items}
      chosen=${chosen}
      onChoose=${(name) => show({ tool: name })}
      loaded=${loaded}
      empty="The server lists no tools."
    >
      ${
        tool &&
        html`
          <${Tool} key=${tool.name} connection=${connection} tool=${tool} tools=${tools} />
        `
      }
      ${
        chosen &&
        !tool &&
        !loaded.loading &&
        html`<p class="quiet">The server lists no tool <${Say} text=${chosen} />.</p>`
      }
    </${ListBeside}>
  `;
}

/** One tool: what it says of itself, its arguments, and its calls. */
function Tool({ connection, tool, tools }) {
  const [value, setValue] = useState(() => defaultsOf(tool.inputSchema));
  const [wrong, setWrong] = useState(false);
  const [asTask, setAsTask] = useState(false);
  const services = useMemo(() => appServices(tools), [tools]);
  const [command, setCommand] = useState("");
  const text = JSON.stringify(value);
  const params = { connection: connection.name, tool: tool.name, arguments: value, asTask };
  useEffect(() => {
    if (wrong) return undefined;
    const aborting = new AbortController();
    act("toolCommand", params, aborting.signal).then(
      (answer) => setCommand(answer.command),
      () => {},
    );
    return () => aborting.abort();
  }, [text, wrong, asTask]);
  const calls = connection.features.calls.filter((one) => one.tool === tool.name).reverse();
  const call = async () => {
    if (wrong) return;
    const begun = await attempt("callTool", params);
    if (begun) spoken.value = `${titleOf(tool)} is called.`;
  };
  const enter = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    call();
  };
  const mayBeTask =
    ["optional", "required"].includes(tool.execution?.taskSupport) ||
    hasExtension(connection, TASKS);
  return html`
    <article class="look" aria-label=${visible(titleOf(tool))}>
      <header>
        <h2><${Say} text=${titleOf(tool)} /></h2>
        <p class="small-line">
          <code><${Say} text=${tool.name} /></code>${" "}
          <${Tags} words=${hints(tool.annotations)} />
        </p>
      </header>
      ${tool.description && html`<p class="wrap"><${Say} text=${tool.description} /></p>`}
      <${Closed} title="Schemas and metadata">
        <${Json}
          value=${{
            inputSchema: tool.inputSchema,
            outputSchema: tool.outputSchema,
            annotations: tool.annotations,
            execution: tool.execution,
            _meta: tool._meta,
          }}
        />
      </${Closed}>
      <div class="call-form" role="group" aria-label="Arguments" onKeyDown=${enter}>
        <${ArgumentsEditor}
          schema=${tool.inputSchema}
          value=${value}
          onChange=${(made, bad) => {
            setValue(made);
            setWrong(bad);
          }}
        />
        ${
          mayBeTask &&
          html`
            <label class="option">
              <input
                type="checkbox"
                checked=${asTask}
                onChange=${(event) => setAsTask(event.currentTarget.checked)}
              />
              Run as a task
            </label>
          `
        }
        <div class="buttons">
          <button type="button" class="main" disabled=${wrong} onClick=${call}>
            Call
          </button>
          <kbd>Ctrl Enter</kbd>
        </div>
        <${Command} text=${wrong ? "" : command} />
      </div>
      ${
        calls.length > 0 &&
        html`
          <section aria-label="Calls" class="calls">
            <h3>Calls</h3>
            ${calls.map(
              (one, at) => html`
                <${Call}
                  key=${one.id}
                  connection=${connection}
                  brief=${one}
                  open=${at === 0}
                  tool=${tool}
                  services=${services}
                />
              `,
            )}
          </section>
        `
      }
    </article>
  `;
}

/** A call as an app gets it. @param {any} connection @param {any} call */
const appData = (connection, call) => ({
  server: connection.name,
  call: call.id,
  tool: call.tool,
  arguments: call.arguments,
  state: call.status === "done" ? "done" : "failed",
  result: call.result,
  error: call.error?.message ?? "",
});

const STATUS = {
  running: ["wait", "running"],
  done: ["check", "done"],
  failed: ["warn", "failed"],
  cancelled: ["stop", "cancelled"],
};

/** One call: its progress while it runs, then its outcome. */
function Call({ connection, brief, open, tool, services }) {
  const [progress, setProgress] = useState(brief.progress);
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const [unfolded, setUnfolded] = useState(open);
  // Before the next event: an effect after the next frame could come too late for the last one.
  useLayoutEffect(
    () =>
      on("call", (event) => {
        if (event.connection === connection.name && event.data.id === brief.id)
          setProgress(event.data.progress);
      }),
    [connection.name, brief.id],
  );
  useLayoutEffect(() => setProgress(brief.progress), [brief.progress]); // of a new stream
  const running = brief.status === "running";
  useEffect(() => {
    if (running || !unfolded) return undefined;
    const aborting = new AbortController();
    act("getCall", { connection: connection.name, call: brief.id }, aborting.signal).then(
      (call) => {
        setShown(call);
        if (open) spoken.value = `The call of ${brief.tool} is ${STATUS[call.status][1]}.`;
      },
      (bad) => {
        if (!aborting.signal.aborted) setShown({ error: { code: null, message: bad.message } });
      },
    );
    return () => aborting.abort();
  }, [running, unfolded]);
  const [icon, words] = STATUS[brief.status];
  const questions = connection.questions.filter((one) => one.call === brief.id);
  const cancel = () => attempt("cancelCall", { connection: connection.name, call: brief.id });
  return html`
    <section class=${cls("call", `is-${brief.status}`)} aria-label=${`Call ${brief.id}`}>
      <div class="call-head">
        <button
          type="button"
          class="quiet call-fold"
          aria-expanded=${unfolded ? "true" : "false"}
          onClick=${() => setUnfolded(!unfolded)}
        >
          <${Icon} name=${icon} />
          <span>${words}</span>
          ${!running && html`<span class="quiet">${took(brief.seconds)}</span>`}
          ${brief.task && html`<span class="tag">task</span>`}
          ${brief.by === "app" && html`<span class="tag">by the app</span>`}
        </button>
        ${running && html`<button type="button" class="small" onClick=${cancel}>Cancel</button>`}
      </div>
      ${
        running &&
        progress &&
        html`
          <div class="progress">
            <span aria-live="polite">
              <${Say} text=${progress.message} />
              ${progress.total ? ` ${progress.progress} of ${progress.total}` : ""}
            </span>
            ${
              progress.total
                ? html`
                  <progress
                    aria-label="Progress"
                    max=${progress.total}
                    value=${progress.progress}
                  ></progress>
                `
                : html`<progress aria-label="Progress"></progress>`
            }
          </div>
        `
      }
      ${questions.map(
        (one) => html`<${QuestionCard} key=${one.id} connection=${connection} question=${one} />`,
      )}
      ${unfolded && shown && html`<${Outcome} connection=${connection} call=${shown} />`}
      ${
        unfolded &&
        shown?.result &&
        tool.app &&
        brief.by === "user" &&
        html`
          <${AppFrame} data=${appData(connection, shown)} uri=${tool.app} services=${services} />
        `
      }
    </section>
  `;
}

/** The outcome of a call: the result or the error, and whether it fits the output schema. */
export function Outcome({ connection, call }) {
  return html`
    <div class="outcome">
      ${call.error && html`<${ErrorBox} error=${call.error} />`}
      ${
        call.result &&
        html`
          ${
            call.result.isError &&
            html`<p class="wrong"><${Icon} name="warn" /> The tool failed.</p>`
          }
          <${ResourceActionsContext.Provider} value=${reads(connection)}>
            <${Result} result=${call.result} server=${connection.name} />
          </${ResourceActionsContext.Provider}>
          <${Violations} list=${call.violations} />
          <${Closed} title="Result as JSON"><${Json} value=${call.result} /></${Closed}>
        `
      }
      ${
        call.arguments &&
        html`<${Closed} title="Arguments"><${Json} value=${call.arguments} /></${Closed}>`
      }
    </div>
  `;
}

/** What the page does with a resource that a result links to. @param {any} connection */
export const reads = (connection) => ({
  read: async (_, uri) =>
    (await act("readResource", { connection: connection.name, uri })).contents,
});

/** Whether the structured content fits the output schema. @param {{list: string[] | null}} props */
const Violations = ({ list }) =>
  list === null || list === undefined
    ? null
    : list.length === 0
      ? html`<p class="quiet small-line"><${Icon} name="check" /> It fits the output schema.</p>`
      : html`
        <div class="error-box" role="alert">
          <p class="wrong">
            <${Icon} name="warn" /> The structured content does not fit the output schema:
          </p>
          <ul>
            ${list.map((one) => html`<li key=${one}><code><${Say} text=${one} /></code></li>`)}
          </ul>
        </div>
      `;

/** @type {import("./index.js").FeaturePanel} */
export const panel = {
  id: "tools",
  title: "Tools",
  available: (connection) => offers(connection, "tools"),
  Panel: Tools,
};
