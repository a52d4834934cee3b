// @ts-check
// The feature panels, in the order of their tabs.
import { panel as authorization } from "./authorization.js";
import { panel as prompts } from "./prompts.js";
import { panel as questions } from "./questions.js";
import { panel as resources } from "./resources.js";
import { panel as skills } from "./skills.js";
import { panel as subscriptions } from "./subscriptions.js";
import { panel as tasks } from "./tasks.js";
import { panel as tools } from "./tools.js";

/**
 * A feature panel: one tab of a connection.
 * @typedef {object} FeaturePanel
 * @property {string} id the name in the address of the page
 * @property {string} title the words on the tab
 * @property {(connection: import("../store.js").Connection) => boolean} available whether the tab
 *   is shown for a connection
 * @property {(props: {connection: import("../store.js").Connection}) => any} Panel
 */

/** @type {FeaturePanel[]} */
export const panels = [
  tools,
  resources,
  prompts,
  subscriptions,
  tasks,
  skills,
  questions,
  authorization,
];
