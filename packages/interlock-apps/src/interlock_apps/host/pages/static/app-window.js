// @ts-check
// The window of an app: a frame on the other origin, from its first message to its last, and what
// the page does on the app's behalf.
import { effect, typing } from "../kit/kit.js";
import { Bridge, No } from "./app-bridge.js";
import { looks } from "../kit/looks.js";
import { act, line } from "../kit/net.js";
import { appsOrigin, eventListeners, questions, serverById } from "./store.js";
import { whole } from "./structured.js";

export const LEAST = 60;
const MOST = 720;
const ALIVE = 8; // with more open apps than this, the oldest is closed
// Requests of all apps: a browser opens few connections to one origin, and the person's requests
// must get through.
const SIDE_BY_SIDE = 2;
const FEATURES = {
  camera: "camera",
  microphone: "microphone",
  geolocation: "geolocation",
  clipboardWrite: "clipboard-write",
};
/** @type {Set<AppWindow>} */
const alive = new Set();

let busy = 0;
const queue = /** @type {(() => void)[]} */ ([]);
/** @param {string} name @param {Record<string, unknown>} body */
async function inTurn(name, body) {
  if (queue.length > 100) throw new No("Too many requests");
  if (busy >= SIDE_BY_SIDE) await new Promise((go) => queue.push(() => go(undefined)));
  busy += 1;
  try {
    return await act(name, body);
  } finally {
    busy -= 1;
    queue.shift()?.();
  }
}

/**
 * Start something, and wait for the event that ends it.
 * @param {string} type
 * @param {string} key
 * @param {() => Promise<string>} begin
 * @returns {Promise<any>}
 */
async function until(type, key, begin) {
  const seen = new Map();
  let wanted = "";
  let settle = /** @type {(event: any) => void} */ (() => {});
  let stop = () => {};
  const done = new Promise((resolve, reject) => {
    settle = resolve;
    stop = effect(() => {
      if (line.value === "lost") reject(new No("The host cannot be reached"));
    });
  });
  done.catch(() => {}); // the caller gets the error below
  const receive = ({ event }) => {
    if (event.type !== type) return;
    if (event[key] === wanted) settle(event);
    else if (!wanted) seen.set(event[key], event);
  };
  eventListeners.add(receive);
  try {
    wanted = await begin();
    return seen.get(wanted) ?? (await done);
  } finally {
    eventListeners.delete(receive);
    stop();
  }
}

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

export class AppWindow {
  /**
   * @param {HTMLElement} place
   * @param {{server: string, call: string, tool: string, session: string}} whose
   * @param {any} opened what the host gave
   * @param {string[]} granted
   * @param {Component} component
   */
  constructor(place, whose, opened, granted, component) {
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
      if (questions.value.size > 0) this.show("inline");
    });
    this.turned = () => this.bridge.changed({ theme: theme() });
    dark.addEventListener("change", this.turned);
    if (this.origin !== appsOrigin.value || this.origin === location.origin)
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
    const known = serverById(server)?.tools?.find((one) => one.tool === tool);
    const width = Math.round(this.frame.getBoundingClientRect().width);
    return {
      ...(known
        ? {
            toolInfo: {
              id: call,
              tool: {
                name: known.tool,
                title: known.title,
                description: known.description,
                inputSchema: known.inputSchema,
              },
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
      userAgent: "interlock-host",
      platform: "web",
      deviceCapabilities: {
        touch: navigator.maxTouchPoints > 0,
        hover: window.matchMedia("(hover: hover)").matches,
      },
    };
  }

  /** @returns {import("./app-bridge.js").Doing} */
  doing() {
    const { server, session, call } = this.whose;
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
      call: async (tool, values) => {
        const ended = await until(
          "callEnded",
          "call",
          async () =>
            (await inTurn("callTool", { session, server, tool, arguments: values, app })).call,
        );
        if (!ended.result) throw new No(ended.error || "The call failed");
        return whole(ended, ended.result);
      },
      read: (uri) => inTurn("appRead", { app, uri }),
      open: async (url) => {
        const answered = await until(
          "answered",
          "question",
          async () => (await inTurn("appLink", { app, url, call })).question,
        );
        if (answered.answer?.action !== "accept") throw new No("Link opening denied by user");
      },
      say: async (text) => {
        if (!(await this.component.consent(text))) throw new No("Message sending denied");
        await act("say", { session, text });
      },
      note: async (content, structured) => {
        await inTurn("appContext", {
          app,
          content,
          ...(structured ? { structuredContent: structured } : {}),
        });
      },
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
    if (mode === this.mode || (mode !== "inline" && questions.value.size > 0)) return;
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
    act("closeApp", { app: this.opened.app }).catch(() => {}); // an exited host has closed it
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
