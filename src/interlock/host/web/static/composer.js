// @ts-check
// Where the person writes: several lines, what is attached, prompts and resources at hand, and a way to stop.
import { Icon, IconButton, cls, html, useLayoutEffect, useRef, useState } from "./kit.js";
import { speak } from "./conversation.js";
import { choosePrompt } from "./prompts.js";
import { Chip, chooseResources } from "./resources.js";
import { attached, attempt, current, draft, models, open, sessions, talk } from "./store.js";

const MOST_ROWS = 12, NARROW = window.matchMedia("(max-width: 760px)");

/** Stop what is running. */
export const stop = () => current.value && attempt("cancel", { session: current.value });

/** @param {{id: string}} props */
export function Composer({ id }) {
  const text = draft(id).value;
  const [model, setModel] = useState("");
  const field = useRef(/** @type {any} */ (null));
  const running = id ? talk(id).running.value : false;
  const listed = sessions.value.find((one) => one.id === id);
  const replay = id !== "" && (!listed || listed.past);
  useLayoutEffect(() => {
    if (window.matchMedia("(pointer: fine)").matches && !document.activeElement?.closest("dialog, [data-question]")) field.current?.focus();
  }, [id]);
  useLayoutEffect(() => {
    const box = field.current;
    if (!box) return;
    box.rows = 1;
    const looks = getComputedStyle(box);
    const rows = Math.round((box.scrollHeight - parseFloat(looks.paddingTop) - parseFloat(looks.paddingBottom)) / parseFloat(looks.lineHeight));
    box.rows = Math.max(1, Math.min(MOST_ROWS, rows));
  }, [text]);
  const write = (value) => { draft(current.value).value = value; };
  const send = async (event) => {
    event?.preventDefault();
    if (running || !text.trim()) return;
    const attach = attached.value, said = text;
    write("");
    attached.value = [];
    if (!(await speak("say", { text: said, attach }, model)) && !draft(current.value).value) {
      write(said);
      attached.value = attach;
    }
  };
  const key = (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) send(event);
    else if (event.key === "/" && text === "") event.preventDefault(), choosePrompt();
    else if (event.key === "@" && /(?:^|\s)$/.test(text.slice(0, event.currentTarget.selectionStart))) event.preventDefault(), chooseResources();
    else if (event.key === "Escape" && running) event.preventDefault(), stop();
  };
  const resume = async () => {
    const again = await attempt("resume", { session: id });
    if (again) open(again.session);
  };
  if (replay) return html`<div class="composer"><p class="quiet replay"><${Icon} name="list" /> This is the record of an earlier conversation; it is shown from the log.<button type="button" onClick=${resume}>Go on with it</button></p></div>`;
  return html`<form class="composer" onSubmit=${send} aria-label="Say something">
    ${attached.value.length > 0 && html`<div class="chips" aria-label="Attached">${attached.value.map((one) => html`<${Chip} key=${one.server + one.uri} one=${one} onRemove=${() => { attached.value = attached.value.filter((each) => each !== one); field.current.focus(); }} />`)}</div>`}
    <div class="composer-box">
      <textarea id="say" ref=${field} rows="1" aria-label="What you say" placeholder=${NARROW.matches ? "Say what you want" : "Say what you want, / for prompts, @ for resources"} value=${text} onInput=${(event) => write(event.currentTarget.value)} onKeyDown=${key}></textarea>
      <div class="composer-row"><button type="button" class="small quiet" aria-label="Prompts" onClick=${choosePrompt}><${Icon} name="prompt" /><span>Prompts</span></button><button type="button" class="small quiet" aria-label="Resources" onClick=${chooseResources}><${Icon} name="at" /><span>Resources</span></button>
        <span class="grow"></span>
        ${!id && models.value.length > 1 && html`<select class="small" aria-label="Model" value=${model} onChange=${(event) => setModel(event.currentTarget.value)}><option value="">${models.value[0].name}</option>${models.value.slice(1).map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select>`}
        ${running ? html`<button type="button" class="stop" onClick=${stop} aria-keyshortcuts="Escape"><${Icon} name="stop" />Stop<kbd aria-hidden="true">Esc</kbd></button>` : html`<${IconButton} name="send" label="Send" type="submit" class=${cls("send", !text.trim() && "idle")} />`}
      </div></div></form>`;
}
