// @ts-check
// The card of a tool call: who calls which tool, the arguments, the decision, the progress and the
// result.
import {
  Fold,
  From,
  Icon,
  Say,
  Warnings,
  cls,
  html,
  took,
  useEffect,
  useId,
  useMemo,
  useState,
  visible,
} from "../kit/kit.js";
import { AppFrame } from "../kit/app-frame.js";
import { appServices } from "./app-services.js";
import { companions } from "./asked-groups.js";
import { Settled } from "./ask.js";
import { DEFAULT } from "./asked-calls.js";
import { Looked } from "../kit/content.js";
import { isShownOpen } from "../kit/result.js";
import { Question } from "./question.js";
import { Result } from "./result.js";
import { attempt, servers, texts } from "./store.js";

/** @type {Record<string, [any, string]>} */
const STATES = {
  proposed: ["wait", "Proposed"],
  asking: ["ask", "Waiting for you"],
  running: ["wait", "Running"],
  task: ["wait", "Running as a task"],
  done: ["check", "Done"],
  failed: ["warn", "Failed"],
  stopped: ["stop", "Stopped"],
  denied: ["cross", "Not allowed"],
  off: ["stop", "Server stopped"],
  gone: ["cross", "Did not finish"],
};
/** The host's words for a call that was cancelled by the person, or with its turn. */
const CANCELLED = "Cancelled.";
const BY = { app: "called by an app", person: "called by you" };

/** How long a call has been running. */
function Running({ since }) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => window.clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor(now - since));
  return html`<span>Running${seconds > 0 ? ` ${took(seconds)}` : ""}</span>`;
}

/** The progress of a call; without a total, only that it continues. */
function Progress({ progress }) {
  if (!progress) return null;
  const { progress: done, total, message } = progress;
  const share = total ? Math.min(1, Math.max(0, done / total)) : undefined;
  return html`
    <div class="progress">
      <progress
        max="1"
        value=${share}
        aria-label=${message ? visible(message) : "Progress of the call"}
      ></progress>
      <span class="quiet">
        ${
          message &&
          html`
            <${Say} text=${message} />${" "}
          `
        }
        ${total ? `${Math.round((share ?? 0) * 100)} %` : String(done)}
      </span>
    </div>
  `;
}

