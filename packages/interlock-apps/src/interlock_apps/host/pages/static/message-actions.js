// @ts-check
// What can be done with a message: copy, edit and send again, ask again, go on from it, and switch
// between the branches of the conversation.
import { Icon, IconButton, html, useLayoutEffect, useRef, useState } from "../kit/kit.js";
import { attempt, isLive, talk, texts } from "./store.js";
import { withoutMarked } from "./untrusted-text.js";

const COPIED = 1500; // milliseconds for which a copied text is confirmed

/** Open a conversation of an earlier run, so that it can go on. @param {string} session */
const revive = async (session) => isLive(session) || !!(await attempt("resume", { session }));

/** What the person typed. @param {any} event */
const typed = (event) => {
  const content = event.messages?.at(-1)?.content ?? [];
  const own = (Array.isArray(content) ? content : [content]).filter((one) => one.type === "text");
  return event.prompt
    ? (event.messages ?? []).map((one) => withoutMarked(texts(one.content))).join("\n\n")
    : (own.at(-1)?.text ?? "");
};

/** @param {{text: string}} props */
function CopyMessage({ text }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      window.setTimeout(() => setDone(false), COPIED);
    } catch {
      setDone(false);
    }
  };
  return html`
    <${IconButton} name=${done ? "check" : "copy"} label="Copy" onClick=${copy} />
    <span class="hidden-text" aria-live="polite">${done ? "Copied" : ""}</span>
  `;
}

/** The buttons below a message of the person. @param {{item: any, onEdit: () => void}} props */
export function SaidActions({ item, onEdit }) {
  const session = item.talk;
  const busy = talk(session).running.value;
  const again = async () => {
    if (await revive(session)) attempt("retry", { session, message: item.seq });
  };
  return html`
    <div class="message-actions" role="group" aria-label="Message">
      <${CopyMessage} text=${typed(item.event)} />
      ${
        !busy &&
        item.seq > 0 &&
        html`
          ${
            !item.event.prompt && html`<${IconButton} name="edit" label="Edit" onClick=${onEdit} />`
          }
          <${IconButton} name="again" label="Ask again" onClick=${again} />
        `
      }
      <${Pager} item=${item} />
    </div>
  `;
}

/** The buttons below a message of the model. @param {{item: any}} props */
export function AnswerActions({ item }) {
  const session = item.talk;
  const busy = talk(session).running.value;
  const again = async () => {
    if (await revive(session)) attempt("retry", { session, message: item.seq });
  };
  const branch = async () => {
    if (!(await revive(session))) return;
    if (await attempt("branchAfter", { session, message: item.seq }))
      document.getElementById("say")?.focus();
  };
  return html`
    <div class="message-actions" role="group" aria-label="Message">
      <${CopyMessage} text=${item.text.value} />
      ${
        !busy &&
        item.seq > 0 &&
        html`
          <${IconButton} name="again" label="Ask again" onClick=${again} />
          <${IconButton} name="branch" label="Go on from here" onClick=${branch} />
        `
      }
      <${Pager} item=${item} />
    </div>
  `;
}

/** Which branch this message is in, if there are several. @param {{item: any}} props */
const Pager = ({ item }) => {
  const fork = talk(item.talk).forks.value.get(item.begin);
  return fork ? html`<${Branches} session=${item.talk} fork=${fork} />` : null;
};

/**
 * The place of a branch among those that begin here, and the way to the others.
 * @param {{session: string, fork: {chosen: number, ends: number[]}}} props
 */
function Branches({ session, fork }) {
  const busy = talk(session).running.value;
  const { chosen, ends } = fork;
  const show = (place) => () => attempt("switchBranch", { session, end: ends[place] });
  return html`
    <span class="branches" role="group" aria-label="Branches">
      <${IconButton}
        name="left"
        label="Earlier branch"
        disabled=${busy || chosen === 0}
        onClick=${show(chosen - 1)}
      />
      <span>${chosen + 1} of ${ends.length}</span>
      <${IconButton}
        name="chevron"
        label="Later branch"
        disabled=${busy || chosen === ends.length - 1}
        onClick=${show(chosen + 1)}
      />
    </span>
  `;
}

/** The end of a branch in which nothing was said yet. @param {{session: string}} props */
export function EmptyBranch({ session }) {
  const fork = talk(session).forks.value.get(0);
  if (!fork) return null;
  return html`
    <p class="line quiet empty-branch">
      <${Icon} name="branch" />
      <span class="grow">A new branch. Your next message goes on from here.</span>
      <${Branches} session=${session} fork=${fork} />
    </p>
  `;
}

/** The message box in place of a message. @param {{item: any, onDone: () => void}} props */
export function EditMessage({ item, onDone }) {
  const session = item.talk;
  const [text, setText] = useState(() => typed(item.event));
  const field = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    field.current.focus();
    field.current.setSelectionRange(text.length, text.length);
  }, []);
  useLayoutEffect(() => {
    field.current.rows = Math.min(12, Math.max(2, text.split("\n").length));
  }, [text]);
  const send = async (event) => {
    event?.preventDefault();
    if (!text.trim() || !(await revive(session))) return;
    onDone();
    await attempt("editMessage", { session, message: item.seq, text });
  };
  const key = (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) send(event);
    else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      onDone();
    }
  };
  return html`
    <form class="edit-message" onSubmit=${send} aria-label="Edit the message">
      <textarea
        ref=${field}
        aria-label="The message"
        value=${text}
        onInput=${(event) => setText(event.currentTarget.value)}
        onKeyDown=${key}
      ></textarea>
      <div class="buttons">
        <button type="submit" class="main small" disabled=${!text.trim()}>Send</button>
        <button type="button" class="small" onClick=${onDone}>Cancel</button>
        <span class="quiet small-line">The earlier message stays as another branch.</span>
      </div>
    </form>
  `;
}
