// @ts-check
// The timeline of a conversation: what each turn did, on an axis of its own. An entry leads to its
// card, and a call to the messages of the protocol.
import {
  Icon,
  Say,
  cls,
  html,
  several,
  took,
  useEffect,
  useId,
  useRef,
  useState,
  visible,
} from "../kit/kit.js";
import { KINDS, MessageView, isRetry } from "../kit/message-view.js";
import { act } from "../kit/net.js";
import { reveal } from "./item-window.js";
import { current, eventListeners, panel, settings, talk } from "./store.js";

/**
 * @typedef {object} Entry
 * @property {string} kind
 * @property {string} id
 * @property {string} label
 * @property {string} server
 * @property {number} began seconds of the wall clock
 * @property {number | null} ended
 * @property {[number, number | null][]} waited
 * @property {"running" | "done" | "failed" | "denied"} state
 * @property {number} input
 * @property {number} output
 * @property {string} call
 */
/**
 * @typedef {object} Turn
 * @property {string} label
 * @property {number} began
 * @property {number | null} ended
 * @property {Entry[]} entries
 * @property {number} waited
 * @property {number} model
 * @property {number} calls
 * @property {number} input
 * @property {number} output
 */

const SETTLE = 250; // milliseconds in which events are collected
const TICK = 1000; // milliseconds between two views of what still runs
const AXIS = 1000; // units of the drawing
const LEAST = 4; // units of the shortest bar
const NARROW = window.matchMedia("(max-width: 760px)");

/** @type {Record<string, any>} */
const ICONS = {
  said: "talk",
  model: "spark",
  call: "tool",
  question: "ask",
  sample: "talk",
  read: "file",
};

/** The timeline of the open conversation, read again when something happens in it. */
function useTurns(id) {
  const [turns, setTurns] = useState(/** @type {Turn[] | null} */ (null));
  const [now, setNow] = useState(0);
  const [words, setWords] = useState("");
  useEffect(() => {
    let gone = false;
    let timer = 0;
    // The clock of the host, as seen from here.
    let ahead = 0;
    const read = async () => {
      timer = 0;
      try {
        const found = await act("timeline", { session: id, after: talk(id).first.value });
        if (gone) return;
        ahead = found.now - Date.now() / 1000;
        setTurns(found.turns);
        setNow(found.now);
        setWords("");
      } catch (bad) {
        if (!gone) setWords(bad instanceof Error ? bad.message : String(bad));
      }
    };
    const receive = ({ seq, event }) => {
      if (seq && event.session === id && !timer) timer = window.setTimeout(read, SETTLE);
    };
    const tick = window.setInterval(() => setNow(Date.now() / 1000 + ahead), TICK);
    if (id) read();
    eventListeners.add(receive);
    return () => {
      gone = true;
      window.clearTimeout(timer);
      window.clearInterval(tick);
      eventListeners.delete(receive);
    };
  }, [id, talk(id).loaded.value, talk(id).first.value]);
  return { turns, now, words };
}

/**
 * A bar on the axis of its turn; the time that waited for the person is lighter.
 * @param {{entry: Entry, turn: Turn, now: number}} props
 */
function Bar({ entry, turn, now }) {
  const end = turn.ended ?? now;
  const length = Math.max(1e-3, end - turn.began);
  const x = (/** @type {number} */ at) =>
    Math.min(AXIS, Math.max(0, ((at - turn.began) / length) * AXIS));
  const box = (/** @type {number} */ since, /** @type {number | null} */ until) => {
    const left = Math.min(AXIS - LEAST, x(since));
    return { x: left, width: Math.max(LEAST, x(until ?? now) - left) };
  };
  return html`
    <svg
      class=${`time-bar is-${entry.kind} is-${entry.state}`}
      viewBox=${`0 0 ${AXIS} 8`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <rect class="time-axis" x="0" y="3.5" width=${AXIS} height="1" />
      <rect class="time-span" ...${box(entry.began, entry.ended)} y="0" height="8" />
      ${
        entry.kind === "call" &&
        entry.waited.map(
          ([since, until], at) => html`
            <rect key=${at} class="time-wait" ...${box(since, until)} y="0" height="8" />
          `,
        )
      }
    </svg>
  `;
}

