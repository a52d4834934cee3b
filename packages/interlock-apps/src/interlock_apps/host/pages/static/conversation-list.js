// @ts-check
// The conversations in the side bar: by date, with search over what was said, and what can be done
// with each.
import {
  Dialog,
  Icon,
  Say,
  cls,
  html,
  several,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  visible,
  when,
} from "../kit/kit.js";
import { act } from "../kit/net.js";
import { Menu } from "./menu.js";
import { ProjectChoice } from "./projects.js";
import { attempt, current, open, overlay, project, seek, sessions, settings } from "./store.js";

const PAUSE = 200;
const DAY = 86_400_000;
const MONTH = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" });

/** The time of the last message, or of the beginning. @param {any} one */
const lastOf = (one) => Math.max(one.spoke ?? 0, one.began ?? 0);

/**
 * The heading under which a conversation is listed.
 * @param {any} one
 * @param {Date} now
 */
export function groupOf(one, now) {
  if (one.pinned) return "Pinned";
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const at = lastOf(one) * 1000;
  if (at >= midnight) return "Today";
  if (at >= midnight - DAY) return "Yesterday";
  if (at >= midnight - 7 * DAY) return "Last 7 days";
  if (at >= midnight - 30 * DAY) return "Last 30 days";
  return MONTH.format(new Date(at));
}

