// @ts-check
// Answers by scope: which other calls an answer covers, with the rule that is made from it.
import { Choice, Copy, Say, html, useId, useState } from "../kit/kit.js";
import { policyFile } from "./store.js";

/**
 * The scopes of an answer to a call, and the rule of the chosen one.
 * @param {{scopes: {words: string, toml: string}[], onAllow: (scope: number, remember: string) =>
 *   void, onBack: () => void, off: boolean}} props
 */
export function Scopes({ scopes, onAllow, onBack, off }) {
  const [at, setAt] = useState(0);
  const [remember, setRemember] = useState("session");
  const name = useId();
  const file = policyFile.value;
  const where = file
    ? html`
      It is added to${" "}
      <code>
        <${Say} text=${file} />
      </code>
    `
    : "It is remembered until you forget it";
  return html`
    <fieldset class="scopes">
      <legend>Allow more calls like this</legend>
      ${scopes.map(
        (scope, place) => html`
          <label key=${place} class="scope">
            <input
              type="radio"
              name=${name}
              checked=${place === at}
              onChange=${() => setAt(place)}
            />
            <${Say} text=${scope.words} />
          </label>
        `,
      )}
      <div class="scope-rule">
        <div class="side-head">
          <span class="quiet">The rule</span>
          <${Copy} text=${scopes[at].toml} />
        </div>
        <pre class="wrap">${scopes[at].toml}</pre>
      </div>
      <${Choice}
        label="How long the rule holds"
        value=${remember}
        options=${[
          ["session", "This session"],
          ["always", "Always"],
        ]}
        onChange=${setRemember}
      />
      <p class="quiet small-line">
        ${remember === "always" ? where : "It ends with this conversation"}. Rules that deny, and
        rules that ask, stay stronger.
      </p>
      <div class="buttons">
        <button type="button" class="main" disabled=${off} onClick=${() => onAllow(at, remember)}>
          Allow these calls
        </button>
        <button type="button" class="quiet" onClick=${onBack}>
          Back
        </button>
      </div>
    </fieldset>
  `;
}
