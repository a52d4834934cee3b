// @ts-check
// The state of the page: a copy of the gateway's state, and the newest entries of its audit.
import { batch, signal } from "../kit/kit.js";
import { act, listen } from "../kit/net.js";

const MOST_ENTRIES = 500;

/**
 * An entry of the audit.
 * @typedef {Record<string, any>} Entry
 */

export const servers = signal(/** @type {any[]} */ ([]));
export const views = signal(/** @type {any[]} */ ([]));
export const approvals = signal(/** @type {any[]} */ ([]));
export const counters = signal(/** @type {Record<string, number>} */ ({}));
/** Where the audit is, and how many entries are lost. */
export const audit = signal({ path: "", lost: 0 });
export const entries = signal(/** @type {Entry[]} */ ([]));
export const source = signal("");
export const started = signal(0);
/** Whether the first state has arrived. */
export const ready = signal(false);
export const notice = signal({ level: "info", words: "" });

/**
 * Run an act, and show the error if it was refused.
 * @param {string} name
 * @param {Record<string, unknown>} body
 * @param {(value: any) => string} words what to say when it is done
 */
export async function attempt(name, body, words) {
  try {
    const value = await act(name, body);
    notice.value = { level: "info", words: words(value) };
  } catch (bad) {
    const why = bad instanceof Error ? bad.message : String(bad);
    notice.value = { level: "error", words: why };
  }
}

/** @param {any} message @param {boolean} fresh whether events may have been missed */
function receive(message, fresh) {
  if (message.kind === "state") {
    const { state } = message;
    batch(() => {
      servers.value = state.servers;
      views.value = state.views;
      approvals.value = state.approvals;
      counters.value = state.counters;
      audit.value = { path: state.audit.path, lost: state.audit.lost };
      source.value = state.source;
      started.value = state.started;
      if (fresh) entries.value = state.audit.recent.toReversed();
      ready.value = true;
    });
  } else if (message.kind === "noted" && message.noted.event !== "state") {
    entries.value = [message.noted, ...entries.value].slice(0, MOST_ENTRIES);
  }
}

/** Start listening. */
export function begin() {
  listen(receive);
}
