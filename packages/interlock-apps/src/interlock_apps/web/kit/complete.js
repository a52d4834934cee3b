// @ts-check
// A field with suggestions of a server while the person types, and a list with search and keyboard
// navigation.
import {
  Say,
  cls,
  html,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  visible,
} from "./kit.js";
import { act } from "./net.js";

const PAUSE = 180;

/**
 * A text field with suggestions. `ask(value)` fetches them; it is optional.
 * @param {{field: import("./fields.js").Field, value: string, words?: string, onChange: (value:
 *   string) => void, ask?: (value: string, aborted: AbortSignal) => Promise<{values: string[],
 *   total?: number, hasMore?: boolean}>, focus?: boolean}} props
 */
export function Suggested({ field, value, words = "", onChange, ask, focus = false }) {
  const id = useId();
  const input = useRef(/** @type {any} */ (null));
  const [found, setFound] = useState(
    /** @type {{values: string[], total?: number, hasMore?: boolean}} */ ({ values: [] }),
  );
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const [here, setHere] = useState(false);
  useLayoutEffect(() => {
    // In an open dialog; a dialog that opens now uses `autofocus`.
    if (focus) input.current.focus();
  }, []);
  useEffect(() => {
    if (!ask || !here) return undefined;
    const aborting = new AbortController();
    const timer = window.setTimeout(async () => {
      try {
        const answer = await ask(value, aborting.signal);
        if (aborting.signal.aborted) return;
        setFound(answer);
        setAt(-1);
        setOpen(answer.values.some((one) => one !== value));
      } catch {
        if (aborting.signal.aborted) return;
        setFound({ values: [] });
        setOpen(false); // the field works without suggestions
      }
    }, PAUSE);
    return () => {
      window.clearTimeout(timer);
      aborting.abort();
    };
  }, [value, here]);
  const take = (one) => {
    onChange(one);
    setOpen(false);
    setAt(-1);
  };
  const key = (event) => {
    if (event.isComposing) return; // the key belongs to an input method
    const { values } = found;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!values.length) return;
      event.preventDefault();
      setOpen(true);
      setAt(
        event.key === "ArrowDown" ? (at + 1) % values.length : (at <= 0 ? values.length : at) - 1,
      );
    } else if (event.key === "Enter" && open && at >= 0) {
      event.preventDefault();
      take(values[at]);
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
    } else if (event.key === "Tab") setOpen(false);
  };
  const more =
    (found.total ?? 0) > found.values.length ? (found.total ?? 0) - found.values.length : 0;
  return html`
    <div class=${cls("field", words && "is-wrong")}>
      <label
        for=${id}
        title=${field.title && field.title !== field.name ? visible(field.name) : undefined}
      >
        <${Say} text=${field.title || field.name} />
        ${
          field.required
            ? html`
              <span class="needed" aria-hidden="true">
                ${" "}
                *
              </span>
            `
            : html`
              <span class="optional"> optional</span>
            `
        }
      </label>
      ${
        field.description &&
        html`
          <p class="about" id=${`${id}-about`}>
            <${Say} text=${field.description} />
          </p>
        `
      }
      <div class="combo">
        <input
          ref=${input}
          id=${id}
          autofocus=${focus}
          data-field=${field.name}
          value=${value}
          autocomplete="off"
          role=${ask ? "combobox" : undefined}
          aria-autocomplete=${ask ? "list" : undefined}
          aria-expanded=${ask ? (open ? "true" : "false") : undefined}
          aria-controls=${ask ? `${id}-list` : undefined}
          aria-activedescendant=${open && at >= 0 ? `${id}-${at}` : undefined}
          aria-required=${field.required ? "true" : undefined}
          aria-invalid=${words ? "true" : undefined}
          aria-describedby=${
            cls(field.description && `${id}-about`, words && `${id}-wrong`) || undefined
          }
          onInput=${(event) => onChange(event.currentTarget.value)}
          onKeyDown=${key}
          onFocus=${() => setHere(true)}
          onBlur=${() => {
            setHere(false);
            setOpen(false);
          }}
        />
        ${
          ask &&
          html`
            <ul
              id=${`${id}-list`}
              role="listbox"
              aria-label=${`Suggestions for ${visible(field.title || field.name)}`}
              class="suggestions"
              hidden=${!open}
            >
              ${
                open &&
                found.values.map(
                  (one, index) => html`
                    <li
                      key=${one}
                      id=${`${id}-${index}`}
                      role="option"
                      aria-selected=${index === at ? "true" : "false"}
                      onMouseDown=${(event) => {
                        event.preventDefault();
                        take(one);
                      }}
                    >
                      <${Say} text=${one} />
                    </li>
                  `,
                )
              }
              ${
                open &&
                (more > 0 || found.hasMore) &&
                html`
                  <li class="quiet more" role="presentation">
                    ${more > 0 ? `and ${more} more` : "and more"}
                  </li>
                `
              }
            </ul>
          `
        }
      </div>
      ${
        words &&
        html`
          <p class="wrong" id=${`${id}-wrong`} role="alert">
            ${visible(words)}
          </p>
        `
      }
    </div>
  `;
}