/** The conversations by heading, newest first. @param {any[]} all @param {Date} now */
export function grouped(all, now) {
  const ordered = [...all].sort(
    (one, other) =>
      Number(other.pinned ?? 0) - Number(one.pinned ?? 0) || lastOf(other) - lastOf(one),
  );
  const groups = /** @type {Map<string, any[]>} */ (new Map());
  for (const one of ordered) {
    const name = groupOf(one, now);
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  return [...groups];
}

/** Whether the middle of the page shows a conversation; "" for a new one. @param {string} id */
const isShown = (id) => current.value === id && !settings.value;

/** The conversations, or what a search found. */
export function Conversations() {
  const [words, setWords] = useState("");
  return html`
    <div class="side-part side-talks">
      <div class="side-head">
        <h2 id="talks">Conversations</h2>
      </div>
      <${ProjectChoice} />
      <button
        type="button"
        class=${cls("side-row new", isShown("") && "is-current")}
        aria-current=${isShown("") ? "page" : undefined}
        onClick=${() => open("")}
      >
        <${Icon} name="plus" />
        <span>New conversation</span>
      </button>
      <input
        type="search"
        class="side-search"
        placeholder="Search what was said"
        aria-label="Search what was said"
        value=${words}
        onInput=${(event) => setWords(event.currentTarget.value)}
        onKeyDown=${(event) => {
          if (event.key !== "Escape" || !words) return;
          event.preventDefault();
          event.stopPropagation();
          setWords("");
        }}
        autocomplete="off"
      />
      <div class="side-list">
        ${words.trim() ? html`<${Found} words=${words} />` : html`<${Listed} />`}
      </div>
    </div>
  `;
}

function Listed() {
  const listed = sessions.value.filter(
    (one) => !project.value || one.project === project.value || one.id === current.value,
  );
  return html`
    <ul aria-labelledby="talks">
      ${grouped(listed, new Date()).map(
        ([name, all]) => html`
          <li key=${name}>
            <h3 class="talk-group">${name}</h3>
            <ul aria-label=${name}>
              ${all.map(
                (one) => html`
                  <li key=${one.id}>
                    <${Row} one=${one} />
                  </li>
                `,
              )}
            </ul>
          </li>
        `,
      )}
    </ul>
  `;
}

/** One conversation. */
function Row({ one }) {
  const [naming, setNaming] = useState(false);
  const id = useId();
  const shown = isShown(one.id);
  const about = [one.began ? when(lastOf(one)) : "", visible(one.model ?? "")]
    .filter(Boolean)
    .join(" · ");
  if (naming) return html`<${Naming} one=${one} onDone=${() => setNaming(false)} />`;
  return html`
    <div class="talk-row">
      <button
        type="button"
        class=${cls("side-row", shown && "is-current")}
        aria-current=${shown ? "page" : undefined}
        onClick=${() => open(one.id)}
      >
        <span class="grow">
          <span class="side-title" id=${id}>
            <${Say} text=${one.title || "Untitled"} />
          </span>
          <span class="side-about">${about}</span>
        </span>
        ${one.running && html`<span class="dots" role="img" aria-label="running"></span>`}
      </button>
      <${Menu} label="Options" about=${id} entries=${entries(one, () => setNaming(true))} />
    </div>
  `;
}

/** @param {string} form @param {string} id */
const exported = (form, id) => `api/conversation.${form}?session=${encodeURIComponent(id)}`;
/** @param {string} id */
const exportedLog = (id) => `api/log.jsonl?session=${encodeURIComponent(id)}`;

/** What can be done with a conversation. @param {any} one @param {() => void} rename */
function entries(one, rename) {
  const change = (changes) => () => attempt("changeSession", { session: one.id, ...changes });
  return [
    { icon: "edit", title: "Rename", take: rename },
    one.pinned
      ? { icon: "pin", title: "Unpin", take: change({ pinned: false }) }
      : { icon: "pin", title: "Pin to the top", take: change({ pinned: true }) },
    { icon: "out", title: "Export as Markdown", href: exported("md", one.id) },
    { icon: "out", title: "Export as HTML", href: exported("html", one.id) },
    { icon: "out", title: "Export for replay", href: exportedLog(one.id) },
    {
      icon: "trash",
      title: "Delete",
      danger: true,
      take: () => {
        overlay.value = { name: "deleteTalk", session: one.id };
      },
    },
  ];
}

/** The field with the title. @param {{one: any, onDone: () => void}} props */
function Naming({ one, onDone }) {
  const field = useRef(/** @type {any} */ (null));
  const done = useRef(false);
  useLayoutEffect(() => {
    field.current.focus();
    field.current.select();
  }, []);
  const end = (title) => {
    if (done.current) return;
    done.current = true;
    if (title && title !== one.title) attempt("changeSession", { session: one.id, title });
    onDone();
  };
  return html`
    <input
      ref=${field}
      class="talk-naming"
      aria-label="Title"
      maxlength="200"
      defaultValue=${one.title}
      onBlur=${(event) => end(event.currentTarget.value.trim())}
      onKeyDown=${(event) => {
        if (event.isComposing) return;
        if (event.key === "Enter") end(event.currentTarget.value.trim());
        else if (event.key === "Escape") end("");
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  `;
}

/** Whether a conversation may be erased. @param {{session: string, onClose: () => void}} props */
export function DeleteTalk({ session, onClose }) {
  const one = sessions.value.find((each) => each.id === session);
  const erase = async () => {
    onClose();
    await attempt("deleteSession", { session });
  };
  const foot = html`
    <button type="button" class="deny main" onClick=${erase}>Delete</button>
    <button type="button" autofocus onClick=${onClose}>Cancel</button>
  `;
  return html`
    <${Dialog} title="Delete this conversation?" class="narrow" onClose=${onClose} foot=${foot}>
      <p class="wrap">
        <strong>
          <${Say} text=${one?.title || "Untitled"} />
        </strong>
      </p>
      <p>
        Everything said and done in it is erased from the log on this machine. You cannot undo this.
        The log keeps that there was a conversation, and when.
      </p>
    </${Dialog}>
  `;
}

/** The messages with the words of a search. @param {{words: string}} props */
function Found({ words }) {
  const [found, setFound] = useState(/** @type {any[] | null} */ (null));
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const aborting = new AbortController();
    const timer = window.setTimeout(async () => {
      try {
        setFound((await act("findMessages", { words }, aborting.signal)).found);
        setWrong("");
      } catch (bad) {
        if (!aborting.signal.aborted) setWrong(bad instanceof Error ? bad.message : String(bad));
      }
    }, PAUSE);
    return () => {
      window.clearTimeout(timer);
      aborting.abort();
    };
  }, [words]);
  if (wrong)
    return html`
      <p class="wrong" role="alert">
        <${Say} text=${wrong} />
      </p>
    `;
  if (!found) return html`<p class="quiet small-line">Searching …</p>`;
  return html`
    <p class="talk-group" role="status">${several(found.length, "message")}</p>
    <ul aria-label="Messages found">
      ${found.map(
        (one) => html`
          <li key=${one.message}>
            <${FoundRow} one=${one} />
          </li>
        `,
      )}
    </ul>
  `;
}

function FoundRow({ one }) {
  const show = async () => {
    if (!(await attempt("showMessage", { session: one.session, message: one.message }))) return;
    seek.value = { session: one.session, message: one.message };
    open(one.session);
  };
  return html`
    <button type="button" class="side-row" onClick=${show}>
      <span class="grow">
        <span class="side-title">
          <${Say} text=${one.title || "Untitled"} />
        </span>
        <span class="found-text">
          <${Marked} text=${one.excerpt} marks=${one.marks} />
        </span>
        <span class="side-about">${one.by === "person" ? "You" : "Model"} · ${when(one.at)}</span>
      </span>
    </button>
  `;
}

/** A text with the found words marked. @param {{text: string, marks: [number, number][]}} props */
function Marked({ text, marks }) {
  const signs = [...text];
  const parts = /** @type {any[]} */ ([]);
  let at = 0;
  for (const [start, end] of marks) {
    parts.push(signs.slice(at, start).join(""));
    parts.push(html`<mark key=${start}>${visible(signs.slice(start, end).join(""))}</mark>`);
    at = end;
  }
  parts.push(signs.slice(at).join(""));
  return html`<bdi>${parts.map((part) => (typeof part === "string" ? visible(part) : part))}</bdi>`;
}
