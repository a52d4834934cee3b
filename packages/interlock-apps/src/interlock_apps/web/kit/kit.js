// @ts-check
// The basis of every component: the libraries under short names, and components that do not depend
// on the host.
import { Component, Fragment, createContext, h, render } from "./vendor/preact.js";
import {
  useCallback,
  useContext,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "./vendor/hooks.js";
import {
  batch,
  computed,
  effect,
  signal,
  useComputed,
  useSignal,
  useSignalEffect,
} from "./vendor/signals.js";
import htm from "./vendor/htm.js";

export { Component, Fragment, createContext, h, render };
export { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState };
export { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect };

export const html = htm.bind(h);

/** Join the class names that are set. @param {...(string|false|null|undefined)} names */
export const cls = (...names) => names.filter(Boolean).join(" ");

// Invisible characters, and characters that change the text direction. The host marks them already;
// this catches the rest.
const UNSEEN = new RegExp(
  [
    String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f]`,
    String.raw`[\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]`,
    String.raw`[\u{e0000}-\u{e007f}]`,
  ].join("|"),
  "gu",
);

/** A text with invisible and direction-changing characters made visible. @param {unknown} text */
export function visible(text) {
  return String(text ?? "")
    .replace(/\r\n?/g, "\n")
    .replace(
      UNSEEN,
      (sign) => `⟨U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
    );
}

/** Foreign text, isolated so that its direction cannot spread. */
export const Say = ({ text, ...rest }) => html`<bdi ...${rest}>${visible(text)}</bdi>`;

const PATHS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  send: "M12 19V6M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7L7 17",
  ask: "M9.2 9a3 3 0 1 1 4.2 3c-.9.5-1.4 1-1.4 2.2M12 17.6v.2",
  wait: "M12 7v5l3 2",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  play: "M8 5l11 7-11 7z",
  spark: "M12 4l2 6 6 2-6 2-2 6-2-6-6-2 6-2z",
  warn: "M12 4l9 16H3zM12 10v4M12 17v.2",
  file: "M7 3h7l4 4v14H7zM14 3v4h4",
  folder: "M3 7h6l2 2h10v10H3z",
  search: "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM20 20l-4.5-4.5",
  chevron: "M9 6l6 6-6 6",
  edit: "M5 19l1-4L16 5l3 3L9 18z",
  sun: [
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v2M12 19v2M3 12h2M19 12h2",
    "M5.6 5.6L7 7M17 17l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4",
  ].join(""),
  moon: "M19 14.5A7.5 7.5 0 1 1 9.5 5a6 6 0 0 0 9.5 9.5z",
  half: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  server: "M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.2M7.5 16h.2",
  prompt: "M14 5l-4 14",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.2M4 12h.2M4 18h.2",
  rule: "M6 4h12v16l-6-3-6 3z",
  tool: "M14 6a4 4 0 0 0 5 5l-8 8a2.5 2.5 0 0 1-4-4z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  save: "M12 4v11M7 10l5 5 5-5M5 20h14",
  clip: "M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.5-6.5L13 4a3 3 0 0 1 4.5 4.5L10 16a1.5 1.5 0 0 1-2-2l6-6",
  at: "M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0zm0 0c0 3 4 3 4 0a8 8 0 1 0-3.2 6.4",
  bell: "M6 17V11a6 6 0 0 1 12 0v6l1.5 1.5h-15zM10.5 21h3",
  lock: "M6 11h12v9H6zM9 11V8a3 3 0 0 1 6 0v3",
  out: "M13 5h6v6M19 5l-9 9M17 14v5H5V7h5",
  talk: "M4 5h16v11H9l-5 4z",
  gear: [
    "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 3v3M12 18v3M3 12h3M18 12h3",
    "M5.6 5.6l2.2 2.2M16.2 16.2l2.2 2.2M5.6 18.4l2.2-2.2M16.2 7.8l2.2-2.2",
  ].join(""),
  more: "M6 12h.2M12 12h.2M18 12h.2",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  again: "M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5",
  branch: "M7 4v16M7 14c6 0 10-1 10-6M14 9l3-3 3 3",
  left: "M15 6l-6 6 6 6",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
};

