// @ts-check
// The palette of prompts: search, arguments, preview, use.
import {
  Dialog,
  From,
  Icon,
  Say,
  cls,
  html,
  useLayoutEffect,
  useRef,
  useState,
  visible,
  wordsOf,
} from "../kit/kit.js";
import { Picker, Suggested, fits, suggestions } from "../kit/complete.js";
import { Content } from "../kit/content.js";
import { speak } from "./conversation.js";
import { act } from "../kit/net.js";
import { Chip, Resources } from "./resources.js";
import { attached, overlay, servers, toast } from "./store.js";
import { toFirstWrong } from "../kit/fields.js";

const list = (content) => (Array.isArray(content) ? content : [content]);

/** @param {{server?: string, prompt?: string, onClose: () => void}} props */
export function Prompts({ server = "", prompt: name = "", onClose }) {
  const [chosen, setChosen] = useState({ server, name });
  const found = servers.value
    .find((one) => one.id === chosen.server)
    ?.prompts?.find((one) => one.name === chosen.name);
  return found
    ? html`
      <${Fill}
        key=${chosen.server + chosen.name}
        server=${chosen.server}
        prompt=${found}
        onClose=${onClose}
        onBack=${() => setChosen({ server: "", name: "" })}
      />
    `
    : html`
      <${Choose} onClose=${onClose} onChoose=${setChosen} />
    `;
}

/** All prompts of all servers. */
function Choose({ onClose, onChoose }) {
  const [words, setWords] = useState("");
  const all = servers.value.flatMap((server) =>
    (server.prompts ?? []).map((prompt) => ({ server: server.id, prompt })),
  );
  const items = all
    .filter(({ server, prompt }) =>
      fits([prompt.title, prompt.name, prompt.description, server].join(" "), words),
    )
    .map(({ server, prompt }) => ({
      key: `${server} ${prompt.name}`,
      take: () =>
        prompt.blocked
          ? toast("warning", prompt.blocked, server)
          : onChoose({ server, name: prompt.name }),
      render: () => html`
        <${Icon} name="prompt" />
        <span class="grow">
          <strong>
            <${Say} text=${prompt.title || prompt.name} />
          </strong>${" "}
          <code class="quiet">
            /<${Say} text=${prompt.name} />
          </code>
          ${prompt.description && html`<${Say} class="quiet block" text=${prompt.description} />`}
        </span>
        ${
          prompt.blocked &&
          html`
            <span class="tag care">
              <${Icon} name="lock" />
              blocked
            </span>
          `
        }
        <${From} server=${server} />
      `,
    }));
  return html`
    <${Dialog} title="Prompts" class="palette" onClose=${onClose}>
      <${Picker}
        label="Search prompts"
        placeholder="Search prompts"
        items=${items}
        words=${words}
        onWords=${setWords}
        empty=${all.length ? "No prompt matches." : "No running server offers prompts."}
      />
    </${Dialog}>
  `;
}