/**
 * A server's suggestions for an argument.
 * @param {string} server
 * @param {any} ref
 * @param {string} argument
 * @param {Record<string, string>} values
 */
export const suggestions = (server, ref, argument, values) => {
  const others = Object.fromEntries(
    Object.entries(values).filter(([name, value]) => name !== argument && value !== ""),
  );
  return (value, aborted) =>
    act("complete", { server, ref, argument, value, arguments: others }, aborted);
};

/**
 * How well a text matches a search: it must contain all words.
 * @param {string} text
 * @param {string} words
 */
export function fits(text, words) {
  const low = text.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .every((word) => low.includes(word));
}

/**
 * A search field above a list: arrow keys select, Enter accepts.
 * @param {{label: string, placeholder: string, items: {key: string, group?: string, render: () =>
 *   any, take: () => void}[], words: string, onWords: (words: string) => void, empty: string}}
 *   props
 */
export function Picker({ label, placeholder, items, words, onWords, empty }) {
  const id = useId();
  const input = useRef(/** @type {any} */ (null));
  const list = useRef(/** @type {any} */ (null));
  const [at, setAt] = useState(0);
  useLayoutEffect(() => input.current.focus(), []);
  useEffect(() => setAt(0), [words]);
  useEffect(
    () => list.current.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [at, items.length],
  );
  const now = Math.min(at, items.length - 1);
  const key = (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (items.length)
        setAt((now + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length);
    } else if (event.key === "Home" && event.ctrlKey) setAt(0);
    else if (event.key === "End" && event.ctrlKey) setAt(items.length - 1);
    else if (event.key === "Enter" && items[now]) {
      event.preventDefault();
      items[now].take();
    }
  };
  const search = html`
    <input
      ref=${input}
      autofocus
      class="picker-search"
      type="text"
      enterkeyhint="go"
      role="combobox"
      aria-expanded="true"
      aria-autocomplete="list"
      aria-controls=${`${id}-list`}
      aria-label=${label}
      aria-activedescendant=${items[now] ? `${id}-${now}` : undefined}
      placeholder=${placeholder}
      value=${words}
      autocomplete="off"
      spellcheck=${false}
      onInput=${(event) => onWords(event.currentTarget.value)}
      onKeyDown=${key}
    />
  `;
  const heading = (item, before) =>
    item.group &&
    item.group !== before?.group &&
    html`
      <li key=${`group ${item.group}`} role="presentation" class="picker-group">
        ${item.group}
      </li>
    `;
  return html`
    <div class="picker">
      ${search}
      <ul ref=${list} id=${`${id}-list`} role="listbox" aria-label=${label} class="picker-list">
        ${items.map(
          (item, index) => html`
            ${heading(item, items[index - 1])}
            <li
              key=${item.key}
              id=${`${id}-${index}`}
              role="option"
              aria-selected=${index === now ? "true" : "false"}
              onMouseMove=${() => setAt(index)}
              onClick=${item.take}
            >
              ${item.render()}
            </li>
          `,
        )}
      </ul>
      ${!items.length && html`<p class="quiet center">${empty}</p>`}
    </div>
  `;
}
