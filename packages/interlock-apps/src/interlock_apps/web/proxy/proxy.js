// @ts-check
// The proxy between the host's page and one app (MCP Apps, 2026-01-26, "Sandbox proxy"). It holds
// the app in a frame without an origin and passes messages both ways. Its only own message is that
// it is ready.
(() => {
  "use strict";
  const page = document.querySelector("meta[name=page]")?.getAttribute("content") ?? "";
  const host = window.parent;
  if (host === window || !page) return;

  const READY = "ui/notifications/sandbox-proxy-ready";
  const RESOURCE = "ui/notifications/sandbox-resource-ready";
  const RESERVED = "ui/notifications/sandbox-";
  // Limits of an app's messages: burst, messages a second, and length. The excess is dropped.
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

  /** Whether another message may pass. */
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
    // An opaque origin: without storage and cookies, and separate from other apps.
    made.setAttribute("sandbox", "allow-scripts");
    made.setAttribute(
      "allow",
      NAMES.filter(([name]) => params.permissions?.[name])
        .map(([, feature]) => feature)
        .join("; "),
    );
    made.srcdoc = params.html; // the policy of this page applies to it too
    let loads = 0;
    made.addEventListener("load", () => {
      loads += 1;
      if (loads > 1) made.remove(); // the app has navigated away
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
        return; // not JSON, so not a message
      }
      if (plain.length <= LONGEST) host.postMessage(JSON.parse(plain), page);
    }
  });
  host.postMessage({ jsonrpc: "2.0", method: READY, params: {} }, page);
})();