/** The arguments of a prompt, and a preview of its messages. */
function Fill({ server, prompt, onClose, onBack }) {
  const fields = (prompt.arguments ?? []).map((one) => ({
    name: one.name,
    title: one.title || wordsOf(one.name),
    description: one.description ?? "",
    required: one.required ?? false,
    kind: "text",
  }));
  const [values, setValues] = useState(
    /** @type {Record<string, string>} */ (
      Object.fromEntries(fields.map((field) => [field.name, ""]))
    ),
  );
  const [wrong, setWrong] = useState(/** @type {Record<string, string>} */ ({}));
  const [preview, setPreview] = useState(/** @type {any} */ (null));
  const [words, setWords] = useState("");
  const [busy, setBusy] = useState(false);
  const [choosing, setChoosing] = useState(false);
  const form = useRef(/** @type {any} */ (null));
  const button = useRef(/** @type {any} */ (null));
  const beside = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    if (!fields.length) button.current.focus();
  }, []);
  const completes = servers.value.find((one) => one.id === server)?.completions;
  const given = () =>
    Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
  const whole = () => {
    const missing = Object.fromEntries(
      fields
        .filter((field) => field.required && !values[field.name].trim())
        .map((field) => [field.name, "This field is required."]),
    );
    setWrong(missing);
    toFirstWrong(form.current, missing);
    return !Object.keys(missing).length;
  };
  const look = async () => {
    if (!whole()) return;
    setBusy(true);
    setWords("");
    try {
      setPreview(
        (await act("getPrompt", { server, name: prompt.name, arguments: given() })).messages,
      );
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
    setBusy(false);
  };
  const use = async (event) => {
    event?.preventDefault();
    if (!whole()) return;
    const attach = attached.value;
    attached.value = [];
    onClose();
    const done = await speak("prompt", { server, name: prompt.name, arguments: given(), attach });
    if (!done && !attached.value.length) attached.value = attach;
  };
  const change = (name, value) => {
    setValues((before) => ({ ...before, [name]: value }));
    setPreview(null);
    setWrong((before) => ({ ...before, [name]: "" }));
  };
  const remove = (one) => {
    attached.value = attached.value.filter((each) => each !== one);
    beside.current.focus();
  };
  const completion = (name) =>
    completes
      ? suggestions(server, { type: "ref/prompt", name: prompt.name }, name, values)
      : undefined;
  const foot = html`
    <button ref=${button} autofocus=${!fields.length} type="button" class="main" onClick=${use}>
      Use prompt
    </button>
    <button type="button" onClick=${look} disabled=${busy}>
      ${preview ? "Preview again" : "Preview"}
    </button>
    <button type="button" class="quiet" onClick=${onBack}>
      All prompts
    </button>
  `;
  return html`
    <${Dialog}
      title=${html`<${Say} text=${prompt.title || prompt.name} />`}
      onClose=${onClose}
      foot=${foot}
    >
      <p class="small-line">
        <${From} server=${server} />${" "}
        <code class="quiet">
          /<${Say} text=${prompt.name} />
        </code>
      </p>
      ${
        prompt.description &&
        html`
          <p class="wrap">
            <${Say} text=${prompt.description} />
          </p>
        `
      }
      <form ref=${form} class="fields" noValidate onSubmit=${use}>
        ${fields.map(
          (field, at) => html`
            <${Suggested}
              key=${field.name}
              field=${field}
              value=${values[field.name]}
              words=${wrong[field.name]}
              focus=${at === 0}
              onChange=${(value) => change(field.name, value)}
              ask=${completion(field.name)}
            />
          `,
        )}
        <button type="submit" class="hidden" tabindex="-1" aria-hidden="true">
          Use prompt
        </button>
      </form>
      <div class="goes-along" role="group" aria-label="Attached to the prompt">
        ${
          attached.value.length > 0 &&
          html`
            <div class="chips">
              ${attached.value.map(
                (one) => html`
                  <${Chip} key=${one.server + one.uri} one=${one} onRemove=${() => remove(one)} />
                `,
              )}
            </div>
          `
        }
        <button ref=${beside} type="button" class="small" onClick=${() => setChoosing(true)}>
          <${Icon} name="at" />
          ${attached.value.length ? "Attach more" : "Attach resources"}
        </button>
      </div>
      ${
        words &&
        html`
          <p class="wrong" role="alert">
            ${visible(words)}
          </p>
        `
      }
      <div aria-live="polite">
        ${preview && html`<${Preview} messages=${preview} server=${server} />`}
      </div>
      ${choosing && html`<${Resources} back="the prompt" onClose=${() => setChoosing(false)} />`}
    </${Dialog}>
  `;
}

/** The messages of the prompt with these values; they scroll into view when they arrive. */
function Preview({ messages, server }) {
  const box = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => box.current.scrollIntoView({ block: "start" }), [messages]);
  return html`
    <section ref=${box} class="preview" aria-label="Preview">
      <h3 class="sub">What it says</h3>
      ${messages.map(
        (message, at) => html`
          <div key=${at} class=${cls("sample-message", message.role)}>
            <span class="role">${message.role === "user" ? "You" : "Model"}</span>
            ${list(message.content).map(
              (block, place) => html`
                <${Content} key=${place} block=${block} server=${server} />
              `,
            )}
          </div>
        `,
      )}
    </section>
  `;
}

/** Open the palette. */
export const choosePrompt = () => {
  overlay.value = { name: "prompts" };
};