/** Seconds that an entry waited for the person. @param {Entry} entry @param {number} now */
const waited = (entry, now) =>
  entry.waited.reduce((sum, [since, until]) => sum + (until ?? now) - since, 0);

/** What is said beside the name of an entry. @param {Entry} entry @param {number} now */
function facts(entry, now) {
  const whole = (entry.ended ?? now) - entry.began;
  const waits = entry.kind === "question" ? whole : waited(entry, now);
  const found = [];
  if (entry.kind === "question") found.push(`waited ${took(whole)}`);
  else if (entry.kind !== "said" && entry.kind !== "read")
    found.push(took(Math.max(0, whole - waits)));
  if (entry.kind === "call" && waits > 0.05) found.push(`waited ${took(waits)}`);
  if (entry.input || entry.output) found.push(tokens(entry));
  if (entry.ended === null) found.push("running");
  if (entry.state === "failed") found.push("failed");
  if (entry.state === "denied") found.push(entry.kind === "question" ? "no" : "not allowed");
  return found.join(" · ");
}

/** @param {{input: number, output: number}} of */
const tokens = ({ input, output }) =>
  `${input.toLocaleString("en")} in, ${output.toLocaleString("en")} out`;

/**
 * One entry: its name leads to its card.
 * @param {{entry: Entry, turn: Turn, now: number, id: string}} props `id`: of the conversation
 */
function EntryRow({ entry, turn, now, id }) {
  const [open, setOpen] = useState(false);
  const name = useId();
  const go = () => {
    if (NARROW.matches) panel.value = null;
    settings.value = "";
    reveal(talk(id), entry);
  };
  return html`
    <li class=${cls("time-entry", entry.call && "is-inner")}>
      <div class="time-line">
        <button type="button" class="time-open" onClick=${go}>
          <${Icon} name=${ICONS[entry.kind] ?? "list"} />
          <span id=${name} class="time-label">
            <${Say} text=${entry.label} />
            ${entry.server && html`${" "}<${Say} class="quiet" text=${entry.server} />`}
          </span>
          <span class="time-facts">${facts(entry, now)}</span>
        </button>
        ${
          entry.kind === "call" &&
          entry.server &&
          html`
            <button
              type="button"
              class="small quiet time-messages"
              aria-expanded=${open ? "true" : "false"}
              aria-label=${`Messages of ${visible(entry.label)}`}
              onClick=${() => setOpen(!open)}
            >
              Messages
            </button>
          `
        }
      </div>
      <${Bar} entry=${entry} turn=${turn} now=${now} />
      ${open && html`<${Messages} entry=${entry} ended=${entry.ended} />`}
    </li>
  `;
}

/**
 * The protocol's messages of a call; one opens below its row.
 * @param {{entry: Entry, ended: any}} props
 */
