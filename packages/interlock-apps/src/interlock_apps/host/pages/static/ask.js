// @ts-check
// The frame of every question to the person: who asks, warnings, answers with their keys, and the
// focus.
import {
  From,
  Icon,
  Say,
  Warnings,
  cls,
  html,
  typing,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  visible,
} from "../kit/kit.js";
import { act } from "../kit/net.js";
import { asks, isSkill, questions } from "./store.js";

/**
 * Milliseconds in which a new question takes no answer, so that a key or click meant for something
 * else does not answer it.
 */
const CALM = 500;
/**
 * The stage before it is known which parts of a question are visible: it takes no answer.
 */
export const LOOKING = "looking";

/** Whether the person is busy with something, so that the focus must stay where it is. */
function busyElsewhere() {
  const now = document.activeElement;
  if (!now || now === document.body) return false;
  // The page cannot know what the person types in an app: the next letter could be the one that
  // allows the call that the app wants.
  if (now instanceof HTMLIFrameElement) return true;
  if (now.closest("dialog[open], [data-question]")) return true;
  if (now.id === "say") return /** @type {HTMLTextAreaElement} */ (now).value !== "";
  return typing(now);
}

/**
 * Scroll a question into view; one that is too long is shown from its beginning.
 * @param {HTMLElement} question
 */
export function show(question) {
  const room = question.closest(".log, .waiting");
  if (room && question.offsetHeight > room.clientHeight)
    room.scrollTop += question.getBoundingClientRect().top - room.getBoundingClientRect().top;
  else question.scrollIntoView({ block: "nearest" });
}

/** Go to the oldest open question, or to the composer if there is none. */
export function toNextQuestion() {
  const next = document.querySelector("[data-question]") ?? document.getElementById("say");
  if (next instanceof HTMLElement) (next.focus({ preventScroll: true }), show(next));
}

/**
 * A question. `answers` are its buttons; `act` gets the function that sends an answer. `key` is the
 * letter that presses a button while the focus is in the question but not in a field. After a
 * change of `stage`, answers are disabled for a moment: a click may have been meant for the old
 * ones.
 * `give` sends an answer, if the question stands for several. `more` is shown in the place of the
 * answers.
 * @param {{question: any, title: any, icon?: any, children?: any, denial?: {label: string, main?:
 *   boolean}, stage?: string, give?: (answer: any) => Promise<void>, more?: any, answers: {key?:
 *   string, label: string, main?: boolean, off?: boolean,
 *   act: (send: (answer: any) => Promise<void>) => any}[]}} props
 */
export function Ask(props) {
  const {
    question,
    title,
    icon = "ask",
    children,
    answers,
    denial,
    stage = "",
    give,
    more = null,
  } = props;
  const box = useRef(/** @type {any} */ (null));
  const inside = useRef(false);
  const id = useId();
  const [armed, setArmed] = useState(false);
  const [busy, setBusy] = useState(false);
  const [words, setWords] = useState("");
  const [denying, setDenying] = useState(false);
  // New answers count as a new question, because a key or click may be meant for the old ones.
  useLayoutEffect(() => {
    setArmed(false);
    if (stage === LOOKING) return undefined;
    const timer = window.setTimeout(() => setArmed(true), CALM);
    return () => window.clearTimeout(timer);
  }, [stage]);
  useLayoutEffect(() => {
    if (!busyElsewhere()) {
      box.current.focus({ preventScroll: true });
      show(box.current);
    }
    const mine = box.current;
    return () => {
      if (mine.contains(document.activeElement)) window.setTimeout(toNextQuestion, 0);
    };
  }, []);
  // A button that is removed or disabled must not lose the focus of the question.
  useLayoutEffect(() => {
    const lost = document.activeElement === document.body || document.activeElement === null;
    if (inside.current && lost) box.current.focus({ preventScroll: true });
  });
  const left = (event) => {
    if (event.relatedTarget) inside.current = box.current.contains(event.relatedTarget);
  };
  const send = async (answer) => {
    // The button is removed; the focus must stay.
    if (box.current.contains(document.activeElement)) box.current.focus({ preventScroll: true });
    setBusy(true);
    setWords("");
    try {
      if (give) {
        await give(answer);
        setBusy(false);
        setDenying(false);
        return;
      }
      await act("answer", { question: question.id, answer });
      const rest = new Map(questions.value);
      if (rest.delete(question.id)) questions.value = rest;
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
      setBusy(false);
    }
  };
  const deny = (reason) => send({ type: "decision", allow: false, reason });
  const no = denial && {
    key: "d",
    label: denial.label,
    main: denial.main,
    act: () => setDenying(true),
  };
  let all = answers;
  if (no) all = no.main ? [no, ...answers] : [...answers, no]; // the recommended answer comes first
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const found = all.find((one) => one.key && one.key === event.key.toLowerCase());
    if (!found || found.off || busy || more || (denying && found.key !== "d") || event.repeat)
      return;
    event.preventDefault();
    if (armed) found.act(send);
  };
  let foot = html`
    <div class="buttons answers">
      ${all.map(
        (one) => html`
          <button
            key=${one.label}
            type="button"
            class=${cls(one.main ? "main" : "", one.key === "d" && "deny")}
            disabled=${busy || !armed || one.off}
            onClick=${() => one.act(send)}
            aria-keyshortcuts=${one.key || undefined}
          >
            <span>${one.label}</span>
            ${one.key && html`<kbd aria-hidden="true">${one.key.toUpperCase()}</kbd>`}
          </button>
        `,
      )}
    </div>
  `;
  if (more) foot = more(send);
  if (denying) {
    const back = () => {
      setDenying(false);
      box.current.focus();
    };
    foot = html`
      <${Reason} label=${denial?.label} onBack=${back} onSend=${deny} busy=${busy} />
    `;
  }
  return html`
    <section
      ref=${box}
      class=${cls("ask", question.warnings?.length && "warned")}
      tabindex="-1"
      data-question=${question.id}
      aria-labelledby=${id}
      onKeyDown=${press}
      onfocusin=${() => {
        inside.current = true;
      }}
      onfocusout=${left}
    >
      <header class="ask-head">
        <${Icon} name=${icon} />
        <h3 id=${id}>${title}</h3>
        <${From} server=${question.server} />
      </header>
      <${Warnings} warnings=${question.warnings} />
      ${children}
      ${
        words &&
        html`
          <p class="wrong" role="alert">
            <${Say} text=${words} />
          </p>
        `
      }
      ${foot}
    </section>
  `;
}

