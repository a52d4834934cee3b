// @ts-check
// The section of the settings about servers: the configured ones, and the ways to add one.
import { Icon, Say, html, useEffect, visible } from "../kit/kit.js";
import { BROKEN, Dot, STATES, stateOf } from "./server-state.js";
import { OtherClients } from "./settings-clients.js";
import { RegistrySearch } from "./settings-registry.js";
import { ServerSettings } from "./settings-server.js";
import { ServerForm } from "./settings-server-form.js";
import { servers, settingsPlace, setup } from "./store.js";

/** @type {[string, any, string][]} */
export const WAYS_TO_ADD = [
  ["clients", "copy", "Import from other clients"],
  ["registry", "search", "Search the registry"],
  ["form", "plus", "Add by command or address"],
];

const TITLES = {
  clients: "Import from other clients",
  registry: "MCP registry",
  form: "Add a server",
};

/** Show a part of the section. @param {string} name @param {any} [more] */
const go = (name, more = {}) => {
  settingsPlace.value = { name, ...more };
};

export function ServersSection() {
  const place = settingsPlace.value;
  const list = () => go("list");
  // The next one to open the section sees the list.
  useEffect(() => list, []);
  const done = (server) => go(server ? "server" : "list", { id: server });
  const shared = { onDone: done, onBack: list };
  const title = TITLES[/** @type {keyof typeof TITLES} */ (place.name)];
  return html`
    <h2>${title ?? "Servers"}</h2>
    ${place.name === "list" && html`<${ServerList} />`}
    ${place.name === "clients" && html`<${OtherClients} ...${shared} />`}
    ${place.name === "registry" && html`<${RegistrySearch} ...${shared} />`}
    ${place.name === "form" && html`<${ServerForm} ...${shared} />`}
    ${
      place.name === "server" &&
      html`
        <${ServerSettings}
          key=${`${place.id} ${!!place.examine}`}
          id=${place.id}
          examine=${!!place.examine}
          ...${shared}
        />
      `
    }
  `;
}

/** The configured servers. */
const ServerList = () => html`
  <div class="buttons">
    ${WAYS_TO_ADD.map(
      ([name, icon, words]) => html`
        <button key=${name} type="button" onClick=${() => go(name)}>
          <${Icon} name=${icon} />
          ${words}
        </button>
      `,
    )}
  </div>
  <ul class="offers" aria-label="Configured servers">
    ${servers.value.map((one) => html`<${ServerRow} key=${one.id} one=${one} />`)}
    ${!servers.value.length && html`<li class="quiet">No server is configured.</li>`}
  </ul>
  <p class="quiet small-line">
    Servers are kept in${" "}
    <code class="wrap">
      <${Say} text=${setup.value?.file ?? ""} />
    </code>
  </p>
`;

/** @param {{one: any}} props */
function ServerRow({ one }) {
  const state = stateOf(one);
  const broken = BROKEN.includes(one.state);
  const label = one.state === "login" ? "Log in" : "Find out what is wrong";
  return html`
    <li>
      <div class="offer-head">
        <span class="grow">
          <${Dot} state=${state} />${" "}
          <strong>
            <${Say} text=${one.id} />
          </strong>${" "}
          <span class="quiet">${STATES[state]}</span>
        </span>
        ${
          broken &&
          html`
            <button
              type="button"
              class="small main"
              aria-label=${`${label}: ${visible(one.id)}`}
              onClick=${() => go("server", { id: one.id, examine: one.state !== "login" })}
            >
              ${label}
            </button>
          `
        }
        <button
          type="button"
          class="small"
          aria-label=${`Settings of ${visible(one.id)}`}
          onClick=${() => go("server", { id: one.id })}
        >
          Settings
        </button>
      </div>
      <code class="quiet block wrap">
        <${Say} text=${one.command} />
      </code>
    </li>
  `;
}
