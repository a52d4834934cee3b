// @ts-check
// The connections at the side: their state, their revision, and buttons that connect and
// disconnect.
import { Dialog, Icon, Say, cls, html, several, useState } from "../kit/kit.js";
import { CopiedCode } from "../kit/code.js";
import { attempt, connections, revisions, select, selected } from "./store.js";

const STATES = {
  open: ["is-up", "connected"],
  opening: ["is-starting", "connecting"],
  failed: ["is-down", "failed"],
  closed: ["is-off", "not connected"],
  recorded: ["", "recorded"],
};

/** What follows the name of a connection: its state and revision. @param {any} one */
function about(one) {
  const [, words] = STATES[one.status];
  return one.revision ? `${words} · ${one.revision}` : words;
}

/** A connection, and its controls if it is selected. */
function Row({ one }) {
  const now = selected.value === one.name;
  const [kind, words] = STATES[one.status];
  return html`
    <li>
      <button
        type="button"
        class=${cls("side-row", now && "is-current")}
        aria-current=${now ? "true" : undefined}
        onClick=${() => select(now ? "" : one.name)}
      >
        <span class=${cls("dot", kind)} role="img" aria-label=${words}></span>
        <span class="grow">
          <span class="side-title"><${Say} text=${one.name} /></span>
          <span class="side-about">
            ${about(one)}
            ${one.questions.length > 0 && html` · ${several(one.questions.length, "question")}`}
          </span>
        </span>
      </button>
      ${
        now &&
        html`
          <div class="side-controls">
            ${one.status !== "recorded" && html`<${Controls} one=${one} />`}
            <${Test} one=${one} />
          </div>
        `
      }
    </li>
  `;
}

/** The revision to ask for, and buttons. */
function Controls({ one }) {
  const [asked, setAsked] = useState(one.asked);
  const opening = one.status === "opening";
  const connect = (revision) => attempt("connect", { connection: one.name, revision });
  const choose = (event) => {
    setAsked(event.target.value);
    connect(event.target.value);
  };
  return html`
    <div class="side-controls-live">
      <p class="side-about"><code><${Say} text=${one.target} /></code></p>
      <label class="side-choice">
        Revision
        <select class="small" value=${asked} onChange=${choose}>
          ${revisions.value.map((each) => html`<option key=${each}>${each}</option>`)}
        </select>
      </label>
      <div class="buttons">
        <button type="button" class="small" disabled=${opening} onClick=${() => connect(asked)}>
          ${one.status === "open" ? "Reconnect" : "Connect"}
        </button>
        <button
          type="button"
          class="small"
          title="Another connection to the same server, for another revision"
          onClick=${() => attempt("duplicate", { connection: one.name })}
        >
          Connect again
        </button>
        ${
          one.status === "open" &&
          html`
            <button
              type="button"
              class="small"
              onClick=${() => attempt("disconnect", { connection: one.name })}
            >
              Disconnect
            </button>
          `
        }
      </div>
    </div>
  `;
}

/** All that was sent over a connection, as a test for `interlock test`. */
function Test({ one }) {
  const [text, setText] = useState("");
  const read = async () => {
    const found = await attempt("connectionTest", { connection: one.name });
    if (found) setText(found);
  };
  return html`
    <div class="buttons">
      <button type="button" class="small" onClick=${read}>As a test</button>
    </div>
    ${
      text &&
      html`
        <${Dialog} title=${`A test of ${one.name}`} onClose=${() => setText("")}>
          <${CopiedCode} text=${text} label="the test" />
        <//>
      `
    }
  `;
}

/** The list of connections. */
export function Connections() {
  const all = connections.value;
  return html`
    <section>
      <div class="side-head"><h2>Connections</h2></div>
      ${
        all.length > 1 &&
        html`
          <button
            type="button"
            class=${cls("side-row", !selected.value && "is-current")}
            aria-current=${selected.value ? undefined : "true"}
            onClick=${() => select("")}
          >
            <${Icon} name="list" />
            <span class="side-title">All connections</span>
          </button>
        `
      }
      <ul>
        ${all.map((one) => html`<${Row} key=${one.name} one=${one} />`)}
      </ul>
    </section>
  `;
}
