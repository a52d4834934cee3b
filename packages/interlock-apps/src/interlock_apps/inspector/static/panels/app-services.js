// @ts-check
// What the inspector does for apps: calls and reads over their own connection. What an app says to
// the user or the model is shown, because there is no conversation.
import { No } from "../../kit/app-bridge.js";
import { act } from "../../kit/net.js";
import { appsOrigin, connections, on, spoken, toast } from "../store.js";

/**
 * Wait until a call has ended.
 * @param {string} connection
 * @param {string} call
 */
function ended(connection, call) {
  return new Promise((resolve) => {
    const look = () => act("getCall", { connection, call }).then(check, resolve);
    const stop = on("call", (event) => {
      if (event.connection === connection && event.data.id === call) check(event.data);
    });
    const check = (state) => {
      if (state.status === "running") return;
      stop();
      resolve(state);
    };
    look();
  });
}

/**
 * The services for the apps of a connection.
 * @param {any[]} tools the tools as the server lists them
 * @returns {import("../../kit/app-window.js").AppServices}
 */
export const appServices = (tools) => ({
  open: (connection, uri) => act("openApp", { connection, uri }),
  close: () => {},
  origin: () => appsOrigin.value,
  isCovering: () => connections.value.some((one) => one.questions.length > 0),
  toolOf: (_, name) => {
    const found = tools.find((one) => one.name === name);
    if (!found) return undefined;
    const { title, description, inputSchema } = found;
    return { name, title, description, inputSchema };
  },
  call: async ({ server }, _, tool, values) => {
    const begun = await act("callForApp", { connection: server, tool, arguments: values });
    await ended(server, begun.call);
    const call = await act("getCall", { connection: server, call: begun.call });
    if (!call.result) throw new No(call.error?.message || "The call failed");
    return call.result;
  },
  read: async ({ server }, _, uri) => {
    const { command: _command, ...result } = await act("readResource", {
      connection: server,
      uri,
    });
    return result;
  },
  link: async (_, __, url) => {
    toast("info", `The app asks to open ${url}. The inspector opens no pages for apps.`);
    throw new No("Link opening denied by user");
  },
  say: async (_, text) => {
    toast("info", `The app sends as your message: ${text}`);
  },
  note: async (_, __, content, structured) => {
    const words = JSON.stringify({ content, structuredContent: structured ?? undefined });
    toast("info", `The app gives the model: ${words}`);
  },
  result: async (data) => data.result,
  speak: (words) => {
    spoken.value = words;
  },
});
