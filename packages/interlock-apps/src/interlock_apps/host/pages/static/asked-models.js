// @ts-check
// Sampling: a server's request before the model gets it, and the model's answer before the server
// gets it.
import {
  Clamped,
  Fold,
  Icon,
  Say,
  cls,
  html,
  json,
  several,
  useId,
  useState,
  visible,
} from "../kit/kit.js";
import { Ask } from "./ask.js";
import { Content } from "../kit/content.js";
import { Markdown } from "../kit/markdown.js";

const blocks = (content) => (Array.isArray(content) ? content : [content]);
const put = (content, at, block) =>
  Array.isArray(content) ? content.map((one, place) => (place === at ? block : one)) : block;

/** The approximate number of rows of a text. @param {string} text */
const rowsOf = (text) =>
  Math.min(
    14,
    text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / 72)), 1),
  );

/** The messages of a request or an answer, displayed or editable. */
function Messages({ messages, editing, server, onChange }) {
  return html`
    <ol class="messages">
      ${messages.map(
        (message, at) => html`
          <li key=${at} class=${cls("sample-message", message.role)}>
            <span class="role">
              ${
                message.role === "user"
                  ? "Asks"
                  : message.role === "assistant"
                    ? "Model"
                    : visible(message.role)
              }
            </span>
            ${blocks(message.content).map((block, place) =>
              editing && block.type === "text"
                ? html`
                  <textarea
                    key=${place}
                    rows=${rowsOf(block.text)}
                    aria-label=${`Text of message ${at + 1}`}
                    value=${block.text}
                    onInput=${(event) =>
                      onChange(
                        messages.map((one, index) =>
                          index === at
                            ? {
                                ...one,
                                content: put(one.content, place, {
                                  ...block,
                                  text: event.currentTarget.value,
                                }),
                              }
                            : one,
                        ),
                      )}
                  ></textarea>
                `
                : html`
                  <${Clamped} key=${place}>
                    <${Content} block=${block} server=${server} whole=${true} />
                  </${Clamped}>
                `,
            )}
          </li>
        `,
      )}
    </ol>
  `;
}

/** The server's model preferences, in words. @param {any} preferences */
function wishes(preferences) {
  if (!preferences) return "";
  const hints = (preferences.hints ?? []).map((hint) => hint.name).filter(Boolean);
  const weights = [
    ["costPriority", "a low price"],
    ["speedPriority", "speed"],
    ["intelligencePriority", "capability"],
  ]
    .filter(([name]) => preferences[name] > 0)
    .sort(([one], [other]) => preferences[other] - preferences[one])
    .map(([name, words]) => `${words} (${Math.round(preferences[name] * 100)} %)`);
  return [hints.length ? `a model like ${hints.join(", ")}` : "", ...weights]
    .filter(Boolean)
    .join(", ");
}

