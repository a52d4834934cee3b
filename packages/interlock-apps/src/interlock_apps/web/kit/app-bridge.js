// @ts-check
// The host's side of the protocol with an app: which messages an app may send, which it gets, and
// in which order (MCP Apps, 2026-01-26).
import { program } from "./net.js";

export const REVISION = "2026-01-26";
// A token bucket for the app's messages. Requests beyond it are refused, other messages dropped.
const AT_ONCE = 60;
const A_SECOND = 20;
const MODES = ["inline", "fullscreen"];

/** An error for the app; the message is sent to it. */
export class No extends Error {
  /** @param {string} words @param {number} [code] */
  constructor(words, code = -32000) {
    super(words);
    this.code = code;
  }
}

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * @typedef {Object} Doing What the page does for an app; each may throw No, or another error with
 *   a message.
 * @property {(tool: string, values: any) => Promise<any>} call
 * @property {(uri: string) => Promise<any>} read
 * @property {(url: string) => Promise<void>} open
 * @property {(text: string) => Promise<void>} say
 * @property {(content: any[], structured: any) => Promise<void>} note
 * @property {(mode: string) => string} show returns the resulting mode
 * @property {(height: number) => void} size
 * @property {() => any} context
 * @property {any} capabilities
 * @property {() => void} crowded
 */

/** One app, from the creation of its page to its end. */
export class Bridge {
  /** @param {(message: any) => void} send @param {Doing} doing */
  constructor(send, doing) {
    this.send = send;
    this.doing = doing;
    this.state = /** @type {"new" | "greeted" | "ready" | "over"} */ ("new");
    this.modes = /** @type {string[] | null} */ (null);
    this.waiting = /** @type {any[]} */ ([]);
    this.sent = new Set();
    this.asked = new Map();
    this.count = 0;
    this.left = AT_ONCE;
    this.at = performance.now();
  }

  /** Handle a message from the app's window; an invalid one is dropped. @param {any} message */
  receive(message) {
    if (this.state === "over" || !isObject(message) || message.jsonrpc !== "2.0") return;
    const { id, method, params = {} } = message;
    const named = typeof id === "string" || (typeof id === "number" && Number.isFinite(id));
    if (typeof method === "string") {
      if (!isObject(params) || (id !== undefined && !named)) return;
      if (!this.may()) {
        this.doing.crowded();
        if (named)
          this.send({
            jsonrpc: "2.0",
            id,
            error: { code: -32000, message: "Too many messages" },
          });
      } else if (named) this.answer(id, method, params);
      else this.note(method, params);
    } else if (named && this.asked.has(id) && ("result" in message || "error" in message))
      this.asked.get(id)();
  }

  may() {
    const now = performance.now();
    this.left = Math.min(AT_ONCE, this.left + ((now - this.at) / 1000) * A_SECOND);
    this.at = now;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }

  /** @param {string | number} id @param {string} method @param {any} params */
  async answer(id, method, params) {
    let answer;
    try {
      answer = { result: await this.does(method, params) };
    } catch (bad) {
      answer = {
        error: {
          code: bad instanceof No ? bad.code : -32000,
          message: bad instanceof Error ? bad.message : "It failed",
        },
      };
    }
    if (this.state !== "over") this.send({ jsonrpc: "2.0", id, ...answer });
  }

