// @ts-check
// The entry point of the gateway's page.
import { html, render } from "../kit/kit.js";
import { App } from "./app.js";
import { begin } from "./store.js";

const place = /** @type {HTMLElement} */ (document.getElementById("app"));
place.replaceChildren();
render(html`<${App} />`, place);
begin();
