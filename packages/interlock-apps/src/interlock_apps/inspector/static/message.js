// @ts-check
// To be written.
import { html } from "../kit/kit.js";

export function MessagePanel() {
  return html`<p class="quiet center">message</p>`;
}
