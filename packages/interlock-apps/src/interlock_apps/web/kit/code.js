// @ts-check
// Texts of messages: code that can be scrolled by keyboard, with a button that copies it.
import { Copy, html, visible } from "./kit.js";

/** A text. @param {{text: string, label: string}} props `label`: its name for screen readers */
export const Code = ({ text, label }) => html`
  <pre class="code-box" tabindex="0" role="region" aria-label=${label}>
    <code>${visible(text)}</code>
  </pre>
`;

/** A text that can be copied. @param {{text: string, label: string}} props */
export const CopiedCode = ({ text, label }) => html`
  <div class="message-text">
    <div class="message-copy"><${Copy} text=${text} /></div>
    <${Code} text=${text} label=${label} />
  </div>
`;