  /** @param {string} method @param {any} params @returns {Promise<any>} */
  async does(method, params) {
    if (method === "ping") return {};
    if (method === "ui/initialize") return this.greet(params);
    if (this.state !== "ready") throw new No("Initialize first", -32600);
    switch (method) {
      case "tools/call":
        if (typeof params.name !== "string" || !isObject(params.arguments ?? {}))
          throw new No("Invalid params", -32602);
        return this.doing.call(params.name, params.arguments ?? {});
      case "resources/read":
        if (typeof params.uri !== "string") throw new No("Invalid params", -32602);
        return this.doing.read(params.uri);
      case "ui/open-link":
        if (typeof params.url !== "string" || !/^https?:\/\//i.test(params.url))
          throw new No("Invalid URL");
        await this.doing.open(params.url);
        return {};
      case "ui/message":
        await this.doing.say(spoken(params));
        return {};
      case "ui/update-model-context":
        if (!Array.isArray(params.content ?? []) || !isObject(params.structuredContent ?? {}))
          throw new No("Invalid content format");
        await this.doing.note(params.content ?? [], params.structuredContent ?? null);
        return {};
      case "ui/request-display-mode":
        if (typeof params.mode !== "string") throw new No("Invalid params", -32602);
        return { mode: this.doing.show(this.allows(params.mode) ? params.mode : "") };
      default:
        throw new No("Method not found", -32601);
    }
  }

  /** Whether the app supports a display mode: only those it declared. @param {string} mode */
  allows(mode) {
    return MODES.includes(mode) && (mode === "inline" || !!this.modes?.includes(mode));
  }

  /** @param {any} params */
  greet(params) {
    if (this.state !== "new") throw new No("It is initialized already", -32600);
    if (typeof params.protocolVersion !== "string") throw new No("Invalid params", -32602);
    const modes = params.appCapabilities?.availableDisplayModes;
    this.modes = Array.isArray(modes) ? modes.filter((mode) => typeof mode === "string") : null;
    this.state = "greeted";
    return {
      protocolVersion: REVISION,
      hostInfo: { name: `interlock-${program}`, version: "1" },
      hostCapabilities: this.doing.capabilities,
      hostContext: this.doing.context(),
    };
  }

  /** @param {string} method @param {any} params */
  note(method, params) {
    if (method === "ui/notifications/initialized" && this.state === "greeted") {
      this.state = "ready";
      for (const message of this.waiting.splice(0)) this.send(message);
    } else if (
      method === "ui/notifications/size-changed" &&
      this.state === "ready" &&
      Number.isFinite(params.height) &&
      params.height >= 0
    )
      this.doing.size(params.height);
  }

  /**
   * Send the app a notification as soon as it is ready.
   * @param {string} method @param {any} params
   */
  notify(method, params) {
    const message = { jsonrpc: "2.0", method, params };
    if (this.state === "ready") this.send(message);
    else if (this.state !== "over") this.waiting.push(message);
  }

  /** Send the arguments of the call, once. @param {any} values */
  input(values) {
    if (this.sent.has("input")) return;
    this.sent.add("input");
    this.notify("ui/notifications/tool-input", { arguments: values ?? {} });
  }

  /**
   * Send the outcome of the call, once, and never before its arguments.
   * @param {any} result
   * @param {string} reason
   */
  outcome(result, reason) {
    if (!this.sent.has("input") || this.sent.has("outcome")) return;
    this.sent.add("outcome");
    if (result) this.notify("ui/notifications/tool-result", result);
    else this.notify("ui/notifications/tool-cancelled", { reason });
  }

  /**
   * Report a change of the context; before initialization the app gets the new context anyway.
   * @param {any} changed
   */
  changed(changed) {
    if (this.state === "ready") this.notify("ui/notifications/host-context-changed", changed);
  }

  /**
   * Let the app finish its work, and wait for it for a short time.
   * @param {string} reason
   * @param {number} most milliseconds
   */
  async end(reason, most = 800) {
    if (this.state === "ready") {
      const id = `host-${++this.count}`;
      await new Promise((done) => {
        this.asked.set(id, () => done(undefined));
        window.setTimeout(done, most, undefined);
        this.send({ jsonrpc: "2.0", id, method: "ui/resource-teardown", params: { reason } });
      });
    }
    this.state = "over";
    this.waiting = [];
  }
}

/** The text that an app wants to send as the person's message. @param {any} params */
function spoken(params) {
  const blocks = Array.isArray(params.content) ? params.content : [params.content];
  if (
    params.role !== "user" ||
    !blocks.length ||
    !blocks.every(
      (block) => isObject(block) && block.type === "text" && typeof block.text === "string",
    )
  )
    throw new No("Invalid message format");
  const text = blocks.map((block) => block.text).join("\n\n");
  if (!text.trim() || text.length > 10_000) throw new No("Invalid message format");
  return text;
}
