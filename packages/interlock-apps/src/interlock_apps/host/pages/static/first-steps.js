// @ts-check
// The first steps in a host without servers or models, and the composer's note without a model.
import { Icon, html } from "../kit/kit.js";
import { WAYS_TO_ADD } from "./settings-servers.js";
import { models, servers, settings, settingsPlace, setup } from "./store.js";

/** Whether something essential is missing that can be added here. */
export const isNew = () => setup.value && (!servers.value.length || !models.value.length);

/** What is missing, with the ways to add it. */
export const FirstSteps = () => html`
  <div class="first-steps">
    ${!models.value.length && html`<${ModelStep} />`}
    ${!servers.value.length && html`<${ServerStep} />`}
  </div>
`;

const openModels = () => {
  settings.value = "models";
};

const ModelStep = () => html`
  <section class="first-step" aria-label="Choose a model">
    <h3><${Icon} name="talk" /> Choose a model</h3>
    <p class="quiet">
      A model of a provider, with your API key, or one that runs on this computer.
    </p>
    <div class="buttons">
      <button type="button" class="main" onClick=${openModels}>Choose a model</button>
    </div>
  </section>
`;

const ServerStep = () => html`
  <section class="first-step" aria-label="Add a server">
    <h3><${Icon} name="server" /> Add a server</h3>
    <p class="quiet">Servers give the model tools: files, repositories, calendars, databases.</p>
    <div class="buttons">
      ${WAYS_TO_ADD.map(
        ([name, icon, words]) => html`
          <button
            key=${name}
            type="button"
            onClick=${() => {
              settingsPlace.value = { name };
              settings.value = "servers";
            }}
          >
            <${Icon} name=${icon} />
            ${words}
          </button>
        `,
      )}
    </div>
  </section>
`;

/** Says in the composer that there is no model, and what to do. */
export const NoModel = () =>
  models.value.length
    ? null
    : html`
      <p class="no-model" role="note">
        <${Icon} name="warn" />
        <span class="grow">There is no model to answer you.</span>
        ${
          setup.value
            ? html`
              <button type="button" class="small" onClick=${openModels}>Choose a model</button>
            `
            : "Start the host with --model."
        }
      </p>
    `;
