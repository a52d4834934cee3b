// @ts-check
// The state of a server: words for it, and the dot that shows it.
import { html } from "../kit/kit.js";
import { reachable } from "../kit/net.js";

/** @type {Record<string, string>} */
export const STATES = {
  waiting: "waiting for you",
  starting: "starting",
  up: "ready",
  down: "not reachable, retrying",
  off: "stopped",
  refused: "not allowed",
  login: "needs a login",
  unknown: "unknown",
};

/** The states in which something is wrong that can be examined. */
export const BROKEN = ["down", "refused", "login"];

/** The state of a server; "unknown" if the host is not reachable. @param {any} server */
export const stateOf = (server) => (reachable.value ? server.state : "unknown");

/**
 * The state of a server as a dot, with text for screen readers.
 * @param {{state: string}} props
 */
export const Dot = ({ state }) => html`
  <span class=${`dot is-${state}`} role="img" aria-label=${STATES[state] ?? state}></span>
`;
