// @ts-check
// The part of a long conversation that is rendered. Items outside of it have no elements; it moves
// when the person scrolls near one of its ends.
import { signal, useLayoutEffect, useRef } from "../kit/kit.js";

/** Items of a window that follows the end, and by which a window grows. */
const STEP = 50;
/** Items that have elements at most. */
const MOST = 300;
/** Pixels from an end of the window at which it grows. */
const NEARBY = 600;
const SHOWN = 2000; // milliseconds for which a revealed item is marked

/**
 * The items from `first` to before `last`; `first` is null while the window follows the end.
 * @typedef {{first: number | null, last: number}} Range
 */

/** The range of each conversation. @type {WeakMap<any, {value: Range}>} */
const ranges = new WeakMap();

/** The item that is to be scrolled into view once it has an element. */
export const wanted = signal(/** @type {any} */ (null));

/** @param {any} talk */
export function rangeOf(talk) {
  let found = ranges.get(talk);
  if (!found) {
    found = signal(/** @type {Range} */ ({ first: null, last: Infinity }));
    ranges.set(talk, found);
  }
  return found;
}

/**
 * The items that have elements.
 * @param {any[]} items
 * @param {Range} range
 * @returns {[number, number]} the first, and the one after the last
 */
export function bounds(items, { first, last }) {
  const end = Math.min(last, items.length);
  return [first === null ? Math.max(0, end - STEP) : Math.min(first, end), end];
}

/**
 * Earlier items were put before the others: the same ones stay in the window.
 * @param {any} talk
 * @param {number} added
 */
export function shift(talk, added) {
  const range = rangeOf(talk);
  const { first, last } = range.value;
  if (first !== null) range.value = { first: first + added, last: last + added };
}

/** Show the end of a conversation again, and follow it. @param {any} talk */
export function follow(talk) {
  const range = rangeOf(talk);
  if (range.value.first !== null || range.value.last !== Infinity)
    range.value = { first: null, last: Infinity };
}

/**
 * Whether an item is what an entry of the timeline is about.
 * @param {any} item
 * @param {{kind: string, id: string, call: string, began: number, ended: number | null}} entry
 */
function isAbout(item, entry) {
  if (entry.kind === "call") return item.kind === "call" && item.id === entry.id;
  if (entry.kind === "question")
    return (
      (item.kind === "call" && item.id === entry.call) ||
      (item.kind === "question" && item.asked.question.id === entry.id)
    );
  if (entry.kind === "sample") return item.kind === "sampled" && item.at === entry.ended;
  return item.kind === entry.kind && item.at === entry.began;
}

/**
 * Scroll to what an entry of the timeline is about, and mark it for a moment.
 * @param {any} talk
 * @param {any} entry
 * @returns {boolean} whether it was found
 */
export function reveal(talk, entry) {
  const items = talk.items.value;
  const at = items.findIndex((/** @type {any} */ item) => isAbout(item, entry));
  if (at < 0) return false;
  return revealItem(talk, items[at]);
}

/** @param {any} talk @param {any} item */
export function revealItem(talk, item) {
  const items = talk.items.value;
  const at = items.indexOf(item);
  if (at < 0) return false;
  const range = rangeOf(talk);
  const [first, last] = bounds(items, range.value);
  if (at < first || at >= last) {
    const from = Math.max(0, at - STEP / 2);
    const to = at + STEP / 2;
    range.value = { first: from, last: to >= items.length ? Infinity : to };
  }
  wanted.value = { item };
  return true;
}

/**
 * Move the window of a conversation while the person scrolls, without moving what they look at.
 * @param {any} talk
 * @param {{current: any}} box the element that scrolls
 * @param {{current: boolean}} stuck whether the end is followed
 */
export function useItemWindow(talk, box, stuck) {
  const range = rangeOf(talk);
  const items = talk.items.value;
  const [first, last] = bounds(items, range.value);
  const anchor = useRef(/** @type {{element: Element, top: number} | null} */ (null));
  const asked = wanted.value;

  /** Remember where an element in view is, before the window changes. */
  const hold = () => {
    if (!box.current) return;
    const view = box.current.getBoundingClientRect();
    for (const element of box.current.querySelectorAll("[data-item]")) {
      const { top, bottom } = element.getBoundingClientRect();
      if (bottom > view.top) {
        anchor.current = { element, top };
        return;
      }
    }
  };

  /** Show more items above those that are shown. */
  const extend = () => {
    const [from, to] = bounds(talk.items.value, range.value);
    const top = Math.max(0, from - STEP);
    const bottom = to - top > MOST ? top + MOST : to;
    hold();
    range.value = { first: top, last: bottom >= talk.items.value.length ? Infinity : bottom };
  };

  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    const below = scrollHeight - scrollTop - clientHeight;
    if (scrollTop < NEARBY && first > 0) {
      extend();
    } else if (below < NEARBY && last < items.length) {
      hold();
      const to = last + STEP;
      range.value = {
        first: Math.max(first, to - MOST),
        last: to >= items.length ? Infinity : to,
      };
    } else if (scrollTop < NEARBY && first === 0 && talk.earlier.value && !stuck.current) {
      talk.loadEarlier().then((/** @type {number} */ added) => added && extend());
    } else if (!stuck.current && range.value.first === null) {
      // New items at the end must not take away those that are read.
      range.value = { first, last: range.value.last };
    }
  };

  useLayoutEffect(() => {
    const held = anchor.current;
    anchor.current = null;
    if (held?.element.isConnected && !stuck.current)
      box.current.scrollTop += held.element.getBoundingClientRect().top - held.top;
  }, [first, last, items.length]);

  useLayoutEffect(() => {
    if (!asked) return undefined;
    const element = box.current.querySelector(`[data-item="${asked.item.key}"]`);
    if (!element) return undefined;
    wanted.value = null;
    stuck.current = false;
    element.classList.add("is-revealed");
    element.scrollIntoView({ block: "center" });
    const target = element.querySelector("button, a, [tabindex]") ?? element;
    if (target === element) element.setAttribute("tabindex", "-1");
    target.focus({ preventScroll: true });
    window.setTimeout(() => element.classList.remove("is-revealed"), SHOWN);
    return undefined;
  }, [asked, first, last]);

  return { first, last, scrolled };
}
