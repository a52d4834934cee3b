// @ts-check
// The entry point of the page.
import { html, render } from "../kit/kit.js";
import { ResourceActionsContext } from "../kit/content.js";
import { App } from "./app.js";
import { beginNotifications } from "./notify.js";
import { begin, resourceActions } from "./store.js";

/**
 * The width of a scrollbar: the composer needs the same margins as the conversation above it.
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
render(
  html`
    <${ResourceActionsContext.Provider} value=${resourceActions}>
      <${App} />
    </${ResourceActionsContext.Provider}>
  `,
  place,
);
begin();
beginNotifications();
