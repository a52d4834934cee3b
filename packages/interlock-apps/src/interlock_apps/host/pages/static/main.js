// @ts-check
// Where the page begins.
import { html, render } from "../kit/kit.js";
import { App } from "./app.js";
import { begin } from "./store.js";

/**
 * How wide a scrollbar is here: the composer leaves as much room at its sides as the conversation
 * above it.
 */
function measureScrollbar() {
  const probe = document.createElement("div");
  probe.className = "scrollbar-probe";
  document.body.append(probe);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`:root { --gutter: ${probe.offsetWidth - probe.clientWidth}px; }`);
  document.adoptedStyleSheets.push(sheet);
  probe.remove();
}

measureScrollbar();
const place = /** @type {HTMLElement} */ (document.getElementById("app"));
place.replaceChildren();
render(html`<${App} />`, place);
begin();
