// @ts-check
// What the host does for its apps: acts, and the events that end them.
import { No } from "../kit/app-bridge.js";
import { effect } from "../kit/kit.js";
import { act, line } from "../kit/net.js";
import { appsOrigin, eventListeners, questions, serverById, spoken } from "./store.js";
import { whole } from "./structured.js";

// Requests of all apps: a browser opens few connections to one origin, and the person's requests
// must get through.
const SIDE_BY_SIDE = 2;
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

/** @type {import("../kit/app-window.js").AppServices} */
export const appServices = {
  open: (server, uri, session) => act("appResource", { server, uri, session }),
  close: (app) => {
    act("closeApp", { app }).catch(() => {}); // an exited host has closed it
  },
  origin: () => appsOrigin.value,
  isCovering: () => questions.value.size > 0,
  toolOf: (server, tool) => {
    const known = serverById(server)?.tools?.find((one) => one.tool === tool);
    if (!known) return undefined;
    const { title, description, inputSchema } = known;
    return { name: known.tool, title, description, inputSchema };
  },
  call: async ({ server, session }, app, tool, values) => {
    const ended = await until(
      "callEnded",
      "call",
      async () =>
        (await inTurn("callTool", { session, server, tool, arguments: values, app })).call,
    );
    if (!ended.result) throw new No(ended.error || "The call failed");
    return whole(ended, ended.result);
  },
  read: (_, app, uri) => inTurn("appRead", { app, uri }),
  link: async ({ call }, app, url) => {
    const answered = await until(
      "answered",
      "question",
      async () => (await inTurn("appLink", { app, url, call })).question,
    );
    if (answered.answer?.action !== "accept") throw new No("Link opening denied by user");
  },
  say: async ({ session }, text) => {
    await act("say", { session, text });
  },
  note: async (_, app, content, structured) => {
    await inTurn("appContext", {
      app,
      content,
      ...(structured ? { structuredContent: structured } : {}),
    });
  },
  result: (data) => whole(data, data.result).catch(() => data.result),
  speak: (words) => {
    spoken.value = words;
  },
};
