// @ts-check
// The timeline: every line of a tape in order, with lanes, durations on an axis, and a filter. The
// list is virtual: only the visible rows are elements, and only they are fetched.
import {
  Icon,
  Say,
  cls,
  html,
  several,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../kit/kit.js";
import { act } from "../kit/net.js";
import { AXIS, LANE, LANES, label, paths, span, ticks } from "./axis.js";
import { connections, recordings, show, view } from "./store.js";
import { isRetry } from "../kit/message-view.js";
import { TapeRows } from "./tape-rows.js";

/** @typedef {import("./tape-rows.js").Row} Row */
/** @typedef {import("./tape-rows.js").Query} Query */

const WIDE = window.matchMedia("(min-width: 761px)");
const HEIGHT = { wide: 28, narrow: 52 }; // pixels of a row; inspector.css has the same
const BEYOND = 4; // rows above and below the view
const MOST_HEIGHT = 12_000_000; // pixels: browsers cannot scroll further
const PAD = 8; // pixels beside the axis
const TYPING = 250; // milliseconds after the last key

/** The height of a row on this screen. */
function useRowHeight() {
  const [wide, setWide] = useState(WIDE.matches);
  useEffect(() => {
    const change = () => setWide(WIDE.matches);
    WIDE.addEventListener("change", change);
    return () => WIDE.removeEventListener("change", change);
  }, []);
  return wide ? HEIGHT.wide : HEIGHT.narrow;
}

/** The word for a row in its list. @param {Row} row */
function title(row) {
  if (row.kind === "stderr") return "stderr";
  if (row.kind === "http") return "HTTP";
  if (row.kind === "exit") return "connection ended";
  if (row.kind === "bytes") return "not a message";
  return row.method || row.kind;
}

/** @param {number} seconds since the first row */
const clock = (seconds) => (seconds < 1000 ? seconds.toFixed(3) : seconds.toFixed(1));

/**
 * One row. Its lanes and its bar are drawn by `Drawing`.
 * @param {{row: Row, first: number, chip: boolean}} props `first`: the time of the first row
 */
function RowText({ row, first, chip }) {
  const answers = row.kind === "response" || row.kind === "error";
  const at = connections.value.findIndex((one) => one.name === row.connection);
  return html`
    <span class="row-text">
      ${row.sender && html`<span class="hidden-text">from the ${row.sender}</span>`}
      ${chip && html`<${Say} class=${`chip c${at % 6}`} text=${row.connection ?? ""} />`}
      <span class=${cls("row-method", answers && "is-answer")}>
        ${
          answers &&
          html`<span aria-hidden="true">↳ </span><span class="hidden-text">response to</span>`
        }
        <${Say} text=${title(row)} />
      </span>
      ${row.name && html`<strong class="row-name"><${Say} text=${row.name} /></strong>`}
      ${row.failed && html`<span class="row-failed">failed</span>`}
      ${isRetry(row) && html`<span class="row-retry">retry with answers</span>`}
      ${row.summary && html`<span class="row-summary"><${Say} text=${row.summary} /></span>`}
    </span>
    <span class="row-took">${row.duration === undefined ? "" : label(row.duration)}</span>
    <span class="row-at">${clock(row.at - first)}</span>
  `;
}

/**
 * The lanes and bars of the visible rows.
 * @param {{rows: Row[], height: number}} props
 */
function Drawing({ rows, height }) {
  const [first, last] = span(rows);
  const whole = rows.length * height;
  const d = paths(rows, {
    first,
    last,
    height,
    left: PAD,
    width: AXIS - 2 * PAD,
    top: 0,
    bottom: whole,
  });
  const grid = ticks(last - first)
    .map((at) => `M${PAD + (at / (last - first)) * (AXIS - 2 * PAD)} 0V${whole}`)
    .join("");
  const lines = Object.values(LANE)
    .map((x) => `M${x} 0V${whole}`)
    .join("");
  return html`
    <svg class="lanes" width=${LANES} height=${whole} aria-hidden="true">
      <path class="grid" d=${lines} />
      <path class="links" d=${d.links} />
      ${["client", "server", "stderr", "http"].map(
        (one) => html`<path key=${one} class=${`of-${one}`} d=${d[one]} />`,
      )}
    </svg>
    <svg class="bars" width=${AXIS} height=${whole} aria-hidden="true">
      <path class="grid" d=${grid} />
      <path class="mark" d=${d.mark} />
      <path class="open" d=${d.open} />
      <path class="bar" d=${d.bar} />
      <path class="failed" d=${d.failed} />
    </svg>
  `;
}

/**
 * The names of the lanes, and the labels of the axis.
 * @param {{rows: Row[], zero: number}} props `zero`: the time of the first row
 */
function Head({ rows, zero }) {
  const [first, last] = span(rows);
  const names = { client: "Client", server: "Server", stderr: "stderr", http: "HTTP" };
  const long = last - first;
  return html`
    <div class="timeline-head" aria-hidden="true">
      <span class="head-lanes">
        ${Object.entries(names).map(
          ([key, name]) => html`
            <span key=${key} class="head-lane" style=${{ left: `${LANE[key]}px` }}>${name}</span>
          `,
        )}
      </span>
      <span class="grow">Message</span>
      <span class="row-took">Took</span>
      <span class="row-at">At (s)</span>
      <span class="head-axis">
        ${
          rows.length > 0 &&
          ticks(long).map(
            (at, number) => html`
              <span
                key=${number}
                class="head-tick"
                style=${{ left: `${PAD + (at / long) * (AXIS - 2 * PAD)}px` }}
              >
                ${number ? `+${label(at)}` : clock(first - zero)}
              </span>
            `,
          )
        }
      </span>
    </div>
  `;
}

/**
 * A timeline of one query.
 * @param {{query: Query, name: string, chips?: boolean}} props `name`: its name for screen readers;
 *   `chips`: whether rows say their connection
 */
export function Timeline({ query, name, chips = false }) {
  const key = JSON.stringify(query);
  const rows = useMemo(() => new TapeRows(query), [key]);
  useEffect(() => rows.stop, [rows]);
  const height = useRowHeight();
  const box = useRef(/** @type {any} */ (null));
  const [scroll, setScroll] = useState({ top: 0, size: 600 });
  const follows = useRef(true);
  const [atEnd, setAtEnd] = useState(true);
  const [zero, setZero] = useState(/** @type {number | null} */ (null));
  const total = rows.total.value;
  rows.version.value; // renders again when rows have arrived

  const whole = total * height;
  const shown = Math.min(whole, MOST_HEIGHT);
  const ratio = shown > scroll.size ? (whole - scroll.size) / (shown - scroll.size) : 1;
  const offset = scroll.top * ratio;
  const from = Math.max(0, Math.floor(offset / height) - BEYOND);
  const to = Math.min(total, Math.ceil((offset + scroll.size) / height) + BEYOND);
  const visible = [];
  for (let at = from; at < to; at++) {
    const row = rows.at(at);
    if (!row) break;
    visible.push(row);
  }
  const begin = zero ?? 0;
  const here = view.value.in === query.recording ? Number(view.value.row ?? -1) : -1;

  useEffect(() => rows.want(from, Math.max(from, to - 1)), [rows, from, to]);
  useEffect(() => {
    const first = rows.at(0);
    if (first && zero === null) setZero(first.at);
  });

  useLayoutEffect(() => {
    const frame = box.current;
    let asked = 0;
    const measure = () => {
      asked = 0;
      setScroll({ top: frame.scrollTop, size: frame.clientHeight });
    };
    const scrolled = () => {
      follows.current = frame.scrollTop + frame.clientHeight >= frame.scrollHeight - 2 * height;
      setAtEnd(follows.current);
      if (!asked) asked = requestAnimationFrame(measure);
    };
    frame.addEventListener("scroll", scrolled, { passive: true });
    const resized = new ResizeObserver(measure);
    resized.observe(frame);
    return () => {
      frame.removeEventListener("scroll", scrolled);
      resized.disconnect();
      cancelAnimationFrame(asked);
    };
  }, [height]);

  // New rows are shown while the end of the list is shown.
  useLayoutEffect(() => {
    if (follows.current) box.current.scrollTop = shown;
  }, [total, shown]);

  // The row in the address of the page is shown.
  useEffect(() => {
    if (here < 0) return;
    follows.current = false;
    act("place", { ...query, row: here }).then(
      (at) => reveal(at),
      () => {},
    );
  }, [key]);

  /** Scroll to a position. @param {number} at */
  const reveal = (at) => {
    const frame = box.current;
    if (!frame) return;
    const top = (at * height) / ratio;
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (top + height > frame.scrollTop + frame.clientHeight)
      frame.scrollTop = top + height - frame.clientHeight;
  };

  /** @param {Row} row @param {boolean} replaces */
  const open = (row, replaces) => show({ row: String(row.number), in: query.recording }, replaces);

  const keys = (/** @type {KeyboardEvent} */ event) => {
    const page = Math.max(1, Math.floor(scroll.size / height) - 1);
    const now = visible.findIndex((row) => row.number === here);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[event.key];
    if (event.key === "Home" || event.key === "End") {
      event.preventDefault();
      box.current.scrollTop = event.key === "Home" ? 0 : shown;
      return;
    }
    if (by === undefined || !visible.length) return;
    event.preventDefault();
    if (now < 0) {
      open(visible[Math.min(BEYOND, visible.length - 1)], true);
      return;
    }
    const at = Math.max(0, Math.min(total - 1, from + now + by));
    reveal(at);
    const next = rows.at(at);
    if (next) open(next, true);
  };

  const id = (/** @type {Row} */ row) => `row-${query.recording}-${row.number}`;
  // Script time while the list scrolls: an element of a row that stays is not compared again, and
  // the nodes of a row that leaves are used for the next one, because as many slots are in view.
  const slots = Math.ceil(scroll.size / height) + 2 * BEYOND + 1;
  const elements = useRef(/** @type {WeakMap<Row, {key: string, element: any}>} */ (new WeakMap()));
  const element = (/** @type {Row} */ row, /** @type {number} */ place) => {
    const current = row.number === here;
    const state = `${place} ${slots} ${total} ${begin} ${current} ${chips}`;
    const known = elements.current.get(row);
    if (known?.key === state) return known.element;
    const made = html`
      <div
        key=${place % slots}
        id=${id(row)}
        class=${cls("row", current && "is-current")}
        role="option"
        aria-selected=${current ? "true" : "false"}
        aria-setsize=${total}
        aria-posinset=${place}
        onClick=${() => open(row, false)}
      >
        <${RowText} row=${row} first=${begin} chip=${chips} />
      </div>
    `;
    elements.current.set(row, { key: state, element: made });
    return made;
  };

  // Until the rows of a new place have come, those of the old one stay, hidden, so that their nodes
  // are used again.
  const before = useRef(/** @type {any[]} */ ([]));
  const waits = !visible.length && total > 0;
  if (!waits) before.current = visible.map((row, at) => element(row, from + at + 1));

  const top = from * height - offset + scroll.top;
  const active = visible.some((row) => row.number === here);
  return html`
    <div class="timeline">
      <${Head} rows=${visible} zero=${begin} />
      <div
        ref=${box}
        class="timeline-box"
        role="listbox"
        tabindex="0"
        aria-label=${name}
        aria-activedescendant=${active ? `row-${query.recording}-${here}` : undefined}
        onKeyDown=${keys}
      >
        <div class="timeline-whole" role="presentation" style=${{ height: `${shown}px` }}>
          <div
            class=${cls("timeline-rows", waits && "is-waiting")}
            role="presentation"
            style=${{ transform: `translateY(${top}px)` }}
          >
            <${Drawing} rows=${visible} height=${height} />
            ${before.current}
          </div>
        </div>
      </div>
      ${
        rows.loaded.value &&
        total === 0 &&
        !rows.refused.value &&
        html`<p class="quiet center timeline-empty">
          ${query.filter ? "No message matches the filter." : "There are no messages yet."}
        </p>`
      }
      ${
        !atEnd &&
        html`
          <button
            type="button"
            class="small to-newest"
            onClick=${() => {
              box.current.scrollTop = shown;
            }}
          >
            Newest
          </button>
        `
      }
      <p class="timeline-foot quiet" role="status">
        ${
          rows.refused.value
            ? html`<span class="bad"><${Say} text=${rows.refused.value} /></span>`
            : `${several(total, "line")}${rows.complete.value ? "" : ", reading the tape …"}`
        }
      </p>
    </div>
  `;
}

const QUICK = [
  ["error", "Errors"],
  ["method:tools/call", "Tool calls"],
  ["question", "Questions"],
  ["slower:1s", "Slower than 1 s"],
];

/** The filter, with a few terms as buttons. */
function Filter() {
  const filter = view.value.filter ?? "";
  const [text, setText] = useState(filter);
  const typed = useRef(0);
  const field = useRef(/** @type {any} */ (null));
  // The address may change without the field: by the back button.
  useEffect(() => {
    if (document.activeElement !== field.current) setText(filter);
  }, [filter]);
  useEffect(() => () => window.clearTimeout(typed.current), []);
  const change = (/** @type {string} */ words) => {
    setText(words);
    window.clearTimeout(typed.current);
    typed.current = window.setTimeout(() => show({ filter: words.trim() }, true), TYPING);
  };
  const terms = text.split(/\s+/).filter(Boolean);
  const turn = (/** @type {string} */ term) =>
    change(
      (terms.includes(term) ? terms.filter((one) => one !== term) : [...terms, term]).join(" "),
    );
  return html`
    <div class="filter" role="search">
      <label class="filter-field">
        <${Icon} name="search" />
        <span class="hidden-text">Filter</span>
        <input
          ref=${field}
          type="search"
          spellcheck=${false}
          autocomplete="off"
          placeholder="method:tools/call tool:search slower:200ms error"
          value=${text}
          onInput=${(event) => change(event.target.value)}
        />
      </label>
      <div class="filter-quick" role="group" aria-label="Frequent filters">
        ${QUICK.map(
          ([term, words]) => html`
            <button
              key=${term}
              type="button"
              class="small quiet"
              aria-pressed=${terms.includes(term) ? "true" : "false"}
              onClick=${() => turn(term)}
            >
              ${words}
            </button>
          `,
        )}
      </div>
    </div>
  `;
}

/** The recording that is shown for all connections. */
function chosen() {
  const all = recordings.value;
  const live = connections.value.some((one) => one.status !== "recorded");
  return (
    all.find((one) => one.name === view.value.recording) ??
    all.find((one) => (one.name === "live") === live) ??
    all[0]
  );
}

/** Which recording is shown. */
function RecordingChoice({ now }) {
  const all = recordings.value.filter((one) => one.name === now || one.count > 1);
  if (all.length < 2) return null;
  return html`
    <label class="recording-choice">
      Recording
      <select
        class="small"
        value=${now}
        onChange=${(event) => show({ recording: event.target.value, row: "", in: "" })}
      >
        ${all.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}
      </select>
    </label>
  `;
}

/**
 * The tab of the timeline: of one connection, or of all.
 * @param {{connection: import("./store.js").Connection | null}} props
 */
export function TimelinePanel({ connection }) {
  const recording = connection ? connection.recording : chosen()?.name;
  if (!recording) return html`<p class="quiet center">There is nothing to show.</p>`;
  const query = {
    recording,
    filter: view.value.filter ?? "",
    connections: connection ? [connection.name] : [],
  };
  const several = connections.value.filter((one) => one.recording === recording).length > 1;
  return html`
    <div class="timeline-bar">
      <${Filter} />
      ${!connection && html`<${RecordingChoice} now=${recording} />`}
    </div>
    <${Timeline}
      key=${JSON.stringify([recording, query.connections])}
      query=${query}
      name="Messages"
      chips=${!connection && several}
    />
  `;
}
