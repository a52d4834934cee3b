// @ts-check
// Questions about calls: may a tool be called, and may its result go to the model.
import { Clamped, Fold, Icon, Say, html, several, useRef, useState } from "../kit/kit.js";
import { Arguments } from "../kit/arguments.js";
import { Ask, LOOKING } from "./ask.js";
import { Content } from "../kit/content.js";
import { Result } from "./result.js";
import { ArgumentsEditor } from "../kit/fields.js";
import { useSeen } from "../kit/seen.js";
import { Scopes } from "./answer-scopes.js";

// The meaning of an annotation that is set, and of one that is set to false.
const HINTS = [
  ["readOnlyHint", "read-only", "writes"],
  ["destructiveHint", "destructive", "not destructive"],
  ["idempotentHint", "safe to repeat", ""],
  ["openWorldHint", "uses the network", "no network"],
];

/**
 * An annotation in words; nothing if it is absent.
 * @param {boolean | undefined} hint
 * @param {string} yes
 * @param {string} no
 */
function hinted(hint, yes, no) {
  if (hint === true) return yes;
  return hint === false ? no : "";
}

/** The server's annotations of its tool, which are believed only of a trusted server. */
export function Annotations({ annotations, trusted }) {
  const words = HINTS.map(([name, yes, no]) => hinted(annotations?.[name], yes, no)).filter(
    Boolean,
  );
  if (!words.length) return null;
  return html`
    <span class="annotations">
      <span class="quiet">${trusted ? "" : "The server says: "}</span>
      ${words.map(
        (one) => html`
          <span key=${one} class=${one === "destructive" ? "tag care" : "tag"}>
            ${one}
          </span>
        `,
      )}
    </span>
  `;
}

/** The host's words if no rule applies: not worth reading before every call. */
export const DEFAULT = "No rule decides this.";
const BY = { model: "The model", app: "An app of the server", person: "You" };

/** May this tool be called with these arguments? */
export function CallQuestion({ question }) {
  const [editing, setEditing] = useState(false);
  const [edited, setEdited] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState(false);
  const [open, setOpen] = useState(false);
  const [scoping, setScoping] = useState(false);
  const box = useRef(/** @type {any} */ (null));
  const values = edited ?? question.arguments ?? {};
  const seen = useSeen(box, values);
  const showAll = () => {
    setOpen(true);
    setEditing(false);
    seen.seeAll();
  };
  const change = (value, bad, pointer) => {
    if (pointer) seen.wrote(value, pointer);
    setEdited(value);
    setWrong(bad);
  };
  const tool = html`<${Say} text=${question.title || question.tool} />`;
  const answers = answersTo({ question, seen, edited, wrong, editing, setEditing, showAll });
  if (scopes(question) && !(seen.unseen > 0))
    answers.push({
      key: "m",
      label: "More like this",
      off: wrong || !seen.ready,
      act: () => setScoping(!scoping),
    });
  const back = () => setScoping(false);
  return html`
    <${Ask}
      question=${question}
      title=${html`
        Call ${tool} on <${Say} text=${question.server} />?
      `}
      icon="tool"
      denial=${{ label: "Deny", main: question.flagged || !!question.risk }}
      stage=${stageOf(seen)}
      answers=${answers}
      more=${
        scoping
          ? (send) => html`
            <${Scopes}
              scopes=${question.scopes}
              off=${wrong}
              onBack=${back}
              onAllow=${(scope, remember) =>
                send({
                  type: "decision",
                  allow: true,
                  remember,
                  scope,
                  ...(edited ? { arguments: edited } : {}),
                })}
            />
          `
          : null
      }
    >
      ${
        question.risk &&
        html`
          <p class="risk">
            <${Icon} name="warn" />
            <span>
              <${Say} text=${question.risk} />
            </span>
          </p>
        `
      }
      <p class="ask-line">
        ${BY[question.by] ?? "The model"} wants to call${" "}
        <code>
          <${Say} text=${question.tool} />
        </code>
        . <${Annotations} annotations=${question.annotations} trusted=${question.trusted} />
        ${
          question.why &&
          question.why !== DEFAULT &&
          question.why !== question.risk &&
          html`
            ${" "}
            <span class="quiet">
              <${Say} text=${question.why} />
            </span>
          `
        }
      </p>
      ${
        question.description &&
        html`
          <${Fold}
            title=${html`
              What <${Say} text=${question.server} /> says about it
            `}
          >
            <p class="wrap">
              <${Say} text=${question.description} />
            </p>
          </${Fold}>
        `
      }
      <div ref=${box} class="to-approve">
        ${
          editing &&
          html`
            <${ArgumentsEditor} schema=${question.inputSchema} value=${values} onChange=${change} />
          `
        }
        ${
          !editing &&
          seen.total > 0 &&
          html`
            <${Clamped} open=${open} onOpen=${seen.seeAll}>
              <${Arguments} value=${values} />
            </${Clamped}>
          `
        }
        ${!editing && !seen.total && html`<p class="quiet">No arguments.</p>`}
      </div>
      ${
        edited &&
        !wrong &&
        html`
          <p class="note">
            <${Icon} name="edit" /> The arguments are as you edited them.
          </p>
        `
      }
    </${Ask}>
  `;
}

