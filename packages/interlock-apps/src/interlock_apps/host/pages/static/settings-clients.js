// @ts-check
// Servers of other clients on this computer, which are taken over with one click.
import { Say, Warnings, html, useEffect, useState, visible } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { ServerPlan } from "./settings-plan.js";
import { Check } from "./settings-server-form.js";
import { setup } from "./store.js";

/**
 * The servers of other clients.
 * @param {{onDone: (server: string) => void, onBack: () => void}} props
 */
export function OtherClients({ onDone, onBack }) {
  const [clients, setClients] = useState(/** @type {any[] | null} */ (null));
  const [wrong, setWrong] = useState("");
  const [chosen, setChosen] = useState(/** @type {any} */ (null));
  useEffect(() => {
    act("otherClients").then(
      (answer) => setClients(answer.clients),
      (bad) => setWrong(bad.message),
    );
  }, []);
  if (chosen)
    return html`<${Import} ...${chosen} onDone=${onDone} onBack=${() => setChosen(null)} />`;
  return html`
    ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
    ${!clients && !wrong && html`<p class="quiet" role="status">Looking …</p>`}
    ${
      clients?.length === 0 &&
      html`<p class="quiet">No other client on this computer has servers.</p>`
    }
    ${clients?.map(
      (client) => html`
        <section key=${client.client} class="found" aria-label=${client.title}>
          <h3>${client.title}</h3>
          <p class="quiet small-line">
            <code class="wrap">
              <${Say} text=${client.file} />
            </code>
          </p>
          <ul class="offers">
            ${client.servers.map(
              (one) => html`
                <${Found}
                  key=${one.id}
                  one=${one}
                  onImport=${() => setChosen({ client, server: one })}
                />
              `,
            )}
            ${client.problems.map(
              (words) => html`
                <li key=${words} class="quiet">
                  <${Say} text=${words} />
                </li>
              `,
            )}
          </ul>
        </section>
      `,
    )}
    <div class="buttons">
      <button type="button" class="quiet" onClick=${onBack}>Back</button>
    </div>
  `;
}

/** One server of another client. @param {{one: any, onImport: () => void}} props */
const Found = ({ one, onImport }) => html`
  <li>
    <div class="offer-head">
      <strong class="grow">
        <${Say} text=${one.id} />
      </strong>
      ${
        one.known
          ? html`<span class="tag">added</span>`
          : html`
            <button
              type="button"
              class="small"
              aria-label=${`Import ${visible(one.id)}`}
              onClick=${onImport}
            >
              Import
            </button>
          `
      }
    </div>
    <code class="block wrap">
      <${Say} text=${one.command} />
    </code>
    <${Warnings} warnings=${one.warnings} />
  </li>
`;

/** The review of an import, with the choice of a sandbox. */
function Import({ client, server, onDone, onBack }) {
  const [sandbox, setSandbox] = useState(!setup.value?.sandbox);
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    act("planImport", {
      client: client.client,
      server: server.id,
      sandbox: server.runsCode ? sandbox : null,
    }).then(setPlan, (bad) => setWrong(bad.message));
  }, [sandbox]);
  if (wrong)
    return html`
      <p class="wrong" role="alert"><${Say} text=${wrong} /></p>
      <div class="buttons">
        <button type="button" class="quiet" onClick=${onBack}>Back</button>
      </div>
    `;
  if (!plan) return html`<p class="quiet" role="status">Reading …</p>`;
  return html`
    <${ServerPlan}
      key=${plan.plan}
      plan=${plan}
      title=${html`Import <${Say} text=${server.id} /> from ${client.title}?`}
      label="Import and start"
      onDone=${onDone}
      onBack=${onBack}
    >
      ${
        server.runsCode &&
        html`
          <${Check}
            label="Run it in a sandbox"
            hint=${
              setup.value?.sandbox
                ? `No sandbox works on this computer: ${setup.value.sandbox}`
                : `${client.title} starts it with all your rights.`
            }
            disabled=${!!setup.value?.sandbox}
            checked=${sandbox}
            onChange=${setSandbox}
          />
        `
      }
    </${ServerPlan}>
  `;
}
