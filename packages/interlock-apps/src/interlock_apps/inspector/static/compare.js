// @ts-check
// To be written.
import { html } from "../kit/kit.js";

export function ComparePanel() {
  return html`<p class="quiet center">compare</p>`;
}
