// @ts-check
// The two ways to the host: acts go out, one stream of events comes in.
import { computed, signal } from "./kit.js";

/** How the stream is: "connecting" at first, then "open", or "lost" while it is sought again. */
export const line = signal("connecting");
/** Why this page is not let in any more, in the host's words; "" while it is. */
export const barred = signal("");
/** Whether the host can do something: false once the stream is lost, or this page is not let in. */
export const reachable = computed(() => line.value !== "lost" && !barred.value);
/** How often in a row the stream could not be had. */
export const failures = signal(0);

const token = () =>
  document.querySelector("meta[name=interlock-csrf]")?.getAttribute("content") ?? "";

/** What the host refused, in its words. */
export class Refused extends Error {}

/**
 * Have the host do something. Raises Refused with words for a person.
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
      .catch(() => ({ ok: false, words: `The host answered with ${response.status}.` }));
  } catch (bad) {
    if (aborted?.aborted || bad instanceof Refused) throw bad;
    throw new Refused("The host is not reachable.");
  }
  if (!answer.ok) throw new Refused(answer.words || "The host refused this.");
  return answer.value;
}

/**
 * A stream that cannot be had does not say why; the page itself does, where it is not let in any
 * more.
 */
async function knock() {
  try {
    const response = await fetch(location.pathname, { credentials: "same-origin" });
    barred.value = response.status === 401 ? await response.text() : "";
  } catch {
    barred.value = ""; // nobody is there, which the line says
  }
}

const FIRST = 400;
const MOST = 8000;

/**
 * Listen for as long as the page is open. A stream that breaks is sought again, at first at once,
 * then ever more slowly.
 * @param {(message: any, fresh: boolean) => void} hear `fresh`: the first message since the stream
 *   was had; something may have been missed
 */
export function listen(hear) {
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
      hear(message, fresh && message.kind === "state");
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
