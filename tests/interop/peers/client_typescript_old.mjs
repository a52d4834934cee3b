// A client made with the TypeScript SDK as it was from 0.6 to 1.12 that does what the test says.
// node client_typescript_old.mjs SDK, where SDK is the name of the version's folder in
// node_modules.
import { hear, play } from "./steps.mjs";

const sdk = process.argv[2];
const { Client } = await import(`${sdk}/client/index.js`);
const { CallToolResultSchema } = await import(`${sdk}/types.js`);

async function road({ command, url, road }) {
  if (command) {
    const { StdioClientTransport } = await import(`${sdk}/client/stdio.js`);
    return new StdioClientTransport({ command: command[0], args: command.slice(1) });
  }
  if (road === "http") {
    const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
    return new StreamableHTTPClientTransport(new URL(url));
  }
  if (globalThis.EventSource === undefined)
    globalThis.EventSource = (await import("eventsource")).EventSource;
  const { SSEClientTransport } = await import(`${sdk}/client/sse.js`);
  return new SSEClientTransport(new URL(url));
}

async function connect(first) {
  const client = new Client({ name: "peer", version: "1.0.0" }, { capabilities: {} });
  client.fallbackNotificationHandler = async (notification) => hear(notification);
  await client.connect(await road(first));
  return { client, revision: () => "" }; // this SDK does not tell what was agreed on
}

await play(connect, (options) => [CallToolResultSchema, options]);
