// @ts-check
// The window of an app: a frame on the other origin, from its first message to its last, and what
// the page does on the app's behalf.
import { effect, typing } from "./kit.js";
import { Bridge, No } from "./app-bridge.js";
import { looks } from "./looks.js";
import { program } from "./net.js";

export const LEAST = 60;
const MOST = 720;
const ALIVE = 8; // with more open apps than this, the oldest is closed
const FEATURES = {
  camera: "camera",
  microphone: "microphone",
  geolocation: "geolocation",
  clipboardWrite: "clipboard-write",
};
/** @type {Set<AppWindow>} */
const alive = new Set();

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const theme = () => looks.value || (dark.matches ? "dark" : "light");

/** Our colours under the names that apps use. */
function variables() {
  const style = getComputedStyle(document.documentElement);
  const names = {
    "--color-background-primary": "--card",
    "--color-background-secondary": "--sunken",
    "--color-text-primary": "--ink",
    "--color-text-secondary": "--quiet",
    "--color-border-primary": "--line",
    "--color-ring-primary": "--accent",
    "--font-sans": "--sans",
    "--font-mono": "--mono",
  };
  return Object.fromEntries(
    Object.entries(names).map(([name, ours]) => [name, style.getPropertyValue(ours).trim()]),
  );
}

/**
 * The callbacks of the component that shows the window.
 * @typedef {{ready: () => void, height: (pixels: number) => void, mode: (mode: string) => void,
 *   crowded: () => void, consent: (text: string) => Promise<boolean>, gone: (words: string) =>
 *   void}} Component
 */

/**
 * The call whose result an app shows.
 * @typedef {{server: string, call: string, tool: string, session: string}} Whose
 */

/**
 * What a page does for its apps. Each may throw an error, whose message the app gets.
 * @typedef {object} AppServices
 * @property {(server: string, uri: string, session: string) => Promise<any>} open returns the page
 *   of the app: its id, its document, the address of its frame, and its origins
 * @property {(app: string) => void} close
 * @property {() => string} origin the origin of the frames
 * @property {() => boolean} isCovering whether something is asked that no app may cover
 * @property {(server: string, tool: string) => any} toolOf what the app is told of the tool
 * @property {(whose: Whose, app: string, tool: string, values: any) => Promise<any>} call
 * @property {(whose: Whose, app: string, uri: string) => Promise<any>} read
 * @property {(whose: Whose, app: string, url: string) => Promise<void>} link
 * @property {(whose: Whose, text: string) => Promise<void>} say
 * @property {(whose: Whose, app: string, content: any[], structured: any) => Promise<void>} note
 * @property {(data: any) => Promise<any>} result the whole result of the call that an app shows
 * @property {(words: string) => void} speak says something to screen readers
 */

export class AppWindow {
  /**
   * @param {HTMLElement} place
   * @param {Whose} whose
   * @param {any} opened what the host gave
   * @param {string[]} granted
   * @param {Component} component
   * @param {AppServices} services
   */
  constructor(place, whose, opened, granted, component, services) {
    this.services = services;
    this.whose = whose;
    this.opened = opened;
    this.component = component;
    this.mode = "inline";
    this.isShown = false;
    this.thefts = 0;
    this.origin = new URL(opened.url).origin;
    const frame = (this.frame = document.createElement("iframe"));
    frame.title = `App of ${whose.server}`;
    frame.className = "app-window";
    // The frame is on the other origin, so it never has the page's own.
    frame.setAttribute("sandbox", "allow-scripts allow-same-origin");
    frame.setAttribute(
      "allow",
      granted
        .map((name) => FEATURES[/** @type {keyof typeof FEATURES} */ (name)])
        .filter(Boolean)
        .join("; "),
    );
    frame.referrerPolicy = "no-referrer";
    this.permissions = Object.fromEntries(granted.map((name) => [name, {}]));
    this.bridge = new Bridge(
      (message) => frame.contentWindow?.postMessage(message, this.origin),
      this.doing(),
    );
    this.listen = /** @param {MessageEvent} event */ (event) => this.receive(event);
    window.addEventListener("message", this.listen);
    let first = true;
    this.unhear = effect(() => {
      looks.value;
      if (!first) this.bridge.changed({ theme: theme() });
      first = false;
    });
    // An app in full screen would cover the question, and nothing may be approved unseen.
    this.uncover = effect(() => {
      if (services.isCovering()) this.show("inline");
    });
    this.turned = () => this.bridge.changed({ theme: theme() });
    dark.addEventListener("change", this.turned);
    if (this.origin !== services.origin() || this.origin === location.origin)
      throw new No("The app has no place of its own.");
    frame.src = opened.url;
    place.append(frame);
    alive.add(this);
    if (alive.size > ALIVE) [...alive][0].close("Other apps are shown now.");
  }

