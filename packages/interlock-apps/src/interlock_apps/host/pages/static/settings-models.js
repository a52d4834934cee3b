// @ts-check
// The section of the settings about models.
import { Say, html } from "../kit/kit.js";
import { models } from "./store.js";

export function ModelsSection() {
  return html`
    <h2>Models</h2>
    <ul class="offers" aria-label="Configured models">
      ${models.value.map(
        (one) => html`
          <li key=${one.name}>
            <strong>
              <${Say} text=${one.name} />
            </strong>
          </li>
        `,
      )}
      ${!models.value.length && html`<li class="quiet">No model is configured.</li>`}
    </ul>
  `;
}