/** The arguments in one line. @param {any} values */
function brief(values) {
  const text = Object.values(values ?? {})
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(", ");
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

/** The state of the call for the card. @param {any} data @param {boolean} asking */
function stateOf(data, asking) {
  if (asking && ["proposed", "running"].includes(data.state)) return "asking";
  if (data.state === "failed" && data.error === CANCELLED) return "stopped";
  if (data.state === "denied" && data.decided?.by === "stopped") return "off";
  if (data.state === "running" && data.task) return "task";
  return data.state;
}

/** The tool's server is stopped: a button to start it. @param {{server: string}} props */
function StoppedServer({ server }) {
  const found = servers.value.find((one) => one.id === server);
  const name = html`
    <strong>
      <${Say} text=${server} />
    </strong>
  `;
  if (!found)
    return html`<p class="wrong">The server ${name} was stopped, and is no longer configured.</p>`;
  if (!["off", "refused"].includes(found.state)) {
    return html`
      <p class="quiet">
        The server ${name} was stopped. It has been started since; ask the model to try again.
      </p>
    `;
  }
  const start = () => attempt("server", { server, what: "start" });
  return html`
    <div class="buttons">
      <p class="wrap">The server ${name} is stopped. Start it?</p>
      <button type="button" class="main" onClick=${start}>
        Start ${visible(server)}
      </button>
    </div>
  `;
}

/** A call that goes on as a task: what that means, and a button to cancel it. */
function RunningTask({ call }) {
  return html`
    <div class="buttons">
      <p class="wrap">
        It goes on at its server after the answer is complete, also while this host is closed. Its
        result comes into this conversation.
      </p>
      <button type="button" onClick=${() => attempt("cancelTask", { call })}>
        Cancel the task
      </button>
    </div>
  `;
}

/** The app of a tool, if it has one. */
function toolOf(data) {
  return servers.value
    .find((server) => server.id === data.server)
    ?.tools?.find((tool) => tool.tool === data.tool || tool.name === data.name);
}

/** Instructions to the model that a result seems to contain. */
function Orders({ warnings }) {
  if (!warnings?.length) return null;
  return html`
    <div class="orders">
      <p class="strong">
        This result seems to give orders to the model. The model is told not to follow them.
      </p>
      <${Warnings} warnings=${warnings} />
    </div>
  `;
}

/** @param {{item: any}} props */
export function CallCard({ item }) {
  const id = useId();
  const data = item.data.value;
  const asked = item.asked.value;
  const open = asked.filter((one) => !one.answer.value);
  const [chosen, setChosen] = useState(/** @type {boolean | null} */ (null));
  // The calls of one step are asked about on one card.
  if (open.some((one) => companions(one.question).length > 0)) return null;
  const state = stateOf(data, open.length > 0);
  const [icon, words] = STATES[state];
  const opensResult = useMemo(() => isShownOpen(data.result), [data.result]);
  const strange = state === "denied" && data.decided?.by !== "person";
  const saidNo =
    state === "denied" &&
    // The card says so already.
    asked.some((one) => one.question.type === "call" && one.answer.value?.answer.allow === false);
  const orders = data.warnings?.length > 0;
  const shown =
    open.length > 0 ||
    (chosen ??
      (opensResult ||
        strange ||
        orders ||
        ["asking", "running", "task", "failed", "stopped", "proposed", "off"].includes(state)));
  const tool = toolOf(data);
  const app = tool?.app ? (typeof tool.app === "string" ? tool.app : tool.app.uri) : "";
  return html`
    <article class=${cls("card", `is-${state}`)} aria-labelledby=${id}>
      <button
        type="button"
        class="card-head"
        aria-expanded=${shown ? "true" : "false"}
        aria-controls=${`${id}-body`}
        onClick=${() => setChosen(!shown)}
      >
        <span class=${cls("state-sign", `is-${state}`)}>
          <${Icon} name=${icon} />
        </span>
        <span class="card-title">
          <span id=${id} class="strong">
            <${Say} text=${data.title || data.tool || data.name} />
          </span>
          <span class="card-brief">
            <${Say} text=${brief(data.arguments)} />
          </span>
        </span>
        <${From} server=${data.server} />
        <span class="card-state">
          ${state === "running" ? html`<${Running} since=${data.since} />` : words}
          ${
            data.seconds > 0 && ["done", "failed"].includes(state)
              ? html`
                ${" "}
                <span class="quiet">${took(data.seconds)}</span>
              `
              : ""
          }
        </span>
        <${Icon} name="chevron" />
      </button>
      ${
        ["running", "task"].includes(state) &&
        html`
          <${Progress} progress=${item.progress.value} />
        `
      }
      <div id=${`${id}-body`} class="card-body" hidden=${!shown}>
        ${
          shown &&
          html`
            ${
              !open.length &&
              html`
                <p class="quiet small-line">
                  <code>
                    <${Say} text=${data.tool || data.name} />
                  </code>
                  ${BY[data.by] ? ` · ${BY[data.by]}` : ""}
                  ${data.edited ? " · arguments edited by you" : ""}
                </p>
              `
            }
            ${
              !data.server &&
              data.state === "proposed" &&
              html`
                <p class="wrong">There is no tool of this name.</p>
              `
            }
            ${
              !open.length &&
              Object.keys(data.arguments ?? {}).length > 0 &&
              html`
                <${Looked} value=${data.arguments} label="How the arguments are shown" />
              `
            }
            ${asked
              .filter((one) => one.answer.value)
              .map(
                (one) => html`
                  <${Settled} key=${one.key} asked=${one} />
                `,
              )}
            ${data.task && html`<${RunningTask} call=${data.call} />`}
            ${state === "off" && html`<${StoppedServer} server=${data.server} />`}
            ${
              data.decided &&
              state !== "off" &&
              !asked.some((one) => one.question.type === "call") &&
              data.decided.why &&
              data.decided.why !== DEFAULT &&
              data.decided.why !== data.error &&
              html`
                <p class="quiet small-line">
                  ${data.decided.allow ? "Allowed" : "Not allowed"}:${" "}
                  <${Say} text=${data.decided.why} />
                </p>
              `
            }
            ${open.map(
              (one) => html`
                <${Question} key=${one.key} question=${one.question} />
              `,
            )}
            ${
              data.error &&
              state === "stopped" &&
              html`
                <p class="quiet small-line">
                  It was stopped before it finished. What it had started on the server may have
                  happened.
                </p>
              `
            }
            ${
              data.error &&
              !["stopped", "off"].includes(state) &&
              !saidNo &&
              html`
                <p class="wrong wrap" role="alert">
                  <${Icon} name="warn" /> <${Say} text=${data.error} />
                </p>
              `
            }
            <${Orders} warnings=${data.warnings} />
            ${
              data.result &&
              html`
                <${Fold}
                  title=${data.result.isError ? "Error from the tool" : "Result"}
                  open=${data.result.isError || opensResult || chosen === true}
                >
                  <${Result}
                    result=${data.result}
                    server=${data.server}
                    of=${{ session: data.session, call: data.call }}
                    name=${data.tool || data.name}
                  />
                </${Fold}>
              `
            }
            ${
              data.given &&
              data.given !== texts(data.result?.content ?? []) &&
              data.given !== data.error &&
              html`
                <${Fold} title="What the model received">
                  <pre class="wrap">${visible(data.given)}</pre>
                </${Fold}>
              `
            }
          `
        }
      </div>
      ${
        app &&
        data.by !== "app" &&
        ["running", "done", "failed", "gone"].includes(data.state) &&
        html`
          <${AppFrame} data=${data} uri=${app} services=${appServices} />
        `
      }
    </article>
  `;
}