  /** @param {MessageEvent} event */
  receive(event) {
    if (event.source !== this.frame.contentWindow || event.origin !== this.origin) return;
    if (event.data?.method !== "ui/notifications/sandbox-proxy-ready")
      this.bridge.receive(event.data);
    else if (!this.isShown) {
      this.isShown = true;
      const { html, csp } = this.opened;
      this.frame.contentWindow?.postMessage(
        {
          jsonrpc: "2.0",
          method: "ui/notifications/sandbox-resource-ready",
          params: { html, csp, sandbox: "allow-scripts", permissions: this.permissions },
        },
        this.origin,
      );
      this.component.ready();
    }
  }

  context() {
    const { server, tool, call } = this.whose;
    const known = this.services.toolOf(server, tool);
    const width = Math.round(this.frame.getBoundingClientRect().width);
    return {
      ...(known
        ? {
            toolInfo: {
              id: call,
              tool: known,
            },
          }
        : {}),
      theme: theme(),
      styles: { variables: variables() },
      displayMode: this.mode,
      availableDisplayModes: ["inline", "fullscreen"],
      containerDimensions:
        this.mode === "inline"
          ? { width, maxHeight: MOST }
          : { width, height: Math.round(this.frame.getBoundingClientRect().height) },
      locale: navigator.language,
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      userAgent: `interlock-${program}`,
      platform: "web",
      deviceCapabilities: {
        touch: navigator.maxTouchPoints > 0,
        hover: window.matchMedia("(hover: hover)").matches,
      },
    };
  }

  /** @returns {import("./app-bridge.js").Doing} */
  doing() {
    const { whose, services } = this;
    const app = this.opened.app;
    return {
      capabilities: {
        openLinks: {},
        serverTools: {},
        serverResources: {},
        updateModelContext: { text: {}, image: {}, structuredContent: {} },
        message: { text: {} },
        sandbox: { permissions: this.permissions, csp: this.opened.csp },
      },
      context: () => this.context(),
      call: (tool, values) => services.call(whose, app, tool, values),
      read: (uri) => services.read(whose, app, uri),
      open: (url) => services.link(whose, app, url),
      say: async (text) => {
        if (!(await this.component.consent(text))) throw new No("Message sending denied");
        await services.say(whose, text);
      },
      note: (content, structured) => services.note(whose, app, content, structured),
      show: (mode) => {
        if (mode) this.show(mode);
        return this.mode;
      },
      size: (height) => {
        if (this.mode === "inline")
          this.component.height(Math.min(MOST, Math.max(LEAST, Math.ceil(height))));
      },
      crowded: () => this.component.crowded(),
    };
  }

  /** @param {string} mode */
  show(mode) {
    if (mode === this.mode || (mode !== "inline" && this.services.isCovering())) return;
    this.mode = mode;
    this.component.mode(mode);
    requestAnimationFrame(() => {
      const { displayMode, containerDimensions } = this.context();
      this.bridge.changed({ displayMode, containerDimensions });
    });
  }

  /** Close the app, after telling it. @param {string} words why, for the person */
  async close(words = "") {
    if (!alive.delete(this)) return;
    this.component.gone(words);
    keepOn(this.frame);
    await this.bridge.end(words || "The app is no longer shown.");
    window.removeEventListener("message", this.listen);
    dark.removeEventListener("change", this.turned);
    this.unhear();
    this.uncover();
    this.frame.remove();
    this.services.close(this.opened.app);
  }
}

/**
 * Keep a frame alive out of sight while its place is removed, so that the app can finish. Without
 * `moveBefore` it ends at once.
 * @param {HTMLElement} frame
 */
function keepOn(frame) {
  let limbo = document.getElementById("leaving-apps");
  if (!limbo) {
    limbo = document.createElement("div");
    limbo.id = "leaving-apps";
    limbo.className = "leaving-apps";
    limbo.setAttribute("aria-hidden", "true");
    limbo.inert = true;
    document.body.append(limbo);
  }
  const move = /** @type {any} */ (limbo).moveBefore;
  if (move && frame.isConnected) move.call(limbo, frame, null);
}

// An app must not take the focus from a field while the person types: the browser allows it, and
// the app would receive the keystrokes.
const JUST_NOW = 1000;
const THEFTS = 2;
let typed = -JUST_NOW;
let written = /** @type {HTMLElement | null} */ (null);
window.addEventListener(
  "keydown",
  (event) => {
    if (event.key.length === 1) typed = performance.now();
    else if (event.key === "Tab") typed = -JUST_NOW; // Tab moves on, and is not typing
  },
  true,
);
window.addEventListener("focusin", ({ target }) => {
  written = target instanceof HTMLElement && typing(target) ? target : null;
});
window.addEventListener("blur", () => {
  const thief = [...alive].find((one) => one.frame === document.activeElement);
  if (!thief || !written?.isConnected || performance.now() - typed > JUST_NOW) return;
  const back = written;
  thief.thefts += 1;
  if (thief.thefts >= THEFTS)
    thief.close("The app is closed: it took the focus while you were writing.");
  window.setTimeout(() => back.focus());
});

window.addEventListener("pagehide", () =>
  alive.forEach((one) => one.bridge.end("The page is closed.")),
);
