// @ts-check
// Resources and templates: the list, the contents, templates to fill in, and subscriptions.
import { Copy, Icon, Say, html, several, size, useState, wordsOf } from "../../kit/kit.js";
import { Suggested, suggestions } from "../../kit/complete.js";
import { Contents, Json } from "../../kit/content.js";
import { act } from "../../kit/net.js";
import { variables } from "../../kit/templates.js";
import { attempt, show, spoken, view } from "../store.js";
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

const titleOf = (one) => one.title || one.name || one.uri;

/** @param {{connection: any}} props */
function Resources({ connection }) {
  const loaded = useAct("listResources", { connection: connection.name }, keyOf(connection));
  if (!isOpen(connection)) return html`<${NotOpen} connection=${connection} />`;
  const { resources = [], templates = [] } = loaded.value ?? {};
  const chosen = view.value.resource ?? "";
  const template = templates.find((one) => one.uriTemplate === chosen);
  const resource = resources.find((one) => one.uri === chosen);
  const items = [
    ...resources.map((one) => ({
      key: one.uri,
      title: titleOf(one),
      about: one.uri,
      tags: one.mimeType && html`<span class="tag"><${Say} text=${one.mimeType} /></span>`,
    })),
    ...templates.map((one) => ({
      key: one.uriTemplate,
      title: one.title || one.name,
      about: one.uriTemplate,
      tags: html`<span class="tag">template</span>`,
    })),
  ];
  const choose = (key) => show({ resource: key });
  return html`
    <${ListBeside}
      label="Resources"
      items=${items}
      chosen=${chosen}
      onChoose=${choose}
      loaded=${loaded}
      empty="The server lists no resources."
    >
      ${
        template
          ? html`
            <${Template}
              key=${chosen}
              connection=${connection}
              template=${template}
              onFilled=${choose}
            />
          `
          : chosen
            ? html`
              <${Resource}
                key=${chosen}
                connection=${connection}
                uri=${chosen}
                listed=${resource}
              />
            `
            : null
      }
    </${ListBeside}>
  `;
}

/** One resource: its contents, read at once, and again on demand. */
function Resource({ connection, uri, listed }) {
  const read = useAct("readResource", { connection: connection.name, uri }, keyOf(connection));
  const subscribed = connection.features.subscriptions.find(
    (one) => !one.ended && one.wanted.uris.includes(uri),
  );
  const toggle = async () => {
    const name = connection.name;
    if (subscribed) await attempt("unsubscribe", { connection: name, subscription: subscribed.id });
    else if (await attempt("subscribe", { connection: name, uris: [uri] }))
      spoken.value = "Subscribed.";
  };
  const may = connection.capabilities?.resources?.subscribe;
  const result = read.value;
  return html`
    <article class="look">
      <h2><${Say} text=${listed ? titleOf(listed) : uri} /></h2>
      <p class="small-line"><code class="wrap"><${Say} text=${uri} /></code></p>
      ${listed?.description && html`<p class="wrap"><${Say} text=${listed.description} /></p>`}
      <div class="buttons">
        <button type="button" class="main" disabled=${read.loading} onClick=${read.reload}>
          ${result ? "Read again" : "Read"}
        </button>
        ${
          (may || subscribed) &&
          html`
            <button type="button" aria-pressed=${subscribed ? "true" : "false"} onClick=${toggle}>
              <${Icon} name="bell" />
              ${subscribed ? "Unsubscribe" : "Subscribe"}
            </button>
          `
        }
      </div>
      ${
        subscribed &&
        html`
          <p class="quiet small-line" aria-live="polite">
            ${
              subscribed.granted === null
                ? "Subscribing …"
                : `${several(subscribed.count, "update")} since you subscribed.`
            }
          </p>
        `
      }
      <${Wrong} words=${read.words} />
      ${result && html`<${Command} text=${result.command} />`}
      ${result?.contents.map(
        (one, at) => html`
          <div key=${at} class="boxed">
            <p class="small-line">
              <code class="wrap"><${Say} text=${one.uri} /></code>${" "}
              ${one.mimeType && html`<span class="tag"><${Say} text=${one.mimeType} /></span>`}
              ${" "}
              <span class="quiet">${size((one.text ?? one.blob ?? "").length)}</span>${" "}
              ${one.text !== undefined && html`<${Copy} text=${one.text} />`}
            </p>
            <${Contents} contents=${one} />
          </div>
        `,
      )}
      ${listed && html`<${Closed} title="Metadata"><${Json} value=${listed} /></${Closed}>`}
    </article>
  `;
}

/** A template: filled in, it is an ordinary resource. */
function Template({ connection, template, onFilled }) {
  const names = variables(template.uriTemplate);
  const [values, setValues] = useState(
    /** @type {Record<string, string>} */ (Object.fromEntries(names.map((name) => [name, ""]))),
  );
  const [words, setWords] = useState("");
  const expand = async (event) => {
    event.preventDefault();
    try {
      const { uri } = await act("expandTemplate", {
        connection: connection.name,
        template: template.uriTemplate,
        values: Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "")),
      });
      onFilled(uri);
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
  };
  const ref = { type: "ref/resource", uri: template.uriTemplate };
  return html`
    <form class="look fields" noValidate onSubmit=${expand}>
      <h2><${Say} text=${template.title || template.name} /></h2>
      <p class="small-line"><code class="wrap"><${Say} text=${template.uriTemplate} /></code></p>
      ${template.description && html`<p class="wrap"><${Say} text=${template.description} /></p>`}
      ${names.map(
        (name) => html`
          <${Suggested}
            key=${name}
            field=${{ name, title: wordsOf(name), kind: "text" }}
            value=${values[name]}
            onChange=${(value) => setValues((before) => ({ ...before, [name]: value }))}
            ask=${
              offers(connection, "completions")
                ? suggestions(connection.name, ref, name, values)
                : undefined
            }
          />
        `,
      )}
      <${Wrong} words=${words} />
      <div class="buttons"><button type="submit" class="main">Read</button></div>
      <${Closed} title="Metadata"><${Json} value=${template} /></${Closed}>
    </form>
  `;
}

/** @type {import("./index.js").FeaturePanel} */
export const panel = {
  id: "resources",
  title: "Resources",
  available: (connection) => offers(connection, "resources"),
  Panel: Resources,
};
