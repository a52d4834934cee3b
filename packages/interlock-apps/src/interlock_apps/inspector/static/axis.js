// @ts-check
// The geometry of the timeline: lanes, arrows and bars as paths of SVG, and the ticks of the axis.
// No element is made for a row.

/** @typedef {import("./tape-rows.js").Row} Row */

/** Widths in pixels; inspector.css has the same. */
export const LANES = 184;
export const AXIS = 260;

/** Where the lanes are, in pixels from the left. */
export const LANE = { client: 26, server: 76, stderr: 122, http: 162 };

const HEAD = 4; // pixels of an arrow head
const LEAST = 3; // pixels of the shortest bar

/**
 * The time that rows cover: seconds of the first and the last moment.
 * @param {Row[]} rows
 * @returns {[number, number]}
 */
export function span(rows) {
  let first = Infinity;
  let last = -Infinity;
  for (const row of rows) {
    first = Math.min(first, row.at);
    last = Math.max(last, row.at + (row.kind === "request" ? (row.duration ?? 0) : 0));
  }
  if (first > last) return [0, 1];
  return last - first < 1e-4 ? [first, first + 1e-4] : [first, last];
}

/**
 * Round values on an axis: at most four, one, two or five times a power of ten apart.
 * @param {number} seconds the length of the axis
 * @returns {number[]} seconds from the start
 */
export function ticks(seconds) {
  const rough = seconds / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough;
  const found = [];
  for (let at = 0; at <= seconds * 1.0001; at += step) found.push(at);
  return found;
}

/** A length of time as a label. @param {number} seconds */
export function label(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 0.001) return `${+(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 1) return `${+(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 120) return `${+seconds.toFixed(2)} s`;
  return seconds < 7200 ? `${+(seconds / 60).toFixed(1)} min` : `${+(seconds / 3600).toFixed(1)} h`;
}

/** The lane that a row is in. @param {Row} row @returns {keyof typeof LANE} */
export function lane(row) {
  if (row.kind === "stderr" || row.kind === "http") return row.kind;
  return row.sender === "client" ? "client" : "server";
}

/**
 * The paths of the visible rows.
 * @param {Row[]} rows
 * @param {{first: number, last: number, height: number, left: number, width: number, top: number,
 *   bottom: number}} place `first` and `last`: the time of the axis; `height` of a row; `left` and
 *   `width` of the axis
 * @returns {Record<string, string>} by class
 */
export function paths(rows, place) {
  const { first, last, height, left, width } = place;
  const x = (/** @type {number} */ at) => left + ((at - first) / (last - first)) * width;
  const d = { client: "", server: "", stderr: "", http: "", bar: "", failed: "", open: "" };
  let mark = "";
  let links = "";
  const places = new Map(rows.map((row, at) => [row.number, at * height + height / 2]));
  rows.forEach((row, at) => {
    const y = at * height + height / 2;
    const where = lane(row);
    if (where === "client" || where === "server") {
      const [from, to] =
        where === "client" ? [LANE.client, LANE.server] : [LANE.server, LANE.client];
      const back = to > from ? -HEAD : HEAD;
      const tip = to + back;
      d[where] += `M${from} ${y}H${to}M${tip} ${y - HEAD}L${to} ${y}L${tip} ${y + HEAD}`;
    } else d[where] += dot(LANE[where], y);
    if (row.kind === "request") {
      const begin = x(row.at);
      const end = row.duration === undefined ? left + width : x(row.at + row.duration);
      const kind = row.failed ? "failed" : row.duration === undefined ? "open" : "bar";
      d[kind] += `M${begin} ${y - 5}h${Math.max(LEAST, end - begin)}v10H${begin}z`;
    } else mark += `M${x(row.at)} ${y - 3}v6`;
    if (row.parent !== undefined) {
      // From the call down to what belongs to it; a call above the view is reached at its top.
      const from = places.get(row.parent) ?? 0;
      links += `M8 ${from}V${y}H${LANE.client - 6}`;
    }
  });
  return { ...d, mark, links };
}

const dot = (x, y) => `M${x - 3} ${y}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`;