/** An icon, hidden from screen readers. @param {{name: keyof typeof PATHS}} props */
export const Icon = ({ name }) => html`
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d=${PATHS[name]} />
  </svg>
`;

/** A button with only an icon, and a name for screen readers. */
export const IconButton = ({ name, label, ...rest }) => html`
  <button
    type="button"
    class=${cls("icon-button", rest.class)}
    aria-label=${label}
    title=${label}
    ...${without(rest, "class")}
  >
    <${Icon} name=${name} />
  </button>
`;

/** @param {Record<string, unknown>} object @param {...string} names */
export const without = (object, ...names) =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

/** The server that something comes from. */
export const From = ({ server }) =>
  server
    ? html`
      <span class="from">
        <${Icon} name="server" />
        <${Say} text=${server} />
      </span>
    `
    : null;

/**
 * Warnings, displayed prominently.
 * @param {{warnings?: {kind: string, words: string, where?: string}[]}} props
 */
export const Warnings = ({ warnings }) =>
  !warnings?.length
    ? null
    : html`
      <ul class="warnings" aria-label="Warnings">
        ${warnings.map(
          (one) => html`
            <li key=${one.kind + one.words}>
              <${Icon} name="warn" />
              <span>
                <${Say} text=${one.words} />
                ${
                  one.where &&
                  html`
                    ${" "}
                    <code class="where">
                      <${Say} text=${one.where} />
                    </code>
                  `
                }
              </span>
            </li>
          `,
        )}
      </ul>
    `;

/** A section that opens and closes. */
export function Fold({ title, open = false, children, class: name = "" }) {
  return html`
    <details class=${cls("fold", name)} open=${open}>
      <summary>
        <${Icon} name="chevron" />
        <span class="fold-title">${title}</span>
      </summary>
      <div class="fold-body">${children}</div>
    </details>
  `;
}

/**
 * Long content, folded to about twelve lines until the person opens it.
 * @param {{children?: any, class?: string, open?: boolean, onOpen?: () => void}} props
 */
export function Clamped({ children, class: name = "", open = false, onOpen }) {
  const box = useRef(/** @type {any} */ (null));
  const [wanted, setWanted] = useState(false);
  const [long, setLong] = useState(false);
  const id = useId();
  const all = wanted || open;
  useLayoutEffect(() => {
    const measure = () => {
      const fold = parseFloat(getComputedStyle(box.current).getPropertyValue("--fold"));
      const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
      setLong((was) => box.current.scrollHeight > (was ? 0 : 60) + fold * rem);
    };
    measure();
    const grown = new ResizeObserver(measure);
    for (const one of [box.current, ...box.current.children]) grown.observe(one);
    return () => grown.disconnect();
  }, [children]);
  const turn = () => {
    setWanted(!wanted);
    if (!wanted) onOpen?.();
  };
  const label = all ? "Show less" : "Show all";
  return html`
    <div class=${cls("clamped", long && !all && "is-folded", name)}>
      <div ref=${box} id=${id} class="clamped-box">
        ${children}
      </div>
      ${
        long &&
        !open &&
        html`
          <button
            type="button"
            class="small quiet"
            aria-expanded=${all ? "true" : "false"}
            aria-controls=${id}
            onClick=${turn}
          >
            ${label}
          </button>
        `
      }
    </div>
  `;
}

/** A name as words: departure_date becomes "Departure date". @param {string} name */
export function wordsOf(name) {
  const words = name
    .replace(/([a-z\d])([A-Z][a-z])/g, (_, end, begin) => `${end} ${begin.toLowerCase()}`)
    .replace(/[_\-.\s]+/g, " ")
    .trim();
  return words ? words[0].toUpperCase() + words.slice(1) : name;
}