/** Whether the answer may cover other calls. @param {any} question */
const scopes = (question) =>
  question.scopes?.length > 0 && question.mayRemember !== false && !question.flagged;

/** No answer is possible before the visible values were determined. */
export function stageOf({ ready, unseen }) {
  if (!ready) return LOOKING;
  return unseen > 0 ? "unseen" : "seen";
}

/** The answers to a call. With unseen values, only a button that says so allows it. */
function answersTo({ question, seen, edited, wrong, editing, setEditing, showAll }) {
  const allow = (remember) => (send) =>
    send({ type: "decision", allow: true, remember, ...(edited ? { arguments: edited } : {}) });
  const edit = {
    key: "e",
    label: editing ? "Done editing" : "Edit arguments",
    off: wrong && editing,
    act: () => setEditing(!editing),
  };
  if (seen.ready && seen.unseen > 0) {
    const blind = `Allow without having seen ${seen.unseen} of ${several(seen.total, "value")}`;
    const all = seen.total === 1 ? "Show all of it" : `Show all ${seen.total} values`;
    return [
      { key: "v", label: all, main: !question.flagged, off: wrong, act: showAll },
      { label: blind, off: wrong, act: allow("once") },
      edit,
    ];
  }
  const off = wrong || !seen.ready;
  const once = { key: "a", label: "Allow once", main: !question.risk, off, act: allow("once") };
  const renew = (send) =>
    send({
      type: "decision",
      allow: true,
      renew: true,
      ...(edited ? { arguments: edited } : {}),
    });
  // A flagged call must not be allowed by habit: no key for it, and no lasting permission.
  if (question.flagged) return [{ ...once, key: undefined, main: false }, edit];
  if (question.mayRemember === false) return [once, edit];
  if (question.bounded)
    return [
      { ...once, main: false },
      { key: "r", label: "Allow, and count the bounds from zero", off, act: renew },
      edit,
    ];
  return [
    once,
    { key: "s", label: "Allow for this session", off, act: allow("session") },
    { label: "Always allow", off, act: allow("always") },
    edit,
  ];
}

/** May this result go to the model? Its texts can be edited first. */
export function ResultQuestion({ question }) {
  const [editing, setEditing] = useState(false);
  const [result, setResult] = useState(/** @type {any} */ (null));
  const now = result ?? question.result;
  const write = (at, text) =>
    setResult({
      ...now,
      structuredContent: undefined,
      content: now.content.map((block, place) => (place === at ? { ...block, text } : block)),
    });
  const give = (send) => send({ type: "decision", allow: true, ...(result ? { result } : {}) });
  const field = (block, at) => html`
    <div class="field" key=${at}>
      <label>
        Text ${at + 1}
        <textarea
          rows="6"
          value=${block.text}
          onInput=${(event) => write(at, event.currentTarget.value)}
        ></textarea>
      </label>
    </div>
  `;
  const tool = html`<${Say} text=${question.title || question.tool} />`;
  return html`
    <${Ask}
      question=${question}
      title=${html`
        Give the result of ${tool} on <${Say} text=${question.server} /> to the model?
      `}
      denial=${{ label: "Withhold" }}
      answers=${[
        { key: "a", label: "Give it", main: true, act: give },
        { key: "e", label: editing ? "Done editing" : "Edit", act: () => setEditing(!editing) },
      ]}
    >
      ${
        editing &&
        now.content.map((block, at) =>
          block.type === "text"
            ? field(block, at)
            : html`
              <${Content} key=${at} block=${block} server=${question.server} />
            `,
        )
      }
      ${
        !editing &&
        html`
          <${Clamped}>
            <${Result} result=${now} server=${question.server} />
          </${Clamped}>
        `
      }
      ${
        result &&
        html`
          <p class="note">
            <${Icon} name="edit" /> The result is as you edited it; structured content is left out.
          </p>
        `
      }
    </${Ask}>
  `;
}
