// @ts-check
// The composer: the message box with its attachments, suggestions of prompts and resources, the
// model, and Send or Stop.
import {
  Icon,
  IconButton,
  cls,
  html,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  visible,
  wordsOf,
} from "../kit/kit.js";
import { speak } from "./conversation.js";
import { NoModel } from "./first-steps.js";
import { reachable } from "../kit/net.js";
import { FilePicker, Files, addFiles, filesOf, forget, uploading, useDrop } from "./files.js";
import { Meter } from "./meter.js";
import { Mentions, suggested, trigger } from "./mentions.js";
import { ConsentStrip, ModeControl } from "./modes.js";
import { choosePrompt } from "./prompts.js";
import { Queue } from "./queue.js";
import { Chip, chooseResources } from "./resources.js";
import { attached, attempt, current, draft, models, open, sessions, talk } from "./store.js";

const MOST_ROWS = 12;
const NARROW = window.matchMedia("(max-width: 760px)");
const LISTED = { "/": "Prompts", "@": "Resources" };

/** Stop the running turn. */
export const stop = () => current.value && attempt("cancel", { session: current.value });

/** Resize the box to its text. @param {any} box */
function grow(box) {
  box.rows = 1;
  const looks = getComputedStyle(box);
  const inner = box.scrollHeight - parseFloat(looks.paddingTop) - parseFloat(looks.paddingBottom);
  const rows = Math.max(1, Math.round(inner / parseFloat(looks.lineHeight)));
  box.rows = Math.min(MOST_ROWS, rows);
  box.classList.toggle("overflows", rows > MOST_ROWS);
}

/**
 * The suggestions for the text before the caret, and the keys that select one.
 * @param {{text: string, write: (text: string) => void, field: {current: any}}} props
 */