/** The reason for a denial, for the model or the server. */
function Reason({ label = "Deny", onBack, onSend, busy }) {
  const [reason, setReason] = useState("");
  const field = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => field.current.focus(), []);
  const submit = (event) => {
    event.preventDefault();
    onSend(reason);
  };
  const key = (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      event.preventDefault();
      onBack();
    }
  };
  return html`
    <form class="reason" onSubmit=${submit} onKeyDown=${key}>
      <label>
        Why not? (optional)
        <input
          ref=${field}
          value=${reason}
          onInput=${(event) => setReason(event.currentTarget.value)}
          autocomplete="off"
        />
      </label>
      <div class="buttons">
        <button type="submit" class="deny main" disabled=${busy}>
          <span>${label}</span>
          <kbd aria-hidden="true">↵</kbd>
        </button>
        <button type="button" class="quiet" onClick=${onBack}>
          Back
        </button>
      </div>
    </form>
  `;
}

/** The outcome of a question, in one line. @param {{asked: any}} props */
export function Settled({ asked }) {
  const { question } = asked;
  const { answer, by } = asked.answer.value;
  const who = by === "person" ? "You" : by === "rule" ? "A rule" : "Nobody";
  const [icon, words] = settled(question, answer, who);
  return html`
    <p class=${cls("settled", icon === "cross" && "no")}>
      <${Icon} name=${icon} />
      <span>
        ${words}
        ${
          answer.reason &&
          html`
            ${" "}
            “<${Say} text=${answer.reason} />”
          `
        }
      </span>
    </p>
  `;
}

/**
 * The host's words for a question that became moot before an answer.
 */
const MOOT = "The question is no longer open.";

/** The subject of an answer. */
function subject(question) {
  if (isSkill(question)) return `the skill ${question.changes[0].name} of ${question.server}`;
  return {
    call: "the call",
    plan: "the plan",
    start: `the start of ${question.server}`,
    pin: `what ${question.server} has changed`,
    result: "the result for the model",
    sample: "asking a model",
    sampled: "the model's answer",
    form: "the form",
    url: "the page",
  }[question.type];
}

/** @returns {["check" | "cross", string]} */
function settled(question, answer, who) {
  const what = subject(question);
  if (answer.type === "none")
    return [
      "cross",
      answer.words === MOOT || !answer.words
        ? `Stopped before you answered: ${visible(asks(question))}`
        : `Nobody answered about ${what}. ${answer.words}`,
    ];
  if (answer.type === "filled") {
    if (answer.action === "accept")
      return [
        "check",
        question.type === "form"
          ? `${who} sent the form to ${question.server}.`
          : `${who} agreed to visit ${question.host}.`,
      ];
    return ["cross", `${who} ${answer.action === "decline" ? "declined" : "cancelled"} ${what}.`];
  }
  const edited =
    answer.arguments || answer.request || answer.result || answer.sampled ? ", edited" : "";
  const scoped = question.scopes?.[answer.scope];
  const held = { session: " for this session", always: " always" }[answer.remember] ?? "";
  if (answer.allow && scoped) return ["check", `${who} allowed${held}: ${visible(scoped.words)}.`];
  return answer.allow
    ? ["check", `${who} allowed ${what}${edited}${held}.`]
    : ["cross", `${who} denied ${what}${answer.reason ? ":" : "."}`];
}
