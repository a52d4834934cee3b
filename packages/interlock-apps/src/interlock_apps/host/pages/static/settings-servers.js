// @ts-check
// The section of the settings about servers.
import { Say, html } from "../kit/kit.js";
import { panel, servers } from "./store.js";

export function ServersSection() {
  return html`
    <h2>Servers</h2>
    <ul class="offers" aria-label="Configured servers">
      ${servers.value.map(
        (one) => html`
          <li key=${one.id} class="offer-head">
            <span class="grow">
              <strong>
                <${Say} text=${one.id} />
              </strong>${" "}
              <code class="quiet wrap">
                <${Say} text=${one.command} />
              </code>
            </span>
            <button
              type="button"
              class="small"
              onClick=${() => {
                panel.value = { name: "server", id: one.id };
              }}
            >
              Show
            </button>
          </li>
        `,
      )}
      ${!servers.value.length && html`<li class="quiet">No server is configured.</li>`}
    </ul>
  `;
}
