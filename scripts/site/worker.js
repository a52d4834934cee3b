// Runs the search of the site in a hidden frame. Browsers refuse workers to pages that were opened
// from the disk, so there this class takes the place of `Worker`.

class FrameWorker extends EventTarget {
  /** @param {string | URL} address The script. */
  constructor(address) {
    super();
    /** @type {((event: MessageEvent) => void) | null} */
    this.onmessage = null;
    this.onmessageerror = null;
    this.onerror = null;
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inside = /** @type {Window} */ (this.frame.contentWindow);
    inside.postMessage = (/** @type {unknown} */ data) => {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    };
    const script = inside.document.createElement("script");
    script.src = String(address);
    this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
    inside.document.head.append(script);
  }

  /** @param {unknown} data A message for the script. */
  async postMessage(data) {
    await this.loaded;
    this.frame.contentWindow?.dispatchEvent(new MessageEvent("message", { data }));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") {
  window.Worker = /** @type {any} */ (FrameWorker);
}
