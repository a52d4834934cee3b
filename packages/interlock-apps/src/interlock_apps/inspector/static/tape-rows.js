// @ts-check
// The rows of a timeline, fetched by range: the server filters, and this page has only what it
// shows.
import { batch, signal } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { on } from "./store.js";

/** @typedef {import("../kit/message-view.js").Row} Row */
/** @typedef {{recording: string, filter: string, connections: string[]}} Query */

const BLOCK = 64;
const MOST_BLOCKS = 64;
const SETTLE = 120; // milliseconds in which new rows are collected

/** The rows of one query. */
export class TapeRows {
  /** @param {Query} query */
  constructor(query) {
    this.query = query;
    this.total = signal(0);
    this.loaded = signal(false);
    this.complete = signal(true);
    /** Why the filter was refused. */
    this.refused = signal("");
    /** Increased when rows have arrived. */
    this.version = signal(0);
    this.blocks = /** @type {Map<number, {rows: Row[], generation: number}>} */ (new Map());
    this.asked = /** @type {Map<number, number>} */ (new Map());
    this.generation = 0;
    this.wanted = [0, 0];
    this.timer = 0;
    this.closed = false;
    const changed = () => {
      if (!this.timer) this.timer = window.setTimeout(() => this.refresh(), SETTLE);
    };
    const stops = [
      on("rows", (event) => {
        if (event.data.recording === query.recording) changed();
      }),
      on("fresh", changed),
    ];
    this.stop = () => {
      this.closed = true;
      window.clearTimeout(this.timer);
      for (const stop of stops) stop();
    };
    this.refresh();
  }

  /**
   * The row at a position, if it has been fetched.
   * @param {number} at
   * @returns {Row | undefined}
   */
  at(at) {
    return this.blocks.get(Math.floor(at / BLOCK))?.rows[at % BLOCK];
  }

  /** Fetch the rows from one position up to another. @param {number} from @param {number} to */
  want(from, to) {
    this.wanted = [from, to];
    this.fetch();
  }

  /** Fetch what is wanted again: rows were added, and requests got their responses. */
  refresh() {
    this.timer = 0;
    this.generation += 1;
    this.fetch();
  }

  fetch() {
    if (this.closed) return;
    const [from, to] = this.wanted;
    for (let block = Math.floor(from / BLOCK); block <= Math.floor(to / BLOCK); block++) {
      const known = this.blocks.get(block)?.generation ?? -1;
      const asked = this.asked.get(block) ?? -1;
      if (Math.max(known, asked) < this.generation) this.load(block, this.generation);
    }
  }

  /** @param {number} block @param {number} generation */
  async load(block, generation) {
    this.asked.set(block, generation);
    let answer;
    try {
      answer = await act("rows", { ...this.query, start: block * BLOCK, count: BLOCK });
    } catch (bad) {
      if (this.closed) return;
      batch(() => {
        this.refused.value = bad instanceof Error ? bad.message : String(bad);
        this.loaded.value = true;
      });
      return;
    } finally {
      if (this.asked.get(block) === generation) this.asked.delete(block);
    }
    if (this.closed || (this.blocks.get(block)?.generation ?? -1) > generation) return;
    this.blocks.delete(block);
    this.blocks.set(block, { rows: answer.rows, generation });
    for (const key of this.blocks.keys()) {
      if (this.blocks.size <= MOST_BLOCKS) break;
      this.blocks.delete(key); // the oldest
    }
    batch(() => {
      this.refused.value = "";
      this.total.value = answer.total;
      this.complete.value = answer.complete;
      this.loaded.value = true;
      this.version.value += 1;
    });
  }
}