function Messages({ entry, ended }) {
  const { id: call, server } = entry;
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [shown, setShown] = useState(-1);
  const [message, setMessage] = useState(/** @type {any} */ (null));
  const [words, setWords] = useState("");
  const tell = (/** @type {unknown} */ bad) =>
    setWords(bad instanceof Error ? bad.message : String(bad));
  useEffect(() => {
    act("callMessages", { call, server }).then(setFound, tell);
  }, [call, server, ended]);
  const show = (/** @type {number} */ row) => {
    setMessage(null);
    setShown(row);
    setWords("");
    if (row >= 0) act("callMessage", { call, server, row }).then(setMessage, tell);
  };
  const first = found?.rows[0]?.at ?? 0;
  return html`
    <div class="time-protocol message">
      ${words && html`<p class="bad" role="alert"><${Say} text=${words} /></p>`}
      ${found?.gone && html`<p class="quiet small-line">${found.gone}</p>`}
      <ol class="time-rows" aria-label=${`Messages of ${visible(entry.label)}`}>
        ${found?.rows.map(
          (/** @type {any} */ row) => html`
            <li key=${row.number}>
              <button
                type="button"
                class=${cls("small quiet time-row", row.failed && "is-failed")}
                aria-expanded=${row.number === shown ? "true" : "false"}
                onClick=${() => show(row.number === shown ? -1 : row.number)}
              >
                <span class="time-arrow" aria-hidden="true">
                  ${row.sender === "client" ? "→" : "←"}
                </span>
                <span class="hidden-text">
                  ${row.sender === "client" ? "To the server:" : "From the server:"}
                </span>
                <span class="time-method">
                  <${Say} text=${row.method || KINDS[row.kind]} />
                  ${row.kind !== "request" && row.kind !== "notification" ? " answer" : ""}
                  ${isRetry(row) ? " again" : ""}
                </span>
                ${row.at > first && html`<span class="quiet">+${took(row.at - first)}</span>`}
              </button>
              ${
                row.number === shown &&
                message &&
                html`
                  <div class="time-message">
                    <${MessageView} message=${message} onOpen=${show} />
                  </div>
                `
              }
            </li>
          `,
        )}
      </ol>
    </div>
  `;
}

/** The parts of a turn in words. @param {Turn} turn @param {number} now */
function sums(turn, now) {
  const parts = [`${took((turn.ended ?? now) - turn.began)} in all`];
  if (turn.model) parts.push(`models ${took(turn.model)}`);
  if (turn.calls) parts.push(`calls ${took(turn.calls)}`);
  if (turn.waited) parts.push(`waited for you ${took(turn.waited)}`);
  if (turn.input || turn.output) parts.push(`tokens ${tokens(turn)}`);
  return parts.join(" · ");
}

/** The length of the axis of a turn. @param {{turn: Turn, now: number}} props */
const Axis = ({ turn, now }) => html`
  <div class="time-scale" aria-hidden="true">
    <span>0</span>
    <span>${took(((turn.ended ?? now) - turn.began) / 2)}</span>
    <span>${took((turn.ended ?? now) - turn.began)}</span>
  </div>
`;

/** The panel. */
export function TimelinePanel() {
  const id = current.value;
  const { turns, now, words } = useTurns(id);
  const end = useRef(/** @type {any} */ (null));
  const count = turns?.length ?? 0;
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [count]);
  if (!id) return html`<p class="quiet">Open a conversation to see its timeline.</p>`;
  const shown = talk(id);
  return html`
    ${words && html`<p class="bad" role="alert"><${Say} text=${words} /></p>`}
    ${
      turns &&
      !turns.length &&
      html`<p class="quiet">Nothing has happened in this conversation yet.</p>`
    }
    ${
      shown.earlier.value &&
      html`
        <button type="button" class="small" onClick=${() => shown.loadEarlier()}>
          Earlier turns
        </button>
      `
    }
    ${(turns ?? []).map(
      (turn, at) => html`
        <section key=${turn.began} class="time-turn" aria-label=${visible(turn.label) || "Turn"}>
          <h3>
            <${Say} text=${turn.label || "Before the first message"} />
          </h3>
          <p class="quiet small-line">${sums(turn, now)}</p>
          <${Axis} turn=${turn} now=${now} />
          <ol class="time-entries" aria-label=${several(turn.entries.length, "entry", "entries")}>
            ${turn.entries.map(
              (entry) => html`
                <${EntryRow}
                  key=${`${entry.kind} ${entry.id}`}
                  entry=${entry}
                  turn=${turn}
                  now=${now}
                  id=${id}
                />
              `,
            )}
          </ol>
          ${at === count - 1 && html`<span ref=${end}></span>`}
        </section>
      `,
    )}
  `;
}
