// @ts-check
// Prompts: the list, arguments with suggestions of the server, and the messages.
import { Say, cls, html, useRef, useState, wordsOf } from "../../kit/kit.js";
import { Suggested, suggestions } from "../../kit/complete.js";
import { Content, Json, ResourceActionsContext } from "../../kit/content.js";
import { toFirstWrong } from "../../kit/fields.js";
import { act } from "../../kit/net.js";
import { show, view } from "../store.js";
import {
  Closed,
  Command,
  ListBeside,
  NotOpen,
  Wrong,
  isOpen,
  keyOf,
  offers,
  useAct,
} from "./common.js";
import { reads } from "./tools.js";

const list = (content) => (Array.isArray(content) ? content : [content]);

/** @param {{connection: any}} props */
function Prompts({ connection }) {
  const loaded = useAct("listPrompts", { connection: connection.name }, keyOf(connection));
  if (!isOpen(connection)) return html`<${NotOpen} connection=${connection} />`;
  const prompts = loaded.value ?? [];
  const chosen = view.value.prompt ?? "";
  const prompt = prompts.find((one) => one.name === chosen);
  const items = prompts.map((one) => ({
    key: one.name,
    title: one.title || one.name,
    about: one.title && one.title !== one.name ? one.name : "",
  }));
  return html`
    <${ListBeside}
      label="Prompts"
      items=${items}
      chosen=${chosen}
      onChoose=${(name) => show({ prompt: name })}
      loaded=${loaded}
      empty="The server lists no prompts."
    >
      ${prompt && html`<${Prompt} key=${chosen} connection=${connection} prompt=${prompt} />`}
    </${ListBeside}>
  `;
}

/** One prompt. */
function Prompt({ connection, prompt }) {
  const fields = (prompt.arguments ?? []).map((one) => ({
    name: one.name,
    title: one.title || wordsOf(one.name),
    description: one.description ?? "",
    required: one.required ?? false,
    kind: /** @type {const} */ ("text"),
  }));
  const [values, setValues] = useState(
    /** @type {Record<string, string>} */ (
      Object.fromEntries(fields.map((field) => [field.name, ""]))
    ),
  );
  const [wrong, setWrong] = useState(/** @type {Record<string, string>} */ ({}));
  const [got, setGot] = useState(/** @type {any} */ (null));
  const [words, setWords] = useState("");
  const form = useRef(/** @type {any} */ (null));
  const get = async (event) => {
    event.preventDefault();
    const missing = Object.fromEntries(
      fields
        .filter((field) => field.required && !values[field.name])
        .map((field) => [field.name, "This field is required."]),
    );
    setWrong(missing);
    toFirstWrong(form.current, missing);
    if (Object.keys(missing).length) return;
    setWords("");
    try {
      setGot(
        await act("getPrompt", {
          connection: connection.name,
          name: prompt.name,
          arguments: Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "")),
        }),
      );
    } catch (bad) {
      setGot(null);
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
  };
  const ref = { type: "ref/prompt", name: prompt.name };
  return html`
    <article class="look">
      <h2><${Say} text=${prompt.title || prompt.name} /></h2>
      <p class="small-line"><code><${Say} text=${prompt.name} /></code></p>
      ${prompt.description && html`<p class="wrap"><${Say} text=${prompt.description} /></p>`}
      <form ref=${form} class="fields" noValidate onSubmit=${get}>
        ${fields.map(
          (field) => html`
            <${Suggested}
              key=${field.name}
              field=${field}
              value=${values[field.name]}
              words=${wrong[field.name]}
              onChange=${(value) => {
                setValues((before) => ({ ...before, [field.name]: value }));
                setWrong((before) => ({ ...before, [field.name]: "" }));
              }}
              ask=${
                offers(connection, "completions")
                  ? suggestions(connection.name, ref, field.name, values)
                  : undefined
              }
            />
          `,
        )}
        <div class="buttons"><button type="submit" class="main">Get prompt</button></div>
      </form>
      <${Wrong} words=${words} />
      ${
        got &&
        html`
          <${Command} text=${got.command} />
          <section class="messages" aria-label="Messages">
            ${got.description && html`<p class="quiet"><${Say} text=${got.description} /></p>`}
            <${ResourceActionsContext.Provider} value=${reads(connection)}>
              ${got.messages.map(
                (message, at) => html`
                  <div key=${at} class=${cls("sample-message", message.role)}>
                    <span class="role">${message.role === "user" ? "User" : "Assistant"}</span>
                    ${list(message.content).map(
                      (block, place) => html`
                        <${Content} key=${place} block=${block} server=${connection.name} />
                      `,
                    )}
                  </div>
                `,
              )}
            </${ResourceActionsContext.Provider}>
          </section>
        `
      }
      <${Closed} title="Metadata"><${Json} value=${prompt} /></${Closed}>
    </article>
  `;
}

/** @type {import("./index.js").FeaturePanel} */
export const panel = {
  id: "prompts",
  title: "Prompts",
  available: (connection) => offers(connection, "prompts"),
  Panel: Prompts,
};