/** May this server ask a model? */
export function SampleQuestion({ question }) {
  const [editing, setEditing] = useState(false);
  const [request, setRequest] = useState(question.request);
  const [model, setModel] = useState(question.model);
  const [lasting, setLasting] = useState(false);
  const [most, setMost] = useState({ requests: "20", tokens: "100000" });
  const id = useId();
  const edited = request !== question.request;
  const names = Object.keys(question.models ?? {}).length
    ? Object.keys(question.models)
    : [question.model];
  const tokens = Number(request.maxTokens);
  const wrong = !Number.isInteger(tokens) || tokens < 1;
  const change = (changes) => setRequest({ ...request, ...changes });
  const wish = wishes(request.modelPreferences);
  const about = [
    request.includeContext &&
      request.includeContext !== "none" &&
      `context: ${request.includeContext}`,
    request.temperature !== undefined &&
      request.temperature !== null &&
      `temperature ${request.temperature}`,
    request.stopSequences?.length &&
      `stops at ${request.stopSequences.map((one) => json(one)).join(", ")}`,
  ]
    .filter(Boolean)
    .join(" · ");
  const counted = [most.requests, most.tokens].every((text) => /^[1-9]\d{0,8}$/.test(text));
  const bounds = lasting
    ? {
        remember: "session",
        requests: Number(most.requests),
        tokens: Number(most.tokens),
      }
    : {};
  const send = (way) =>
    way({ type: "decision", allow: true, model, ...bounds, ...(edited ? { request } : {}) });
  return html`
    <${Ask}
      question=${question}
      title=${html`
        <${Say} text=${question.server} /> wants to ask a model
      `}
      icon="talk"
      denial=${{ label: "Deny" }}
      answers=${[
        {
          key: "a",
          label: `Ask ${visible(model)}`,
          main: true,
          off: wrong || (lasting && !counted),
          act: send,
        },
        { key: "e", label: editing ? "Done editing" : "Edit", act: () => setEditing(!editing) },
      ]}
    >
      <p class="ask-line">
        The server wrote this text. You see the model's answer before the server gets
        it.
        ${
          question.left !== null &&
          question.left !== undefined &&
          html`
            ${" "}
            <span class="tag">${several(question.left, "request")} left for this server</span>
          `
        }
      </p>
      ${
        (request.systemPrompt || editing) &&
        html`
          <div class="field">
            <span class="label" id=${`${id}-system`}>
              System prompt
            </span>
            ${
              editing
                ? html`
                  <textarea
                    rows="3"
                    aria-labelledby=${`${id}-system`}
                    value=${request.systemPrompt ?? ""}
                    onInput=${(event) => {
                      change({ systemPrompt: event.currentTarget.value || null });
                    }}
                  ></textarea>
                `
                : html`
                  <div class="boxed">
                    <${Clamped}>
                      <p class="wrap">
                        <${Say} text=${request.systemPrompt} />
                      </p>
                    </${Clamped}>
                  </div>
                `
            }
          </div>
        `
      }
      <${Messages}
        messages=${request.messages}
        editing=${editing}
        server=${question.server}
        onChange=${(messages) => change({ messages })}
      />
      <div class="field-row">
        <div class="field">
          <label for=${`${id}-model`}>Model</label>
          <select
            id=${`${id}-model`}
            value=${model}
            onChange=${(event) => setModel(event.currentTarget.value)}
          >
            ${names.map(
              (name) => html`
                <option key=${name} value=${name}>
                  ${visible(name)}
                </option>
              `,
            )}
          </select>
        </div>
        <div class=${cls("field narrow", wrong && "is-wrong")}>
          <label for=${`${id}-tokens`}>Token limit</label>
          <input
            id=${`${id}-tokens`}
            inputmode="numeric"
            value=${String(request.maxTokens)}
            onInput=${(event) =>
              change({
                maxTokens: /^\d+$/.test(event.currentTarget.value)
                  ? Number(event.currentTarget.value)
                  : event.currentTarget.value,
              })}
            aria-invalid=${wrong ? "true" : undefined}
          />
        </div>
      </div>
      ${
        question.models?.[model] &&
        html`
          <p class="remark">
            <${Icon} name="bell" />
            <${Say} text=${question.models[model]} />
          </p>
        `
      }
      ${
        question.session &&
        !question.warnings?.length &&
        html`
          <${Lasting}
            lasting=${lasting}
            most=${most}
            wrong=${!counted}
            onTurn=${() => setLasting(!lasting)}
            onChange=${(changes) => setMost({ ...most, ...changes })}
          />
        `
      }
      ${wish && html`<p class="quiet">The server would like ${visible(wish)}.</p>`}
      ${about && html`<p class="quiet">${visible(about)}</p>`}
      ${
        request.tools?.length
          ? html`
            <${Fold} title=${`It gives the model ${several(request.tools.length, "tool")}`}>
              <ul class="plain-list">
                ${request.tools.map(
                  (tool) => html`
                    <li key=${tool.name}>
                      <code>
                        <${Say} text=${tool.name} />
                      </code>${" "}
                      <${Say} class="quiet" text=${tool.description ?? ""} />
                    </li>
                  `,
                )}
              </ul>
            </${Fold}>
          `
          : null
      }
      ${
        edited &&
        html`
          <p class="note">
            <${Icon} name="edit" /> The request is as you edited it.${" "}
            <button
              type="button"
              class="small quiet"
              onClick=${() => setRequest(question.request)}
            >
              Undo the edit
            </button>
          </p>
        `
      }
    </${Ask}>
  `;
}

/** Further requests of the server in this conversation, within bounds. */
function Lasting({ lasting, most, wrong, onTurn, onChange }) {
  const id = useId();
  const field = (name, label) => html`
    <div class=${cls("field narrow", wrong && "is-wrong")}>
      <label for=${`${id}-${name}`}>${label}</label>
      <input
        id=${`${id}-${name}`}
        inputmode="numeric"
        value=${most[name]}
        onInput=${(event) => onChange({ [name]: event.currentTarget.value })}
      />
    </div>
  `;
  return html`
    <label class="call-choice">
      <input type="checkbox" checked=${lasting} onChange=${onTurn} />
      <span>Allow further requests in this session</span>
    </label>
    ${
      lasting &&
      html`
        <div class="field-row">
          ${field("requests", "Requests")} ${field("tokens", "Tokens in all")}
        </div>
        <p class="quiet small-line">
          You see neither these requests nor their answers before. They are counted above the
          message box, where you can end this. A request with a warning is shown in any case.
        </p>
      `
    }
  `;
}

/** May the server have this answer? */
export function SampledQuestion({ question }) {
  const [editing, setEditing] = useState(false);
  const [result, setResult] = useState(question.result);
  const edited = result !== question.result;
  return html`
    <${Ask}
      question=${question}
      title=${html`
        Give the model's answer to <${Say} text=${question.server} />?
      `}
      icon="talk"
      denial=${{ label: "Withhold" }}
      answers=${[
        {
          key: "a",
          label: "Give it",
          main: true,
          act: (send) =>
            send({ type: "decision", allow: true, ...(edited ? { sampled: result } : {}) }),
        },
        { key: "e", label: editing ? "Done editing" : "Edit", act: () => setEditing(!editing) },
      ]}
    >
      <p class="ask-line">
        <strong>
          <${Say} text=${question.model} />
        </strong>${" "}
        said:
      </p>
      ${
        editing
          ? html`
            <${Messages}
              messages=${[result]}
              editing=${true}
              server=${question.server}
              onChange=${([message]) => setResult({ ...result, content: message.content })}
            />
          `
          : html`
            <div class="boxed">
              <${Clamped}>
                ${blocks(result.content).map((block, at) =>
                  block.type === "text"
                    ? html`
                      <${Markdown} key=${at} text=${block.text} />
                    `
                    : html`
                      <${Content} key=${at} block=${block} server=${question.server} />
                    `,
                )}
              </${Clamped}>
            </div>
          `
      }
      ${
        edited &&
        html`
          <p class="note">
            <${Icon} name="edit" /> The answer is as you edited it.${" "}
            <button type="button" class="small quiet" onClick=${() => setResult(question.result)}>
              Undo the edit
            </button>
          </p>
        `
      }
    </${Ask}>
  `;
}
