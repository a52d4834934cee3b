// A client made with the official TypeScript SDK v2 that does what the test says.
import {
  Client,
  SSEClientTransport,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answer, hear, play } from "./steps.mjs";

const capabilities = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: { listChanged: true },
};

function road({ command, url, road }) {
  if (command) return new StdioClientTransport({ command: command[0], args: command.slice(1) });
  return new (road === "sse" ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(url));
}

async function connect({ mode, ...first }) {
  const negotiation = mode === "auto" || mode === "legacy" ? mode : { pin: mode };
  const client = new Client(
    { name: "peer", version: "1.0.0" },
    { capabilities, versionNegotiation: { mode: negotiation } },
  );
  for (const method of ["elicitation/create", "sampling/createMessage", "roots/list"])
    client.setRequestHandler(method, async ({ method, params }) => answer(method, params));
  client.fallbackNotificationHandler = async (notification) => hear(notification);
  await client.connect(road(first));
  return { client, revision: () => client.getNegotiatedProtocolVersion() };
}

await play(connect, (options) => [options]);
