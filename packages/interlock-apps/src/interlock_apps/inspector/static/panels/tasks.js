// @ts-check
// Tasks: calls that the server finishes later; their status, result and cancellation.
import { Icon, Say, cls, html, useId, useState } from "../../kit/kit.js";
import { Json } from "../../kit/content.js";
import { act } from "../../kit/net.js";
import { show, view } from "../store.js";
import {
  Closed,
  ErrorBox,
  ListBeside,
  NotOpen,
  TASKS,
  Wrong,
  hasExtension,
  isOpen,
  keyOf,
  offers,
  useAct,
} from "./common.js";
import { QuestionCard } from "./questions.js";
import { Outcome } from "./tools.js";

const ENDED = ["completed", "failed", "cancelled"];

/** @param {{connection: any}} props */
function Tasks({ connection }) {
  const running = connection.features.calls.filter((one) => one.task);
  const key = keyOf(connection);
  const loaded = useAct(
    "listTasks",
    { connection: connection.name },
    key && `${key} ${running.map((one) => one.status).join()}`,
  );
  const [id, setId] = useState("");
  const field = useId();
  if (!isOpen(connection)) return html`<${NotOpen} connection=${connection} />`;
  const tasks = loaded.value?.tasks ?? [];
  const chosen = view.value.task ?? "";
  const choose = (task) => show({ task });
  const open = (event) => {
    event.preventDefault();
    if (!id.trim()) return;
    choose(id.trim());
    setId("");
  };
  const items = tasks.map((one) => ({
    key: one.taskId,
    title: one.taskId,
    about: [one.status, one.statusMessage, one.error?.message].filter(Boolean).join(" · "),
  }));
  const opener = html`
    <form class="field-row" aria-label="Open a task" onSubmit=${open}>
      <div class="field">
        <label for=${field}>Task ID</label>
        <input
          id=${field}
          value=${id}
          onInput=${(event) => setId(event.currentTarget.value)}
          autocomplete="off"
        />
      </div>
      <div class="buttons end"><button type="submit" disabled=${!id}>Open</button></div>
    </form>
  `;
  return html`
    <${ListBeside}
      label="Tasks"
      extra=${opener}
      items=${items}
      chosen=${chosen}
      onChoose=${choose}
      loaded=${loaded}
      empty=${
        loaded.value?.listed
          ? "The server lists no tasks."
          : "This revision has no list of tasks. Tasks that you start here are kept."
      }
    >
      ${
        chosen &&
        html`
          <${Task}
            key=${chosen}
            connection=${connection}
            id=${chosen}
            onChanged=${loaded.reload}
          />
        `
      }
    </${ListBeside}>
  `;
}

/** One task: its status, its questions, and its result. */
function Task({ connection, id, onChanged }) {
  const about = { connection: connection.name, task: id };
  const loaded = useAct("getTask", about, keyOf(connection));
  const [words, setWords] = useState("");
  const [outcome, setOutcome] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState("");
  const run = (name, done) => async () => {
    setBusy(name);
    setWords("");
    try {
      done(await act(name, about));
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
    setBusy("");
    loaded.reload();
    onChanged();
  };
  const state = loaded.value;
  const ended = ENDED.includes(state?.status);
  return html`
    <article class="look">
      <h2 class="wrap"><${Say} text=${id} /></h2>
      ${
        state &&
        html`
          <p class="small-line" aria-live="polite">
            <span class=${cls("tag", state.status === "failed" && "care")}>${state.status}</span>
            ${" "}<${Say} text=${state.statusMessage ?? ""} />
          </p>
        `
      }
      <${Wrong} words=${loaded.words || words} />
      <div class="buttons">
        <button type="button" disabled=${loaded.loading} onClick=${loaded.reload}>
          Get status
        </button>
        <button
          type="button"
          class="main"
          disabled=${!state || busy === "taskResult"}
          onClick=${run("taskResult", setOutcome)}
        >
          ${ended ? "Get result" : "Wait for the result"}
        </button>
        ${
          state &&
          !ended &&
          html`
            <button type="button" disabled=${!!busy} onClick=${run("cancelTask", () => {})}>
              Cancel task
            </button>
          `
        }
      </div>
      ${busy === "taskResult" && html`<p class="quiet"><${Icon} name="wait" /> Waiting …</p>`}
      ${
        busy === "taskResult" &&
        connection.questions
          .filter((one) => !one.call)
          .map(
            (one) => html`
              <${QuestionCard} key=${one.id} connection=${connection} question=${one} />
            `,
          )
      }
      ${outcome?.error && html`<${ErrorBox} error=${outcome.error} />`}
      ${outcome?.result && html`<${Outcome} connection=${connection} call=${outcome} />`}
      ${state && html`<${Closed} title="Task as JSON"><${Json} value=${state} /></${Closed}>`}
    </article>
  `;
}

/** @type {import("./index.js").FeaturePanel} */
export const panel = {
  id: "tasks",
  title: "Tasks",
  available: (connection) => offers(connection, "tasks") || hasExtension(connection, TASKS),
  Panel: Tasks,
};
