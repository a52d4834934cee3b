// @ts-check
// Questions of servers: forms, pages and sampling, answered here, by a rule, or by a recording.
import {
  Choice,
  Copy,
  Icon,
  IconButton,
  Say,
  Warnings,
  cls,
  html,
  json,
  useEffect,
  useId,
  useRef,
  useState,
  visible,
} from "../../kit/kit.js";
import { Content, Json } from "../../kit/content.js";
import { ArgumentsEditor, Input, checked, toFirstWrong, typed } from "../../kit/fields.js";
import { safe } from "../../kit/markdown.js";
import { act } from "../../kit/net.js";
import { attempt } from "../store.js";
import { Closed, Wrong, isOpen } from "./common.js";

const TITLES = {
  form: "asks for information",
  url: "wants you to visit a page",
  sampling: "wants a model to answer",
};

/** A question that waits for an answer. */
export function QuestionCard({ connection, question }) {
  const [words, setWords] = useState(question.problem);
  const [wrong, setWrong] = useState(/** @type {Record<string, string>} */ ({}));
  const answer = async (given) => {
    setWords("");
    try {
      const done = await act("answerQuestion", {
        connection: connection.name,
        question: question.id,
        answer: given,
      });
      setWrong(done.wrong ?? {});
      if (done.wrong) setWords("The server's schema does not allow these values.");
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
  };
  const Kind = { form: Form, url: Page, sampling: Sampling }[question.kind];
  return html`
    <section class="question" aria-label=${`Question ${question.id}`} data-question=${question.id}>
      <h3>
        <${Icon} name="ask" />
        <span><${Say} text=${connection.name} /> ${TITLES[question.kind]}</span>
        ${question.tool && html`<code class="quiet"><${Say} text=${question.tool} /></code>`}
      </h3>
      <p class="message wrap"><${Say} text=${question.message} /></p>
      <${Kind} question=${question} wrong=${wrong} answer=${answer} />
      <${Wrong} words=${words} />
      <div class="buttons">
        ${
          Object.keys(wrong).length > 0 &&
          html`<span class="quiet">You can also send values that do not fit, as JSON.</span>`
        }
        <button type="button" class="small" onClick=${() => answer({ action: "decline" })}>
          Decline
        </button>
        ${
          question.kind !== "sampling" &&
          html`
            <button type="button" class="small" onClick=${() => answer({ action: "cancel" })}>
              Cancel
            </button>
          `
        }
        <button
          type="button"
          class="small quiet"
          onClick=${() => answer({ action: "recording" })}
        >
          Answer as recorded
        </button>
        ${
          question.kind !== "url" &&
          html`
            <button type="button" class="small quiet" onClick=${() => answer({ action: "model" })}>
              Let the model answer
            </button>
          `
        }
      </div>
    </section>
  `;
}

/** A form, filled in by fields; or its values as JSON, also those that do not fit. */
function Form({ question, wrong, answer }) {
  const fields = question.fields;
  const [form, setForm] = useState(() => typed(fields));
  const [own, setOwn] = useState(/** @type {Record<string, string>} */ ({}));
  const [way, setWay] = useState(fields.length || !question.words ? "form" : "json");
  const [text, setText] = useState("");
  const [broken, setBroken] = useState("");
  const box = useRef(/** @type {any} */ (null));
  const send = (event) => {
    event?.preventDefault?.();
    if (way === "json") {
      try {
        const content = JSON.parse(text);
        if (!content || typeof content !== "object" || Array.isArray(content))
          throw new SyntaxError("the values are an object");
        setBroken("");
        answer({ action: "send", content, unchecked: true });
      } catch (bad) {
        setBroken(`This is not JSON: ${bad instanceof Error ? bad.message : bad}`);
      }
      return;
    }
    const found = checked(fields, form);
    setOwn(found.wrong);
    if (Object.keys(found.wrong).length) toFirstWrong(box.current, found.wrong);
    else answer({ action: "send", content: found.content });
  };
  const choose = (next) => {
    if (next === "json") setText(json(checked(fields, form).content));
    setWay(next);
  };
  return html`
    <form ref=${box} class="fields" noValidate onSubmit=${send}>
      <${Choice}
        label="How the form is filled in"
        value=${way}
        options=${[
          ["form", "Form"],
          ["json", "JSON, unchecked"],
        ]}
        onChange=${choose}
      />
      ${question.words && html`<p class="quiet"><${Say} text=${question.words} /></p>`}
      ${
        way === "form"
          ? fields.map(
              (field) => html`
                <${Input}
                  key=${field.name}
                  field=${field}
                  value=${form[field.name]}
                  words=${own[field.name] || wrong[field.name]}
                  onChange=${(value) => setForm({ ...form, [field.name]: value })}
                />
              `,
            )
          : html`
            <textarea
              class="mono"
              rows="5"
              aria-label="Values as JSON"
              spellcheck=${false}
              value=${text}
              onInput=${(event) => setText(event.currentTarget.value)}
            ></textarea>
            <${Wrong} words=${broken} />
          `
      }
      <div class="buttons">
        <button type="submit" class="main">Send</button>
      </div>
      <${Closed} title="Schema"><${Json} value=${question.schema} /></${Closed}>
    </form>
  `;
}

/** A page to visit. The browser opens it like any link, without opener and referrer. */
function Page({ question, answer }) {
  const address = safe(question.url);
  const web = /^https?:/i.test(address) ? address : "";
  return html`
    <${Warnings} warnings=${question.warnings} />
    <div class="address-box">
      <code class="wrap" aria-label="The whole address">${visible(question.url)}</code>
      <${Copy} text=${question.url} label="Copy address" />
    </div>
    <p class="host-line">It leads to <strong><${Say} text=${question.host} /></strong>.</p>
    <div class="buttons">
      ${
        web &&
        html`
          <a
            class="button main"
            href=${web}
            target="_blank"
            rel="noopener noreferrer"
            onClick=${() => answer({ action: "send" })}
          >
            Open the page
          </a>
        `
      }
      <button type="button" onClick=${() => answer({ action: "send" })}>
        Accept without opening
      </button>
    </div>
  `;
}

const list = (content) => (Array.isArray(content) ? content : [content]);

/** A sampling request: the whole request, and the text of the answer. */
function Sampling({ question, answer }) {
  const { request } = question;
  const [text, setText] = useState("");
  const id = useId();
  const { messages, ...rest } = request;
  return html`
    <div class="messages">
      ${
        request.systemPrompt &&
        html`
          <div class="sample-message">
            <span class="role">System</span>
            <p class="wrap"><${Say} text=${request.systemPrompt} /></p>
          </div>
        `
      }
      ${messages.map(
        (message, at) => html`
          <div key=${at} class=${cls("sample-message", message.role)}>
            <span class="role">${message.role === "user" ? "User" : "Assistant"}</span>
            ${list(message.content).map(
              (block, place) => html`<${Content} key=${place} block=${block} />`,
            )}
          </div>
        `,
      )}
    </div>
    <${Closed} title="Request as JSON"><${Json} value=${rest} /></${Closed}>
    <div class="field">
      <label for=${id}>The model's message</label>
      <textarea
        id=${id}
        rows="3"
        value=${text}
        onInput=${(event) => setText(event.currentTarget.value)}
      ></textarea>
    </div>
    <div class="buttons">
      <button
        type="button"
        class="main"
        disabled=${!text}
        onClick=${() => answer({ action: "send", text })}
      >
        Send
      </button>
    </div>
  `;
}

// -- rules ---------------------------------------------------------------------------------------

const METHODS = [
  ["", "Any question"],
  ["elicitation/create", "Forms and pages"],
  ["sampling/createMessage", "Sampling"],
];
const ANSWERS = [
  ["accept", "Accept, with these values"],
  ["decline", "Decline"],
  ["cancel", "Cancel"],
  ["text", "Answer sampling with this text"],
  ["recording", "Answer as recorded"],
  ["model", "Let the model answer"],
];
const wordsOf = (list, key) => list.find(([one]) => one === key)?.[1] ?? key;

/** A rule in one line. @param {any} rule */
const described = (rule) =>
  [
    wordsOf(METHODS, rule.method ?? ""),
    rule.tool && `of ${rule.tool}`,
    rule.message && `with “${rule.message}”`,
  ]
    .filter(Boolean)
    .join(" ");

/** The rules of a connection: the first that fits a question answers it. */
function Rules({ connection }) {
  const rules = connection.features.rules;
  const set = (next) => attempt("setRules", { connection: connection.name, rules: next });
  return html`
    <section aria-label="Rules" class="rules">
      <h2>Rules</h2>
      <p class="quiet">
        The first rule that fits a question answers it. A question that no rule answers waits here.
      </p>
      <ol class="rule-list">
        ${rules.map(
          (rule, at) => html`
            <li key=${at}>
              <span class="grow">
                <${Say} text=${described(rule)} />: ${wordsOf(ANSWERS, rule.answer)}
                ${
                  rule.answer === "accept" &&
                  html`${" "}<code><${Say} text=${JSON.stringify(rule.content ?? {})} /></code>`
                }
                ${rule.answer === "text" && html`${" "}<code><${Say} text=${rule.text} /></code>`}
              </span>
              <${IconButton}
                name="close"
                label=${`Remove rule ${at + 1}`}
                onClick=${() => set(rules.filter((_, place) => place !== at))}
              />
            </li>
          `,
        )}
      </ol>
      <${NewRule} add=${(rule) => set([...rules, rule])} />
    </section>
  `;
}

const BLANK = { method: "", tool: "", message: "", answer: "accept", text: "" };

function NewRule({ add }) {
  const [rule, setRule] = useState(BLANK);
  const [content, setContent] = useState(/** @type {any} */ ({}));
  const [wrong, setWrong] = useState(false);
  const [count, setCount] = useState(0);
  const ids = [useId(), useId(), useId(), useId(), useId()];
  const change = (name) => (event) => setRule({ ...rule, [name]: event.currentTarget.value });
  const submit = async (event) => {
    event.preventDefault();
    const { text, ...rest } = rule;
    const made = {
      ...rest,
      ...(rule.answer === "accept" ? { content } : {}),
      ...(rule.answer === "text" ? { text } : {}),
    };
    if ((await add(made)) === undefined) return;
    setRule(BLANK);
    setContent({});
    setCount(count + 1);
  };
  const select = (at, label, name, options) => html`
    <div class="field">
      <label for=${ids[at]}>${label}</label>
      <select id=${ids[at]} value=${rule[name]} onChange=${change(name)}>
        ${options.map(([key, words]) => html`<option key=${key} value=${key}>${words}</option>`)}
      </select>
    </div>
  `;
  const field = (at, label, name) => html`
    <div class="field">
      <label for=${ids[at]}>${label}</label>
      <input id=${ids[at]} value=${rule[name]} onInput=${change(name)} autocomplete="off" />
    </div>
  `;
  return html`
    <form class="fields boxed" aria-label="New rule" onSubmit=${submit}>
      <div class="field-row">
        ${select(0, "For", "method", METHODS)}
        ${field(1, "Tool (any if empty)", "tool")}
        ${field(2, "Message contains", "message")}
      </div>
      ${select(3, "Answer", "answer", ANSWERS)}
      ${rule.answer === "text" && field(4, "Text", "text")}
      ${
        rule.answer === "accept" &&
        html`
          <${ArgumentsEditor}
            key=${count}
            schema=${{}}
            value=${content}
            onChange=${(made, bad) => {
              setContent(made);
              setWrong(bad);
            }}
          />
        `
      }
      <div class="buttons">
        <button type="submit" disabled=${wrong && rule.answer === "accept"}>Add rule</button>
      </div>
    </form>
  `;
}

/** The folders that the server is given as roots. */
function Roots({ connection }) {
  const roots = connection.features.roots;
  const [root, setRoot] = useState("");
  const id = useId();
  const set = (next) => attempt("setRoots", { connection: connection.name, roots: next });
  const submit = async (event) => {
    event.preventDefault();
    if (root.trim() && (await set([...roots, root.trim()])) !== undefined) setRoot("");
  };
  return html`
    <section aria-label="Roots" class="rules">
      <h2>Roots</h2>
      <p class="quiet">
        The server is given these folders when it asks for roots. They do not confine it.
      </p>
      <ul class="rule-list">
        ${roots.map(
          (one) => html`
            <li key=${one}>
              <code class="grow wrap"><${Say} text=${one} /></code>
              <${IconButton}
                name="close"
                label=${`Remove ${visible(one)}`}
                onClick=${() => set(roots.filter((each) => each !== one))}
              />
            </li>
          `,
        )}
      </ul>
      <form class="field-row" onSubmit=${submit}>
        <div class="field">
          <label for=${id}>Folder or file:// URI</label>
          <input
            id=${id}
            value=${root}
            onInput=${(event) => setRoot(event.currentTarget.value)}
            autocomplete="off"
          />
        </div>
        <div class="buttons end"><button type="submit">Add root</button></div>
      </form>
    </section>
  `;
}

/** @param {{connection: any}} props */
function Questions({ connection }) {
  const [models, setModels] = useState(/** @type {string[] | null} */ (null));
  useEffect(() => {
    act("listModels", { connection: connection.name }).then(setModels, () => setModels([]));
  }, []);
  const open = connection.questions;
  return html`
    <div class="feature">
      <section aria-label="Waiting questions" class="rules">
        <h2>Waiting</h2>
        ${open.map(
          (one) => html`<${QuestionCard} key=${one.id} connection=${connection} question=${one} />`,
        )}
        ${
          !open.length &&
          html`
            <p class="quiet">
              ${isOpen(connection) ? "The server asks nothing." : "The connection is closed."}
            </p>
          `
        }
        ${
          models &&
          html`
            <p class="quiet small-line">
              ${
                models.length
                  ? `The model that can answer: ${models.join(", ")}.`
                  : "No model is configured."
              }
            </p>
          `
        }
      </section>
      <${Rules} connection=${connection} />
      <${Roots} connection=${connection} />
    </div>
  `;
}

/** @type {import("./index.js").FeaturePanel} */
export const panel = {
  id: "questions",
  title: "Questions",
  available: (connection) => connection.status !== "recorded",
  Panel: Questions,
};
