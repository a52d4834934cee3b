// @ts-check
// The two connections to the program that serves the page: acts are sent, and one stream of events
// is received.
import { computed, signal } from "./kit.js";

/** The state of the stream: "connecting" at first, then "open", or "lost" while it reconnects. */
export const line = signal("connecting");
/** Why this page is no longer admitted, in the program's words; "" while it is. */
export const barred = signal("");
/** Whether the program can be reached: the stream is not lost, and this page is admitted. */
export const reachable = computed(() => line.value !== "lost" && !barred.value);
/** Failed connections in a row. */
export const failures = signal(0);

const token = () =>
  document.querySelector("meta[name=interlock-csrf]")?.getAttribute("content") ?? "";

/** What serves the page, for sentences: "host" or "inspector". */
export const program =
  document.querySelector("meta[name=interlock-program]")?.getAttribute("content") ?? "host";

/** The program's refusal, in its words. */
export class Refused extends Error {}

/**
 * Have the program run an act. Throws Refused with words for a person.
 * @param {string} act
 * @param {Record<string, unknown>} [body]
 * @param {AbortSignal} [aborted]
 * @returns {Promise<any>}
 */
export async function act(act, body = {}, aborted) {
  let answer;
  try {
    const response = await fetch("api/act", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Interlock": token() },
      body: JSON.stringify({ act, ...body }),
      credentials: "same-origin",
      signal: aborted,
    });
    if (response.status === 401) throw new Refused((barred.value = await response.text()));
    answer = await response
      .json()
      .catch(() => ({ ok: false, words: `The ${program} answered with ${response.status}.` }));
  } catch (bad) {
    if (aborted?.aborted || bad instanceof Refused) throw bad;
    throw new Refused(`The ${program} is not reachable.`);
  }
  if (!answer.ok) throw new Refused(answer.words || `The ${program} refused this.`);
  return answer.value;
}

/**
 * Upload a file. Throws Refused with words for a person.
 * @param {File} file
 * @param {Record<string, string>} about
 * @returns {Promise<any>}
 */
export async function upload(file, about) {
  const query = new URLSearchParams({ ...about, name: file.name || "Pasted file" });
  let answer;
  try {
    const response = await fetch(`api/file?${query}`, {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream", "X-Interlock": token() },
      body: file,
      credentials: "same-origin",
    });
    if (response.status === 401) throw new Refused((barred.value = await response.text()));
    answer = await response
      .json()
      .catch(() => ({ ok: false, words: `The ${program} answered with ${response.status}.` }));
  } catch (bad) {
    if (bad instanceof Refused) throw bad;
    throw new Refused(`The ${program} is not reachable.`);
  }
  if (!answer.ok) throw new Refused(answer.words || `The ${program} refused this.`);
  return answer.value;
}

/**
 * An event stream does not say why it fails. The page does, if it is no longer admitted.
 */
async function knock() {
  try {
    const response = await fetch(location.pathname, { credentials: "same-origin" });
    barred.value = response.status === 401 ? await response.text() : "";
  } catch {
    barred.value = ""; // the program is gone; the stream says so
  }
}

const FIRST = 400;
const MOST = 8000;

/**
 * Listen while the page is open. A lost stream reconnects: first at once, then with growing delays.
 * @param {(message: any, fresh: boolean) => void} receive `fresh`: the first message on a new
 *   stream; earlier events may have been missed
 */
export function listen(receive) {
  let source = /** @type {EventSource | null} */ (null);
  let timer = 0;
  const open = () => {
    window.clearTimeout(timer);
    source?.close();
    source = new EventSource("api/events");
    let fresh = true;
    source.onmessage = (event) => {
      failures.value = 0;
      barred.value = "";
      line.value = "open";
      const message = JSON.parse(event.data);
      receive(message, fresh && message.kind === "state");
      if (message.kind === "state") fresh = false;
    };
    source.onerror = () => {
      source?.close();
      line.value = line.value === "connecting" && failures.value < 2 ? "connecting" : "lost";
      timer = window.setTimeout(open, Math.min(MOST, FIRST * 2 ** failures.value));
      failures.value += 1;
      if (failures.value > 1) knock();
    };
  };
  open();
  window.addEventListener("online", open);
  window.addEventListener("pagehide", () => source?.close());
  window.addEventListener("pageshow", (event) => event.persisted && open());
}
