// @ts-check
// Messages that wait for the running turn: each can be edited, moved to the next turn, or removed.
import {
  Icon,
  IconButton,
  Say,
  html,
  several,
  useLayoutEffect,
  useRef,
  useState,
} from "../kit/kit.js";
import { withoutMarked } from "./untrusted-text.js";
import { attempt, talk } from "./store.js";

/** The text that the person wrote: the last text of the message. @param {any} message */
function written(message) {
  const blocks = Array.isArray(message.content) ? message.content : [message.content];
  const last = blocks.filter((block) => block.type === "text" && !block._meta).at(-1);
  return last ? withoutMarked(last.text) : "";
}

/** How many files a message has. @param {any} message */
const filesIn = (message) =>
  [message.content].flat().filter((block) => {
    const about = (block.block ?? block)._meta?.["io.interlock/file"];
    return about && !about.label;
  }).length;

/**
 * Edit the text of a queued message.
 * @param {{text: string, onSave: (text: string) => void, onClose: () => void}} props
 */
function Editing({ text, onSave, onClose }) {
  const field = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => field.current.focus(), []);
  const save = () => {
    if (field.current.value.trim()) onSave(field.current.value);
  };
  const key = (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") onClose();
    else if (event.key === "Enter" && !event.shiftKey) save();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`
    <div class="queued-edit">
      <textarea
        ref=${field}
        rows="2"
        aria-label="Edit the queued message"
        defaultValue=${text}
        onKeyDown=${key}
      ></textarea>
      <div class="buttons">
        <button type="button" class="small main" onClick=${save}>
          Save
        </button>
        <button type="button" class="small quiet" onClick=${onClose}>
          Cancel
        </button>
      </div>
    </div>
  `;
}

/** @param {{session: string, one: any, running: boolean}} props */
function Queued({ session, one, running }) {
  const [editing, setEditing] = useState(false);
  const text = written(one.message);
  const change = (body) => attempt("changeQueued", { session, id: one.id, ...body });
  const focus = () => document.getElementById("say")?.focus();
  const close = () => {
    setEditing(false);
    focus();
  };
  const save = async (words) => {
    if (await change({ text: words })) close();
  };
  const remove = async () => {
    await attempt("removeQueued", { session, id: one.id });
    focus();
  };
  if (editing)
    return html`
      <li class="queued">
        <${Editing} text=${text} onSave=${save} onClose=${close} />
      </li>
    `;
  const attached = (one.attached?.length ?? 0) + filesIn(one.message);
  return html`
    <li class="queued">
      <${Icon} name="wait" />
      <span class="queued-text">
        <${Say} text=${text} />
        ${attached > 0 && html`<span class="quiet"> · ${several(attached, "attachment")}</span>`}
      </span>
      ${
        running &&
        html`
          <select
            class="small"
            aria-label="When the model gets it"
            value=${one.when ?? "step"}
            onChange=${(event) => change({ when: event.currentTarget.value })}
          >
            <option value="step">At the next step</option>
            <option value="turn">After this answer</option>
          </select>
        `
      }
      <${IconButton} name="edit" label="Edit" onClick=${() => setEditing(true)} />
      <${IconButton} name="close" label="Remove" onClick=${remove} />
    </li>
  `;
}

/** The queue of a conversation, above the message box. @param {{session: string}} props */
export function Queue({ session }) {
  const { queue, running } = talk(session);
  if (!queue.value.length) return null;
  const send = () => attempt("sendQueued", { session });
  return html`
    <section class="queue" aria-label="Queued messages">
      <ul>
        ${queue.value.map(
          (one) => html`
            <${Queued} key=${one.id} session=${session} one=${one} running=${running.value} />
          `,
        )}
      </ul>
      ${
        !running.value &&
        html`
          <p class="buttons">
            <button type="button" class="small" onClick=${send}>
              Send ${queue.value.length > 1 ? "them" : "it"} now
            </button>
            <span class="quiet small-line">
              Otherwise ${queue.value.length > 1 ? "they go" : "it goes"} with your next message.
            </span>
          </p>
        `
      }
    </section>
  `;
}
