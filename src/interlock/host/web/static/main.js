// @ts-check
// Where the page begins.
import { html, render } from "./kit.js";
import { App } from "./app.js";
import { begin } from "./store.js";

const place = /** @type {HTMLElement} */ (document.getElementById("app"));
place.replaceChildren();
render(html`<${App} />`, place);
begin();
