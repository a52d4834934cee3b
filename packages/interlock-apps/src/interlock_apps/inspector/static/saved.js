// @ts-check
// To be written.
import { html } from "../kit/kit.js";

export function SavedPanel() {
  return html`<p class="quiet center">saved</p>`;
}
