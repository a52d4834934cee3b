// @ts-check
// Stands between the host's page and one app (MCP Apps, 2026-01-26, "Sandbox proxy"): holds the app
// in a frame without an origin, passes messages on, both ways, and never says anything of its own
// but that it is ready.
(() => {
  "use strict";
  const page = document.querySelector("meta[name=page]")?.getAttribute("content") ?? "";
  const host = window.parent;
  if (host === window || !page) return;

  const READY = "ui/notifications/sandbox-proxy-ready";
  const RESOURCE = "ui/notifications/sandbox-resource-ready";
  const RESERVED = "ui/notifications/sandbox-";
  // What an app may send: so many messages at once, so many more each second, each so long. What is
  // beyond that is lost.
  const AT_ONCE = 100;
  const A_SECOND = 50;
  const LONGEST = 2_000_000;
  const NAMES = /** @type {[string, string][]} */ ([
    ["camera", "camera"],
    ["microphone", "microphone"],
    ["geolocation", "geolocation"],
    ["clipboardWrite", "clipboard-write"],
  ]);
  let frame = /** @type {HTMLIFrameElement | null} */ (null);
  let left = AT_ONCE;
  let at = performance.now();

  /** Whether one more may pass. */
  function may() {
    const now = performance.now();
    left = Math.min(AT_ONCE, left + ((now - at) / 1000) * A_SECOND);
    at = now;
    if (left < 1) return false;
    left -= 1;
    return true;
  }

  /** @param {any} params */
  function show(params) {
    if (frame || typeof params?.html !== "string") return;
    const made = document.createElement("iframe");
    made.title = "App";
    // No origin: neither storage nor cookies, and no other app's either.
    made.setAttribute("sandbox", "allow-scripts");
    made.setAttribute(
      "allow",
      NAMES.filter(([name]) => params.permissions?.[name])
        .map(([, feature]) => feature)
        .join("; "),
    );
    made.srcdoc = params.html; // the policy that this page came with holds for it too
    let loads = 0;
    made.addEventListener("load", () => {
      loads += 1;
      if (loads > 1) made.remove(); // it has left for another page, which is nobody's app
    });
    frame = made;
    document.body.append(made);
  }

  window.addEventListener("message", (event) => {
    const message = event.data;
    if (typeof message !== "object" || message === null || message.jsonrpc !== "2.0") return;
    const reserved = typeof message.method === "string" && message.method.startsWith(RESERVED);
    if (event.source === host && event.origin === page) {
      if (message.method === RESOURCE) show(message.params);
      else if (!reserved) frame?.contentWindow?.postMessage(message, "*");
    } else if (
      frame?.contentWindow &&
      event.source === frame.contentWindow &&
      event.origin === "null"
    ) {
      if (reserved || !may()) return;
      let plain;
      try {
        plain = JSON.stringify(message);
      } catch {
        return; // what is no JSON is no message
      }
      if (plain.length <= LONGEST) host.postMessage(JSON.parse(plain), page);
    }
  });
  host.postMessage({ jsonrpc: "2.0", method: READY, params: {} }, page);
})();
