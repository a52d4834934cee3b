// @ts-check
// Parts of several panels: what the server was asked for, a list beside the shown item, the
// equivalent command, errors.
import {
  Copy,
  Icon,
  Say,
  cls,
  html,
  useEffect,
  useId,
  useRef,
  useState,
  visible,
} from "../../kit/kit.js";
import { fits } from "../../kit/complete.js";
import { act } from "../../kit/net.js";

/** The id of the tasks extension. */
export const TASKS = "io.modelcontextprotocol/tasks";

/** Whether a connection is open, so that requests can be sent. */
export const isOpen = (connection) => connection.status === "open";

/**
 * Whether the server of a connection declares a capability. A connection that is not open shows its
 * panels too, because they come back with it.
 * @param {any} connection
 * @param {string} name
 */
export const offers = (connection, name) => !!connection.capabilities?.[name];

/**
 * Whether the server of a connection declares an extension.
 * @param {any} connection
 * @param {string} id
 */
export const hasExtension = (connection, id) => id in (connection.capabilities?.extensions ?? {});

/**
 * What an act returns: it runs at first, again after `reload`, and again when `key` changes. With
 * an empty key it does not run.
 * @param {string} name
 * @param {Record<string, unknown>} body
 * @param {string} key
 * @returns {{value: any, words: string, loading: boolean, reload: () => void}}
 */
export function useAct(name, body, key) {
  const [state, setState] = useState(
    /** @type {{value: any, words: string, loading: boolean}} */ ({
      value: undefined,
      words: "",
      loading: true,
    }),
  );
  const [run, setRun] = useState(0);
  useEffect(() => {
    if (!key) return undefined;
    const aborting = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    act(name, body, aborting.signal).then(
      (value) => setState({ value, words: "", loading: false }),
      (bad) => {
        if (!aborting.signal.aborted)
          setState((before) => ({ ...before, words: bad.message, loading: false }));
      },
    );
    return () => aborting.abort();
  }, [key, run]);
  return { ...state, reload: () => setRun((count) => count + 1) };
}

/** The key of what an open connection is asked for: it is asked again after a reconnect. */
export const keyOf = (connection) =>
  isOpen(connection) ? `${connection.name} ${connection.opened}` : "";

/** A section that is closed at first; its content is made when it is opened. */
export function Closed({ title, children }) {
  const [open, setOpen] = useState(false);
  return html`
    <details class="fold" onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <${Icon} name="chevron" />
        <span class="fold-title">${title}</span>
      </summary>
      ${open && html`<div class="fold-body">${children}</div>`}
    </details>
  `;
}

/** Words about an error. */
export const Wrong = ({ words }) =>
  words
    ? html`
      <p class="wrong" role="alert"><${Say} text=${words} /></p>
    `
    : null;

/** A JSON-RPC error, or another reason why there is no result. @param {{error: any}} props */
export const ErrorBox = ({ error }) => html`
  <div class="error-box" role="alert">
    <p class="wrong">
      <${Icon} name="warn" />
      ${error.code !== null && html`<strong>Error ${error.code}: </strong>`}
      <${Say} text=${error.message} />
    </p>
    ${
      error.data !== null &&
      error.data !== undefined &&
      html`
        <pre class="wrap">${visible(JSON.stringify(error.data, null, 2))}</pre>
      `
    }
  </div>
`;

/** The equivalent command for a shell, to copy. */
export const Command = ({ text }) =>
  text
    ? html`
      <div class="equivalent" role="group" aria-label="Equivalent command">
        <code class="wrap"><${Say} text=${text} /></code>
        <${Copy} text=${text} label="Copy command" />
      </div>
    `
    : null;

/**
 * A list with a search field, and beside it what is chosen.
 * @param {{label: string, items: {key: string, title: string, about?: string, tags?: any}[],
 *   chosen: string, onChoose: (key: string) => void, loaded: ReturnType<typeof useAct>,
 *   empty: string, extra?: any, children?: any}} props `extra` is shown below the search field
 */
export function ListBeside({ label, items, chosen, onChoose, loaded, empty, extra, children }) {
  const [words, setWords] = useState("");
  const id = useId();
  const list = useRef(/** @type {any} */ (null));
  const found = items.filter((one) => fits(`${one.key} ${one.title} ${one.about ?? ""}`, words));
  const move = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const all = [...list.current.querySelectorAll("button")];
    all[all.indexOf(document.activeElement) + by]?.focus();
  };
  return html`
    <div class=${cls("beside", chosen && "has-chosen")}>
      <section class="beside-list" aria-labelledby=${id}>
        <div class="beside-head">
          <h2 id=${id}>${label}</h2>
          <span class="quiet" aria-live="polite">
            ${loaded.loading ? "loading …" : loaded.value !== undefined && items.length}
          </span>
          <button type="button" class="small quiet" onClick=${loaded.reload}>Reload</button>
        </div>
        <input
          type="search"
          aria-label=${`Search ${label.toLowerCase()}`}
          placeholder="Search"
          value=${words}
          onInput=${(event) => setWords(event.currentTarget.value)}
          autocomplete="off"
        />
        ${extra}
        <${Wrong} words=${loaded.words} />
        <ul ref=${list} onKeyDown=${move}>
          ${found.map(
            (one) => html`
              <li key=${one.key}>
                <button
                  type="button"
                  class=${cls("beside-item", one.key === chosen && "is-current")}
                  aria-current=${one.key === chosen ? "true" : undefined}
                  onClick=${() => onChoose(one.key)}
                >
                  <span class="strong"><${Say} text=${one.title} /></span>
                  ${one.about && html`<span class="quiet"><${Say} text=${one.about} /></span>`}
                  ${one.tags}
                </button>
              </li>
            `,
          )}
        </ul>
        ${
          !found.length &&
          !loaded.loading &&
          !loaded.words &&
          html`<p class="quiet">${words ? "Nothing matches." : empty}</p>`
        }
      </section>
      <div class="beside-shown">
        ${
          chosen &&
          html`
            <button type="button" class="small quiet beside-back" onClick=${() => onChoose("")}>
              <${Icon} name="chevron" /> ${label}
            </button>
          `
        }
        ${children ?? html`<p class="quiet">Choose one of the list.</p>`}
      </div>
    </div>
  `;
}

/** A panel of a connection that is not open. */
export const NotOpen = ({ connection }) => html`
  <div class="feature">
    <p class="quiet">
      <${Say} text=${connection.name} /> is not connected. Connect it to send requests; its messages
      are in the timeline.
    </p>
  </div>
`;
