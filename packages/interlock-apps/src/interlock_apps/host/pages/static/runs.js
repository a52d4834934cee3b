// @ts-check
// The runs: every conversation that is open in this host, with what it is doing. A run goes on
// while another one is shown, and while no page is open.
import { Icon, Say, cls, html, several, useEffect, useState, when } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { attempt, current, eventListeners, open, panel, questions, sessions } from "./store.js";

const SETTLE = 200; // milliseconds in which events are collected
const NARROW = window.matchMedia("(max-width: 760px)");

/** @type {Record<string, [any, string]>} */
const STATES = {
  waiting: ["ask", "Waits for you"],
  running: ["wait", "Running"],
  done: ["check", "Done"],
  stopped: ["stop", "Stopped"],
  failed: ["warn", "Failed"],
  idle: ["talk", "Not started"],
};

/** The runs, read again when one of them changes. */
function useRuns() {
  const [runs, setRuns] = useState(/** @type {any[] | null} */ (null));
  useEffect(() => {
    let gone = false;
    let timer = 0;
    const read = () => {
      timer = 0;
      act("runs").then(
        (found) => !gone && setRuns(found.runs),
        () => {}, // the banner says that the host is away
      );
    };
    const receive = (/** @type {any} */ { seq }) => {
      if (seq && !timer) timer = window.setTimeout(read, SETTLE);
    };
    read();
    eventListeners.add(receive);
    return () => {
      gone = true;
      window.clearTimeout(timer);
      eventListeners.delete(receive);
    };
  }, []);
  return runs;
}

/** @param {{run: any}} props */
function Run({ run }) {
  const waits = [...questions.value.values()].filter((one) => one.session === run.session).length;
  const [icon, words] = STATES[waits ? "waiting" : run.state] ?? STATES.idle;
  const title = sessions.value.find((one) => one.id === run.session)?.title || run.title;
  const go = () => {
    if (NARROW.matches) panel.value = null;
    open(run.session);
  };
  return html`
    <li class="run">
      <button
        type="button"
        class=${cls("side-row", run.session === current.value && "is-current")}
        onClick=${go}
      >
        <${Icon} name=${icon} />
        <span class="grow">
          <span class="side-title"><${Say} text=${title || "Untitled"} /></span>
          <span class="side-about">
            ${words}${waits > 1 ? `: ${several(waits, "question")}` : ""}
            ${run.background ? " · from the command line" : ""} · ${when(run.since)}
          </span>
        </span>
      </button>
      ${
        run.state === "running" &&
        html`
          <button
            type="button"
            class="small"
            onClick=${() => attempt("cancel", { session: run.session })}
          >
            Stop
          </button>
        `
      }
    </li>
  `;
}

/** The panel. */
export function RunsPanel() {
  const runs = useRuns();
  return html`
    <p class="quiet">
      A run goes on while you look at another one, and while no page is open. It waits at each
      question for you. <code>interlock ask --background</code> starts one from a terminal.
    </p>
    ${runs && !runs.length && html`<p class="quiet">Nothing runs in this host yet.</p>`}
    <ul class="runs" aria-label="Runs">
      ${(runs ?? []).map((run) => html`<${Run} key=${run.session} run=${run} />`)}
    </ul>
  `;
}
