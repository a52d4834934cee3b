// @ts-check
// The state of the page: a copy of the inspector's state, and what this browser shows of it. The
// server keeps everything but the view.
import { batch, computed, signal } from "../kit/kit.js";
import { act, listen } from "../kit/net.js";

/**
 * A connection to a server, or a recorded one.
 * @typedef {object} Connection
 * @property {string} name
 * @property {string} target
 * @property {string[]} words
 * @property {string} recording the recording that has its messages
 * @property {"closed" | "opening" | "open" | "failed" | "recorded"} status
 * @property {string} failure
 * @property {string} asked "auto" or a revision
 * @property {string} revision "" while there is none
 * @property {{name: string, version: string, title?: string} | null} server
 * @property {string | null} instructions
 * @property {Record<string, any> | null} capabilities
 * @property {any[]} questions
 * @property {any} features the state of the feature panels
 * @property {number} opened how often it was opened
 */

/**
 * A tape.
 * @typedef {object} Recording
 * @property {string} name
 * @property {string} path
 * @property {number} count rows that are indexed
 * @property {boolean} complete
 */

export const connections = signal(/** @type {Connection[]} */ ([]));
export const recordings = signal(/** @type {Recording[]} */ ([]));
export const revisions = signal(/** @type {string[]} */ ([]));
export const saved = signal(/** @type {any[]} */ ([]));
/** Whether the first state has arrived. */
export const ready = signal(false);
/** The origin of the frames of apps. */
export const appsOrigin = signal("");
export const toasts = signal(/** @type {any[]} */ ([]));
/** The text of the live region. */
export const spoken = signal("");

/**
 * What the address of the page says: the connection, the tab, and further members of the tab.
 */
export const view = signal(/** @type {Record<string, string>} */ ({}));

/** The name of the selected connection; "" for all. */
export const selected = computed(() => view.value.connection ?? "");
/** The selected connection; null for all. */
export const connection = computed(
  () => connections.value.find((one) => one.name === selected.value) ?? null,
);
/** The id of the open tab. */
export const tab = computed(() => view.value.tab || "timeline");

/**
 * Change what is shown. An empty value removes a member.
 * @param {Record<string, string>} changes
 * @param {boolean} [replaces] whether the back button skips it
 */
export function show(changes, replaces = false) {
  const next = Object.fromEntries(
    Object.entries({ ...view.value, ...changes }).filter(([, value]) => value !== ""),
  );
  if (JSON.stringify(next) === JSON.stringify(view.value)) return;
  view.value = next;
  const hash = `#${new URLSearchParams(next)}`;
  const where = hash === "#" ? location.pathname : hash;
  if (replaces) history.replaceState(null, "", where);
  else history.pushState(null, "", where);
}

/** Select a connection; "" for all. @param {string} name */
export const select = (name) => show({ connection: name });

const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

let keys = 0;
/** @param {"info" | "warning" | "error"} level @param {string} words */
export function toast(level, words) {
  toasts.value = [...toasts.value.slice(-4), { key: ++keys, level, words }];
}

/**
 * Run an act, and show the error if it was refused.
 * @param {string} name
 * @param {Record<string, unknown>} [body]
 * @returns {Promise<any>} undefined if it was refused
 */
export async function attempt(name, body) {
  try {
    return (await act(name, body)) ?? true;
  } catch (bad) {
    toast("error", bad instanceof Error ? bad.message : String(bad));
    return undefined;
  }
}

const listeners = /** @type {Map<string, Set<(event: any) => void>>} */ (new Map());

/**
 * Listen for the events of one kind: `{kind, connection, data}`.
 * @param {string} kind
 * @param {(event: any) => void} receive
 * @returns {() => void} stops listening
 */
export function on(kind, receive) {
  let all = listeners.get(kind);
  if (!all) listeners.set(kind, (all = new Set()));
  all.add(receive);
  return () => all.delete(receive);
}

/** @param {any} message @param {boolean} fresh whether events may have been missed */
function receive(message, fresh) {
  if (message.kind === "state") {
    const { state } = message;
    batch(() => {
      connections.value = state.connections;
      recordings.value = state.recordings;
      revisions.value = state.revisions;
      saved.value = state.saved ?? [];
      appsOrigin.value = state.appsOrigin;
      ready.value = true;
    });
    if (fresh) for (const one of listeners.get("fresh") ?? []) one({});
    return;
  }
  if (message.kind !== "noted") return;
  const event = message.noted;
  batch(() => {
    if (event.kind === "rows")
      recordings.value = recordings.value.map((one) =>
        one.name === event.data.recording ? { ...one, ...event.data, name: one.name } : one,
      );
    for (const one of listeners.get(event.kind) ?? []) one(event);
  });
}

/** Start listening. */
export function begin() {
  view.value = read();
  window.addEventListener("popstate", () => {
    view.value = read();
  });
  window.addEventListener("hashchange", () => {
    view.value = read();
  });
  listen(receive);
}
