// @ts-check
// Saved calls: run one again, copy it as a command, or delete it.
import { Fold, Say, html, useState } from "../kit/kit.js";
import { Code, CopiedCode } from "../kit/code.js";
import { attempt, connections, saved, show } from "./store.js";

/** One saved call. */
function Call({ call }) {
  const ready = connections.value.filter((one) => one.status === "open");
  const home = ready.find((one) => one.name === call.connection) ?? ready[0];
  const [to, setTo] = useState(home?.name ?? "");
  const [shown, setShown] = useState(/** @type {{label: string, text: string} | null} */ (null));
  const target = ready.some((one) => one.name === to) ? to : (home?.name ?? "");
  const run = async () => {
    const sent = await attempt("runCall", { name: call.name, connection: target });
    if (sent) show({ tab: "timeline", row: String(sent.row), in: sent.recording });
  };
  const exported = async (/** @type {string} */ name, /** @type {string} */ label) => {
    const found = await attempt(name, { name: call.name, connection: target });
    if (found !== undefined) setShown({ label, text: typeof found === "string" ? found : "" });
  };
  return html`
    <li class="saved">
      <div class="saved-head">
        <h2><${Say} text=${call.name} /></h2>
        <span class="quiet"><${Say} text=${`${call.method} · ${call.connection}`} /></span>
      </div>
      <${Fold} title="Params">
        <${Code} text=${call.params} label="Params" />
      <//>
      <div class="buttons">
        ${
          ready.length > 1 &&
          html`
            <label class="saved-to">
              <span class="hidden-text">Connection for ${call.name}</span>
              <select class="small" value=${target} onChange=${(e) => setTo(e.target.value)}>
                ${ready.map((one) => html`<option key=${one.name}>${one.name}</option>`)}
              </select>
            </label>
          `
        }
        <button type="button" class="small main" disabled=${!target} onClick=${run}>
          Run<span class="hidden-text"> ${call.name}</span>
        </button>
        <button
          type="button"
          class="small"
          aria-label=${`As a command: ${call.name}`}
          onClick=${() => exported("callCommand", "Command")}
        >
          As a command
        </button>
        <button
          type="button"
          class="small"
          disabled=${!target}
          aria-label=${`Run as a test: ${call.name}`}
          onClick=${() => exported("callTest", "Test")}
        >
          Run as a test
        </button>
        <span class="grow"></span>
        <button
          type="button"
          class="small deny"
          onClick=${() => attempt("deleteCall", { name: call.name })}
        >
          Delete<span class="hidden-text"> ${call.name}</span>
        </button>
      </div>
      ${
        shown &&
        (shown.text
          ? html`<${CopiedCode} text=${shown.text} label=${shown.label} />`
          : html`<p class="quiet">No command sends this request.</p>`)
      }
    </li>
  `;
}

/** The tab. */
export function SavedPanel() {
  const all = saved.value;
  if (!all.length)
    return html`
      <p class="quiet center">
        There are no saved calls. Open a request in the timeline, and save it below its editor.
      </p>
    `;
  return html`
    <ul class="saved-calls">
      ${all.map((call) => html`<${Call} key=${call.name} call=${call} />`)}
    </ul>
  `;
}