function useMentions({ text, write, field }) {
  const id = useId();
  const [caret, setCaret] = useState(0);
  const [here, setHere] = useState(false);
  const [at, setAt] = useState(0);
  const [closed, setClosed] = useState("");
  const asked = here ? trigger(text, caret) : null;
  const mark = asked ? `${asked.sign}${asked.start}` : "";
  const items = asked && mark !== closed ? suggested(asked) : [];
  const now = Math.min(at, items.length - 1);
  useEffect(() => {
    if (here && !asked) setClosed(""); // new text opens the list again
  }, [mark]);
  useEffect(() => setAt(0), [asked?.words]);
  useEffect(() => {
    document.getElementById(`${id}-${now}`)?.scrollIntoView({ block: "nearest" });
  }, [now]);
  const take = (item) => {
    if (!asked) return;
    const end = asked.start + 1 + asked.words.length;
    write(text.slice(0, asked.start) + text.slice(end));
    setCaret(asked.start);
    field.current.focus();
    item.take();
  };
  /** Whether the list handles the key. @param {any} event */
  const key = (event) => {
    if (!items.length || event.altKey || event.ctrlKey || event.metaKey) return false;
    if (event.key === "ArrowDown") setAt((now + 1) % items.length);
    else if (event.key === "ArrowUp") setAt((now + items.length - 1) % items.length);
    else if (event.key === "Enter" && !event.shiftKey) take(items[now]);
    else if (event.key === "Escape") setClosed(mark);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  const follow = (event) => setCaret(event.currentTarget.selectionStart);
  const attributes = {
    "aria-autocomplete": "list",
    "aria-haspopup": "listbox",
    "aria-controls": items.length ? id : undefined,
    "aria-activedescendant": items.length ? `${id}-${now}` : undefined,
    onKeyUp: follow,
    onClick: follow,
    onFocus: () => setHere(true),
    onBlur: () => setHere(false),
  };
  const label = asked ? LISTED[asked.sign] : "";
  const list =
    items.length > 0 &&
    html`
      <${Mentions} id=${id} label=${label} items=${items} at=${now} onAt=${setAt} onTake=${take} />
    `;
  return { key, follow, attributes, list };
}

/** An earlier conversation, which can be resumed. @param {{id: string}} props */
function Record({ id }) {
  const resume = async () => {
    const again = await attempt("resume", { session: id });
    if (again) open(again.session);
  };
  return html`
    <div class="composer">
      <p class="quiet replay">
        <${Icon} name="list" /> This is the record of an earlier conversation, shown from the log.
        <button type="button" onClick=${resume}>
          Continue it
        </button>
      </p>
    </div>
  `;
}

/** @param {{id: string}} props */
export function Composer({ id }) {
  const listed = sessions.value.find((one) => one.id === id);
  const past = id !== "" && (!listed || listed.past);
  return past ? html`<${Record} id=${id} />` : html`<${Message} id=${id} />`;
}

/** What is attached to the message. @param {{onRemoved: () => void}} props */
function Attachments({ onRemoved }) {
  const remove = (one) => {
    attached.value = attached.value.filter((each) => each !== one);
    onRemoved();
  };
  if (!attached.value.length) return null;
  return html`
    <div class="chips" role="group" aria-label="Attached">
      ${attached.value.map(
        (one) => html`
          <${Chip} key=${one.server + one.uri} one=${one} onRemove=${() => remove(one)} />
        `,
      )}
    </div>
  `;
}

/** What the empty message box says. @param {boolean} running */
function hintFor(running) {
  if (running) return NARROW.matches ? "Add a message" : "Add a message for the next step";
  return NARROW.matches ? "Message the model" : "Message the model, / for prompts, @ for resources";
}

/** The message box. @param {{id: string}} props */
function Message({ id }) {
  const text = draft(id).value;
  const [chosen, setChosen] = useState({ model: "", effort: "" });
  const { model, effort } = chosen;
  const field = useRef(/** @type {any} */ (null));
  const lost = useRef(false);
  const running = id ? talk(id).running.value : false;
  useLayoutEffect(() => {
    const elsewhere = document.activeElement?.closest("dialog, [data-question]");
    if (window.matchMedia("(pointer: fine)").matches && !elsewhere) field.current?.focus();
  }, [id]);
  useLayoutEffect(() => grow(field.current), [text]);
  const write = (value) => {
    draft(current.value).value = value;
  };
  const empty = !text.trim() && !filesOf(id).value.length;
  const take = (given) => {
    addFiles(id, model, given);
    field.current?.focus();
  };
  const over = useDrop(take);
  const paste = (event) => {
    const files = event.clipboardData?.files ?? [];
    // A copied table is text and a picture of it: the text is meant.
    if (!files.length || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    take(files);
  };
  const mentions = useMentions({ text, write, field });
  /** While a turn runs, a message waits for its next step, or for the next turn. */
  const send = async (event, when = "step") => {
    event?.preventDefault();
    if (empty || !reachable.value || uploading(id)) return;
    const attach = attached.value;
    const files = filesOf(id).value;
    const said = text;
    write("");
    attached.value = [];
    filesOf(id).value = [];
    const body = { text: said, attach, files: files.map((one) => one.file) };
    const sent = running
      ? (await attempt("steer", { session: id, when, ...body })) !== undefined
      : await speak("say", body, model, effort);
    if (sent) return files.forEach(forget);
    filesOf(current.value).value = files;
    if ((id && current.value !== id) || draft(current.value).value) return;
    write(said);
    attached.value = attach;
  };
  const key = (event) => {
    if (event.isComposing || mentions.key(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey)
      send(event, event.ctrlKey || event.metaKey ? "turn" : "step");
    else if (event.key === "Escape" && running) {
      event.preventDefault();
      stop();
    }
  };
  const input = (event) => {
    write(event.currentTarget.value);
    mentions.follow(event);
  };
  const hint = hintFor(running);
  const gone = !reachable.value;
  useLayoutEffect(() => {
    if (gone) return;
    if (lost.current) field.current.focus();
    lost.current = false;
  }, [gone]);
  // Restore the focus when the host is back.
  if (gone && document.activeElement === field.current) lost.current = true;
  return html`
    <form class=${cls("composer", over && "is-dropping")} onSubmit=${send} aria-label="Composer">
      ${id && html`<${Queue} session=${id} />`}
      <${NoModel} />
      <${Attachments} onRemoved=${() => field.current.focus()} />
      <${Files} id=${id} onRemoved=${() => field.current.focus()} />
      ${mentions.list}
      <${ConsentStrip} id=${id} />
      <div class="composer-box">
        <textarea
          id="say"
          ref=${field}
          rows="1"
          aria-label="Your message"
          placeholder=${gone ? "The host is not reachable" : hint}
          disabled=${gone}
          value=${text}
          onInput=${input}
          onPaste=${paste}
          onKeyDown=${key}
          ...${mentions.attributes}
        ></textarea>
        <div class="composer-row">
          <button type="button" class="small quiet" aria-label="Prompts" onClick=${choosePrompt}>
            <${Icon} name="prompt" />
            <span>Prompts</span>
          </button>
          <button
            type="button"
            class="small quiet"
            aria-label="Resources"
            onClick=${chooseResources}
          >
            <${Icon} name="at" />
            <span>Resources</span>
          </button>
          <${ModeControl} key=${id} id=${id} />
          <${FilePicker} onFiles=${take} />
          <span class="grow"></span>
          <${ModelChoice} id=${id} chosen=${chosen} onChange=${setChosen} />
          ${id && html`<${Meter} session=${id} />`}
          ${running && html`<${Stop} />`}
          ${
            (!running || !empty) &&
            html`
              <${Send} idle=${empty || uploading(id) || gone} off=${gone} queues=${running} />
            `
          }
        </div>
      </div>
    </form>
  `;
}

/**
 * Which model answers, and with which effort: of this conversation, or of a new one.
 * @param {{id: string, chosen: {model: string, effort: string},
 *   onChange: (chosen: {model: string, effort: string}) => void}} props
 */
function ModelChoice({ id, chosen, onChange }) {
  const listed = id ? sessions.value.find((one) => one.id === id) : null;
  const name = listed?.model || chosen.model || models.value[0]?.name || "";
  const effort = listed ? (listed.effort ?? "") : chosen.effort;
  const known = models.value.find((one) => one.name === name);
  const efforts = known?.efforts ?? [];
  const choose = async (model, level) => {
    if (id) await attempt("chooseModel", { session: id, model, effort: level });
    else onChange({ model, effort: level });
  };
  const toModel = (model) => {
    const has = models.value.find((one) => one.name === model)?.efforts ?? [];
    choose(model, has.includes(effort) ? effort : "");
  };
  return html`
    ${
      models.value.length > 1 &&
      html`
        <select
          class="small"
          aria-label="Model"
          value=${name}
          onChange=${(event) => toModel(event.currentTarget.value)}
        >
          ${models.value.map(
            (one) => html`
              <option key=${one.name} value=${one.name}>
                ${visible(one.name)}
              </option>
            `,
          )}
        </select>
      `
    }
    ${
      efforts.length > 0 &&
      html`
        <select
          class="small"
          aria-label="Effort"
          value=${effort}
          onChange=${(event) => choose(name, event.currentTarget.value)}
        >
          <option value="">Default effort</option>
          ${efforts.map(
            (level) => html`
              <option key=${level} value=${level}>
                ${wordsOf(level)} effort
              </option>
            `,
          )}
        </select>
      `
    }
  `;
}

const Stop = () => html`
  <button type="button" class="stop" onClick=${stop} aria-keyshortcuts="Escape">
    <${Icon} name="stop" />
    Stop<kbd aria-hidden="true">Esc</kbd>
  </button>
`;

/** @param {{idle: boolean, off: boolean, queues: boolean}} props */
const Send = ({ idle, off, queues }) => html`
  <${IconButton}
    name="send"
    label=${queues ? "Add to the queue" : "Send"}
    type="submit"
    disabled=${off}
    class=${cls("send", idle && "idle")}
  />
`;
