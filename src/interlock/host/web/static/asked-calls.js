// @ts-check
// Questions about calls: may a tool be called, may its result go to the model.
import { Clamped, Fold, Icon, Say, html, useState } from "./kit.js";
import { Ask } from "./ask.js";
import { Content, Looked } from "./content.js";
import { Result } from "./result.js";
import { ArgumentsEditor } from "./fields.js";

const HINTS = [["readOnlyHint", "changes nothing", "changes things"], ["destructiveHint", "may destroy", "destroys nothing"], ["idempotentHint", "again does no harm", ""], ["openWorldHint", "reaches outside", "stays inside"]];

/** What a server says that its tool does; to be believed only of one that is trusted. */
export function Annotations({ annotations, trusted }) {
  const words = HINTS.map(([name, yes, no]) => (annotations?.[name] === true ? yes : annotations?.[name] === false ? no : "")).filter(Boolean);
  if (!words.length) return null;
  const care = annotations?.destructiveHint === true;
  return html`<span class="annotations"><span class="quiet">${trusted ? "" : "The server says: "}</span>${words.map((one) => html`<span key=${one} class=${one === "may destroy" && care ? "tag care" : "tag"}>${one}</span>`)}</span>`;
}

/** What the host says where no rule does: nothing that a person has to read before every call. */
export const DEFAULT = "No rule decides this.";
const BY = { model: "The model", app: "An app of the server", person: "You" };

/** May this tool be called with these arguments? */
export function CallQuestion({ question }) {
  const [editing, setEditing] = useState(false);
  const [edited, setEdited] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState(false);
  return html`<${Answer} question=${question} edited=${edited} wrong=${wrong} editing=${editing} setEditing=${setEditing}>
    <p class="ask-line">${BY[question.by] ?? "The model"} wants to call <code><${Say} text=${question.tool} /></code>. <${Annotations} annotations=${question.annotations} trusted=${question.trusted} />${question.why && question.why !== DEFAULT && html` <span class="quiet"><${Say} text=${question.why} /></span>`}</p>
    ${question.description && html`<${Fold} title=${html`What <${Say} text=${question.server} /> says about it`}><p class="wrap"><${Say} text=${question.description} /></p><//>`}
    ${editing ? html`<${ArgumentsEditor} schema=${question.inputSchema} value=${edited ?? question.arguments} onChange=${(value, bad) => { setEdited(value); setWrong(bad); }} />`
      : Object.keys(question.arguments ?? {}).length ? html`<${Clamped}><${Looked} value=${edited ?? question.arguments} label="How the arguments are shown" /><//>` : html`<p class="quiet">It takes no arguments.</p>`}
    ${edited && !wrong && html`<p class="note"><${Icon} name="edit" /> The arguments are as you edited them.</p>`}
  <//>`;
}

/** The frame with the answers to a call. */
function Answer({ question, edited, wrong, editing, setEditing, children }) {
  const allow = (remember) => (send) => send({ type: "decision", allow: true, remember, ...(edited ? { arguments: edited } : {}) });
  return html`<${Ask} question=${question} title=${html`Call <${Say} text=${question.title || question.tool} />?`} icon="tool" denial=${{ label: "Deny" }}
    answers=${[
      { key: "a", label: "Allow once", main: true, off: wrong, act: allow("once") },
      ...(question.mayRemember === false ? [] : [{ key: "s", label: "For this session", off: wrong, act: allow("session") }, { label: "Always", off: wrong, act: allow("always") }]),
      { key: "e", label: editing ? "Done editing" : "Edit arguments", off: wrong && editing, act: () => setEditing(!editing) },
    ]}>${children}<//>`;
}

/** May this result go to the model? Its texts can be changed before. */
export function ResultQuestion({ question }) {
  const [editing, setEditing] = useState(false);
  const [result, setResult] = useState(/** @type {any} */ (null));
  const now = result ?? question.result;
  const write = (at, text) => setResult({ ...now, structuredContent: undefined, content: now.content.map((block, place) => (place === at ? { ...block, text } : block)) });
  return html`<${Ask} question=${question} title=${html`Give the result of <${Say} text=${question.title || question.tool} /> to the model?`} denial=${{ label: "Keep it back" }}
    answers=${[{ key: "a", label: "Give it", main: true, act: (send) => send({ type: "decision", allow: true, ...(result ? { result } : {}) }) }, { key: "e", label: editing ? "Done editing" : "Edit", act: () => setEditing(!editing) }]}>
    ${editing ? now.content.map((block, at) => (block.type === "text" ? html`<div class="field" key=${at}><label>Text ${at + 1}<textarea rows="6" value=${block.text} onInput=${(event) => write(at, event.currentTarget.value)}></textarea></label></div>` : html`<${Content} key=${at} block=${block} server=${question.server} />`))
      : html`<${Clamped}><${Result} result=${now} server=${question.server} /><//>`}
    ${result && html`<p class="note"><${Icon} name="edit" /> The result is as you edited it; structured content is left out.</p>`}
  <//>`;
}
