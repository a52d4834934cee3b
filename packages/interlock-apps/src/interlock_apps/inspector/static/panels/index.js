// @ts-check
// The feature panels, in the order of their tabs.

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
export const panels = [];
