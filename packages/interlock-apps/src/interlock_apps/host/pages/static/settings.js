// @ts-check
// The settings: a view in the place of the conversation, with a section for each subject.
import { Icon, IconButton, cls, html, useEffect, useRef } from "../kit/kit.js";
import { NotificationsSection } from "./notify.js";
import { ModelsSection } from "./settings-models.js";
import { PolicySection } from "./settings-policy.js";
import { ServersSection } from "./settings-servers.js";
import { settings, settingsPlace, setup } from "./store.js";

/**
 * A section of the settings. `title` is its name; `configures`: it changes the files of
 * `interlock host`, and is left out where the host was given its servers and models otherwise.
 * @typedef {{id: string, title: string, icon: any, view: any, configures?: boolean}} Section
 */

/** @type {Section[]} */
export const SECTIONS = [
  { id: "servers", title: "Servers", icon: "server", view: ServersSection, configures: true },
  { id: "models", title: "Models", icon: "talk", view: ModelsSection, configures: true },
  { id: "notifications", title: "Notifications", icon: "bell", view: NotificationsSection },
  { id: "policy", title: "Policy", icon: "rule", view: PolicySection },
];

/** The sections that this host has. */
export const sections = () => SECTIONS.filter((one) => setup.value || !one.configures);

/** Close the settings, and return to the message box. */
export function closeSettings() {
  settings.value = "";
  requestAnimationFrame(() => document.getElementById("say")?.focus());
}

/** The sections as a row of links. @param {{shown: string}} props */
const Tabs = ({ shown }) => html`
  <nav class="settings-tabs" aria-label="Settings">
    ${sections().map(
      (one) => html`
        <button
          key=${one.id}
          type="button"
          class=${cls("quiet", one.id === shown && "is-current")}
          aria-current=${one.id === shown ? "page" : undefined}
          onClick=${() => {
            settingsPlace.value = { name: "list" };
            settings.value = one.id;
          }}
        >
          <${Icon} name=${one.icon} />
          ${one.title}
        </button>
      `,
    )}
  </nav>
`;

/** The whole view. */
export function Settings() {
  const all = sections();
  const shown = all.find((one) => one.id === settings.value) ?? all[0];
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => {
    box.current?.focus({ preventScroll: true });
    box.current?.scrollTo(0, 0);
  }, [shown?.id]);
  if (!shown) return null;
  return html`
    <section class="settings" aria-label="Settings">
      <header class="settings-head">
        <${Tabs} shown=${shown.id} />
        <span class="grow"></span>
        <${IconButton} name="close" label="Close the settings" onClick=${closeSettings} />
      </header>
      <div id="settings" ref=${box} class="settings-body" tabindex="-1">
        <div class="settings-inner">
          <${shown.view} />
        </div>
      </div>
    </section>
  `;
}
