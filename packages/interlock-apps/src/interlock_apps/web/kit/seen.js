// @ts-check
// Which values of a call's arguments were on screen before it is allowed. Elements name the value
// that they show in `data-leaf` (a JSON pointer); this measures which of them were visible.
import { useCallback, useLayoutEffect, useRef, useState } from "./kit.js";

/** Half a line: text in the fade at the end of a fold cannot be read. */
const FADE = 24;
/** Rounding errors of browsers, in pixels. */
const ROUNDING = 2;

/** A key as a step of a JSON pointer (RFC 6901). @param {string | number} key */
export const step = (key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** Whether a value has no parts: a text, a number, an empty list. @param {any} value */
export const isLeaf = (value) =>
  value === null || typeof value !== "object" || Object.keys(value).length === 0;

/**
 * Every value without parts in the arguments, by its pointer.
 * @param {any} value
 * @param {string} [at]
 * @param {Map<string, any>} [found]
 * @returns {Map<string, any>}
 */
export function leaves(value, at = "", found = new Map()) {
  if (isLeaf(value)) {
    if (at) found.set(at, value);
  } else {
    for (const [key, inner] of Object.entries(value)) leaves(inner, at + step(key), found);
  }
  return found;
}

/** A value at its pointer: a new value at the same pointer counts as unseen. */
const mark = (at, value) => `${at} ${JSON.stringify(value)}`;

/**
 * The part of the window in which the content of an element is visible.
 * @param {HTMLElement | null} box @param {Map<HTMLElement, DOMRect>} known @returns {DOMRect}
 */
function clipOf(box, known) {
  if (!box) return new DOMRect(0, 0, window.innerWidth, window.innerHeight);
  const found = known.get(box);
  if (found) return found;
  let clip = clipOf(box.parentElement, known);
  const style = getComputedStyle(box);
  if (style.overflowX !== "visible" || style.overflowY !== "visible") {
    const rect = box.getBoundingClientRect();
    const fade = box.parentElement?.classList.contains("is-folded") ? FADE : 0;
    const left = Math.max(clip.left, rect.left);
    const top = Math.max(clip.top, rect.top);
    const right = Math.max(left, Math.min(clip.right, rect.right));
    const bottom = Math.max(top, Math.min(clip.bottom, rect.bottom - fade));
    clip = new DOMRect(left, top, right - left, bottom - top);
  }
  known.set(box, clip);
  return clip;
}

/** Where the answers cover the rest of their question, if they do. @param {HTMLElement} box */
const answersAt = (box) =>
  box.closest("[data-question]")?.querySelector(".answers")?.getBoundingClientRect().top ??
  Infinity;

/**
 * Whether a foreign element covers the visible part of an element: a menu, a notice, an app.
 * @param {HTMLElement} element
 * @param {number} left
 * @param {number} right
 * @param {number} top
 * @param {number} bottom
 */
function isCovered(element, left, right, top, bottom) {
  const question = element.closest("[data-question]");
  const middle = (left + right) / 2;
  return [top + 1, (top + bottom) / 2, bottom - 1].some((height) => {
    const above = document.elementFromPoint(middle, height);
    return above !== null && above !== element && !question?.contains(above);
  });
}

/** Whether a form field shows its whole value. @param {HTMLElement} field */
const isWhole = (field) =>
  field.matches("textarea, input:not([type=checkbox], [type=radio])") &&
  field.scrollWidth <= field.clientWidth + ROUNDING &&
  field.scrollHeight <= field.clientHeight + ROUNDING;

/**
 * Tracks which values have been seen. `box` is the element that shows them; a value in a form field
 * (`data-field`) is seen if the field shows all of it. `ready` is false before the first
 * measurement.
 * @param {{current: HTMLElement | null}} box @param {any} value
 * @returns {{total: number, unseen: number, ready: boolean, seeAll: () => void,
 *   see: (pointer: string) => void, wrote: (values: any, pointer: string) => void}}
 */
export function useSeen(box, value) {
  const seen = useRef(/** @type {Set<string>} */ (new Set()));
  const parts = useRef(/** @type {Map<string, [number, number]>} */ (new Map()));
  const all = leaves(value);
  const left = [...all].filter(([at, leaf]) => !seen.current.has(mark(at, leaf)));
  const [, again] = useState(0);
  const now = useRef(left);
  now.current = left;

  /** Mark all values at this pointer and below as seen. */
  const saw = (pointer) => {
    const found = now.current.filter(([at]) => at === pointer || at.startsWith(`${pointer}/`));
    for (const [at, leaf] of found) seen.current.add(mark(at, leaf));
    return found.length > 0;
  };

  const [ready, setReady] = useState(false);
  const look = useCallback(() => {
    setReady(true);
    if (!box.current || !now.current.length) return;
    if (document.visibilityState !== "visible" || document.querySelector("dialog[open]")) return;
    const known = new Map();
    const answers = answersAt(box.current);
    let some = false;
    const shown = box.current.querySelectorAll("[data-leaf], .editor [data-field]");
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (shown)) {
      if (element.closest(".editor") && !isWhole(element)) continue;
      const clip = clipOf(element.parentElement, known);
      const rect = element.getBoundingClientRect();
      const beside = rect.left < clip.left - ROUNDING || rect.right > clip.right + ROUNDING;
      const above = Math.max(rect.top, clip.top) - rect.top;
      const below = Math.min(rect.bottom, clip.bottom, answers) - rect.top;
      if (beside || below <= above || !rect.width) continue;
      if (isCovered(element, rect.left, rect.right, rect.top + above, rect.top + below)) continue;
      const pointer = element.dataset.leaf ?? step(element.dataset.field ?? "");
      // A value that is taller than the window is seen piece by piece.
      const key = `${pointer} ${element.textContent?.length} ${rect.height}`;
      const [from, to] = parts.current.get(key) ?? [above, below];
      const joined = above <= to && below >= from;
      const part = joined ? [Math.min(from, above), Math.max(to, below)] : [above, below];
      parts.current.set(key, /** @type {[number, number]} */ (part));
      if (part[0] <= ROUNDING && part[1] >= rect.height - ROUNDING && saw(pointer)) {
        some = true;
        now.current = now.current.filter(([at, one]) => !seen.current.has(mark(at, one)));
      }
    }
    if (some) again((count) => count + 1);
  }, []);

  // Content that is laid out and folded again before it is painted was never seen, so wait for a
  // frame.
  const frame = useRef(0);
  const settle = useCallback(() => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => {
      frame.current = requestAnimationFrame(() => {
        frame.current = 0;
        look();
      });
    });
  }, []);
  useLayoutEffect(settle);
  // Scrolling takes many frames: measure during it.
  const later = useCallback(() => {
    if (!frame.current) {
      frame.current = requestAnimationFrame(() => {
        frame.current = 0;
        look();
      });
    }
  }, []);
  useLayoutEffect(() => {
    const sized = new ResizeObserver(settle);
    if (box.current) sized.observe(box.current);
    window.addEventListener("scroll", later, true);
    window.addEventListener("resize", later);
    document.addEventListener("visibilitychange", later);
    document.addEventListener("focusin", later); // a dialog above it has closed
    return () => {
      cancelAnimationFrame(frame.current);
      sized.disconnect();
      window.removeEventListener("scroll", later, true);
      window.removeEventListener("resize", later);
      document.removeEventListener("visibilitychange", later);
      document.removeEventListener("focusin", later);
    };
  }, []);

  /** The person has unfolded the values at a pointer and below. @param {string} pointer */
  const see = (pointer) => {
    saw(pointer);
    again((count) => count + 1);
  };
  const seeAll = () => see("");
  /** The person has written the value at a pointer. */
  const wrote = (values, pointer) => {
    for (const [at, leaf] of leaves(values)) {
      if (at === pointer || at.startsWith(`${pointer}/`)) seen.current.add(mark(at, leaf));
    }
  };
  return { total: all.size, unseen: left.length, ready, seeAll, see, wrote };
}