/** A button that copies a text, and confirms it. */
export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
    } catch {
      setDone(false);
    }
  };
  return html`
    <button type="button" class="small quiet" onClick=${copy} onBlur=${() => setDone(false)}>
      <${Icon} name=${done ? "check" : "copy"} />
      <span aria-live="polite">${done ? "Copied" : label}</span>
    </button>
  `;
}

/**
 * A value as JSON without invisible characters, which parses back to the same value.
 * @param {unknown} value
 */
export function json(value) {
  return JSON.stringify(value, null, 2).replace(UNSEEN, (sign) =>
    [...Array(sign.length).keys()]
      .map((i) => `\\u${sign.charCodeAt(i).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

/**
 * Restore the caret in the focused field. Chromium returns the focus to it when a dialog closes,
 * but loses the caret with the dialog's elements: without this the field looks focused and ignores
 * every key.
 */
function restoreCaret() {
  const field = document.activeElement;
  if (!(field instanceof HTMLElement) || !typing(field)) return;
  field.blur();
  field.focus({ preventScroll: true });
}

/** A native modal dialog: the browser keeps the focus inside, and Escape closes it. */
export function Dialog({ title, onClose, children, class: name = "", foot = null }) {
  const box = useRef(/** @type {any} */ (null));
  const id = useId();
  useLayoutEffect(() => {
    const mine = box.current;
    mine.showModal();
    return () => {
      mine.close(); // this returns the focus to where it was
      queueMicrotask(restoreCaret);
    };
  }, []);
  const outside = (event) => event.target === box.current && onClose();
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`
    <dialog
      ref=${box}
      class=${cls("dialog", name)}
      aria-labelledby=${id}
      onCancel=${cancel}
      onMouseDown=${outside}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id=${id}>${title}</h2>
          <${IconButton} name="close" label="Close" onClick=${onClose} />
        </header>
        <div class="dialog-body">${children}</div>
        ${foot && html`<footer class="dialog-foot">${foot}</footer>`}
      </div>
    </dialog>
  `;
}

/**
 * A row of options of which one is selected.
 * @param {{label: string, value: string, options: [string, any][], onChange: (value: string) =>
 *   void}} props
 */
export const Choice = ({ label, value, options, onChange }) => html`
  <div class="segments" role="group" aria-label=${label}>
    ${options.map(
      ([key, words]) => html`
        <button
          key=${key}
          type="button"
          aria-pressed=${key === value ? "true" : "false"}
          onClick=${() => onChange(key)}
        >
          ${words}
        </button>
      `,
    )}
  </div>
`;

/**
 * Whether keys pressed here belong to the element itself.
 * @param {EventTarget | null} target
 */
export const typing = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"));

const COUNT = new Intl.NumberFormat("en");
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DATE = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const EXACT = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** @param {number} at seconds of the wall clock */
export function when(at) {
  const date = new Date(at * 1000);
  return date.toDateString() === new Date().toDateString() ? CLOCK.format(date) : DATE.format(date);
}
/** @param {number} at */
export const exactly = (at) => EXACT.format(new Date(at * 1000));
/** @param {number} bytes */
export const size = (bytes) =>
  bytes < 1000
    ? `${bytes} bytes`
    : bytes < 1e6
      ? `${(bytes / 1e3).toFixed(1)} kB`
      : `${(bytes / 1e6).toFixed(1)} MB`;
/** @param {number} seconds */
export const took = (seconds) =>
  seconds < 0.95
    ? `${Math.max(1, Math.round(seconds * 1000))} ms`
    : seconds < 90
      ? `${seconds.toFixed(1)} s`
      : `${Math.round(seconds / 60)} min`;
/** @param {number} count @param {string} one @param {string} [many] */
export const several = (count, one, many = one + "s") =>
  `${COUNT.format(count)} ${count === 1 ? one : many}`;
