// @ts-check
// Two connections side by side: what differs in their catalogues, and their timelines.
import { Icon, Say, html, several, useState } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { Code } from "../kit/code.js";
import { attempt, connections, show, view } from "./store.js";
import { Timeline } from "./timeline.js";

/** A choice of one connection. @param {{label: string, value: string, member: string}} props */
const Side = ({ label, value, member }) => html`
  <label>
    ${label}
    <select value=${value} onChange=${(event) => show({ [member]: event.target.value })}>
      ${connections.value.map(
        (one) => html`
          <option key=${one.name} value=${one.name}>
            ${one.revision ? `${one.name} · ${one.revision}` : one.name}
          </option>
        `,
      )}
    </select>
  </label>
`;

/** One feature that differs, with both versions. */
function Feature({ one, changes }) {
  return html`
    <details class="fold">
      <summary>
        <${Icon} name="chevron" />
        <span class="fold-title">
          <span class="quiet">${one.kind}</span> <strong><${Say} text=${one.name} /></strong>
          <ul class="changes">
            ${changes.map(
              (change) => html`
                <li key=${change.words} class=${change.breaks ? "bad" : ""}>
                  <${Icon} name=${change.breaks ? "warn" : "check"} />
                  <span>
                    ${change.breaks && "Breaks callers: "}<${Say} text=${change.words} />
                  </span>
                </li>
              `,
            )}
          </ul>
        </span>
      </summary>
      <div class="both">
        ${["one", "other"].map(
          (side) => html`
            <${Code}
              key=${side}
              text=${one[side] || "Not offered."}
              label=${side === "one" ? "First version" : "Second version"}
            />
          `,
        )}
      </div>
    </details>
  `;
}

/** What differs between the catalogues of two connections. */
function Differences({ found }) {
  const { changes, features, equal } = found;
  const breaks = changes.filter((one) => one.breaks).length;
  return html`
    <p role="status">
      ${
        changes.length
          ? `${several(changes.length, "difference")}, of which ${breaks} would break callers.`
          : "The catalogues are equal."
      }
      ${` ${several(equal, "feature")} ${equal === 1 ? "is" : "are"} the same.`}
    </p>
    ${features.map(
      (one) => html`
        <${Feature}
          key=${`${one.kind} ${one.name}`}
          one=${one}
          changes=${changes.filter(
            (change) => change.kind === one.kind && change.name === one.name,
          )}
        />
      `,
    )}
  `;
}

/** The tab. */
export function ComparePanel() {
  const all = connections.value;
  const one = all.find((each) => each.name === view.value.one) ?? all[0];
  const other =
    all.find((each) => each.name === view.value.other) ?? all.find((each) => each !== one);
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [refused, setRefused] = useState("");
  const [working, setWorking] = useState(false);
  if (!one || !other) return html`<${Alone} one=${one} />`;
  const compare = async () => {
    setWorking(true);
    try {
      setFound(await act("compare", { one: one.name, other: other.name }));
      setRefused("");
    } catch (bad) {
      setRefused(bad instanceof Error ? bad.message : String(bad));
    }
    setWorking(false);
  };
  const sides = [one, other];
  return html`
    <div class="compare">
      <div class="compare-bar">
        <${Side} label="First" value=${one.name} member="one" />
        <${Side} label="Second" value=${other.name} member="other" />
        <button
          type="button"
          class="main"
          disabled=${working || one === other}
          onClick=${compare}
        >
          Compare what they offer
        </button>
      </div>
      ${refused && html`<p class="bad compare-found" role="alert"><${Say} text=${refused} /></p>`}
      ${found && html`<div class="compare-found"><${Differences} found=${found} /></div>`}
      <div class="both compare-timelines">
        ${sides.map(
          (side, at) => html`
            <section key=${`${at} ${side.name}`}>
              <h2 class="sub"><${Say} text=${side.name} /></h2>
              <${Timeline}
                query=${{
                  recording: side.recording,
                  filter: view.value.filter ?? "",
                  connections: [side.name],
                }}
                name=${`Messages of ${side.name}`}
              />
            </section>
          `,
        )}
      </div>
    </div>
  `;
}

/** A single connection can be compared with itself under another revision. */
function Alone({ one }) {
  const again = async () => {
    const name = await attempt("duplicate", { connection: one.name });
    if (name) show({ one: one.name, other: name });
  };
  return html`
    <div class="center">
      <p class="quiet">
        Two connections are compared. Name a second server on the command line, or connect to this
        one again, under another revision.
      </p>
      ${
        one &&
        one.status !== "recorded" &&
        html`
          <button type="button" class="main" onClick=${again}>
            Connect to <${Say} text=${one.target} /> again
          </button>
        `
      }
    </div>
  `;
}
