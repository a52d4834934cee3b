// @ts-check
// Subscriptions: to the lists of the server and to single resources, and what changed since.
import { Say, html, several, useId, useState, when } from "../../kit/kit.js";
import { attempt } from "../store.js";
import { isOpen, offers } from "./common.js";

/** The kinds of changes, in words. */
const KINDS = {
  tools: "list of tools",
  prompts: "list of prompts",
  resources: "list of resources",
  resource: "content of",
};

/** What was asked for, in words. @param {any} wanted */
const wantedWords = (wanted) =>
  [
    ...["tools", "prompts", "resources"]
      .filter((kind) => wanted[kind])
      .map((kind) => `list of ${kind}`),
    ...wanted.uris,
  ].join(", ");

/** What the server grants, in words. @param {any} granted */
function grantedWords(granted) {
  const all = [
    granted.toolsListChanged && "tools",
    granted.promptsListChanged && "prompts",
    granted.resourcesListChanged && "resources",
    ...(granted.resourceSubscriptions ?? []),
  ].filter(Boolean);
  return all.length ? all.join(", ") : "nothing";
}

function Subscription({ connection, one }) {
  const end = () => attempt("unsubscribe", { connection: connection.name, subscription: one.id });
  return html`
    <li class="boxed" aria-label=${`Subscription ${one.id}`}>
      <div class="call-head">
        <span class="grow wrap"><strong><${Say} text=${wantedWords(one.wanted)} /></strong></span>
        <button type="button" class="small" onClick=${end}>
          ${one.ended ? "Remove" : "Unsubscribe"}
        </button>
      </div>
      <p class="quiet small-line wrap">
        ${
          one.ended
            ? html`<${Say} text=${one.ended} />`
            : one.granted
              ? html`Granted: <${Say} text=${grantedWords(one.granted)} />`
              : "Subscribing …"
        }
      </p>
      <p aria-live="polite" class="small-line">${several(one.count, "change")}</p>
      <ol class="changes">
        ${one.changes.map(
          (change, at) => html`
            <li key=${one.count - at}>
              <time class="quiet">${when(change.at)}</time>${" "}
              ${KINDS[change.kind]}${" "}
              ${change.uri && html`<code class="wrap"><${Say} text=${change.uri} /></code>`}
            </li>
          `,
        )}
      </ol>
    </li>
  `;
}

/** @param {{connection: any}} props */
function Subscriptions({ connection }) {
  const [wanted, setWanted] = useState(/** @type {Record<string, boolean>} */ ({}));
  const [uri, setUri] = useState("");
  const id = useId();
  const subscribe = (event) => {
    event.preventDefault();
    attempt("subscribe", { connection: connection.name, ...wanted });
  };
  const watch = async (event) => {
    event.preventDefault();
    if (await attempt("subscribe", { connection: connection.name, uris: [uri] })) setUri("");
  };
  const all = [...connection.features.subscriptions].reverse();
  return html`
    <div class="feature">
      ${
        isOpen(connection) &&
        html`
          <form class="boxed" aria-label="Subscribe to lists" onSubmit=${subscribe}>
            <div class="options">
              ${["tools", "prompts", "resources"]
                .filter((kind) => offers(connection, kind))
                .map(
                  (kind) => html`
                    <label key=${kind} class="option">
                      <input
                        type="checkbox"
                        checked=${!!wanted[kind]}
                        onChange=${(event) =>
                          setWanted({ ...wanted, [kind]: event.currentTarget.checked })}
                      />
                      List of ${kind}
                    </label>
                  `,
                )}
              <button type="submit" disabled=${!Object.values(wanted).some(Boolean)}>
                Subscribe
              </button>
            </div>
          </form>
          ${
            offers(connection, "resources") &&
            html`
              <form class="field-row" aria-label="Subscribe to a resource" onSubmit=${watch}>
                <div class="field">
                  <label for=${id}>URI of a resource</label>
                  <input
                    id=${id}
                    value=${uri}
                    onInput=${(event) => setUri(event.currentTarget.value)}
                    autocomplete="off"
                  />
                </div>
                <div class="buttons end">
                  <button type="submit" disabled=${!uri}>Subscribe to it</button>
                </div>
              </form>
            `
          }
        `
      }
      <ul class="subscriptions">
        ${all.map(
          (one) => html`<${Subscription} key=${one.id} connection=${connection} one=${one} />`,
        )}
      </ul>
      ${!all.length && html`<p class="quiet">There are no subscriptions.</p>`}
    </div>
  `;
}

/** @type {import("./index.js").FeaturePanel} */
export const panel = {
  id: "subscriptions",
  title: "Subscriptions",
  available: (connection) =>
    ["tools", "prompts", "resources"].some(
      (kind) =>
        connection.capabilities?.[kind]?.listChanged || connection.capabilities?.[kind]?.subscribe,
    ),
  Panel: Subscriptions,
};
