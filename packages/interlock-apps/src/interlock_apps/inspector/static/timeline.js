// @ts-check
// To be written.
import { html } from "../kit/kit.js";

export function TimelinePanel() {
  return html`<p class="quiet center">timeline</p>`;
}
