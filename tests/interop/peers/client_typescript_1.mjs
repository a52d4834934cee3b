// A client made with the official TypeScript SDK v1 that does what the test says.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
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

async function connect(first) {
  const client = new Client({ name: "peer", version: "1.0.0" }, { capabilities });
  for (const schema of [ElicitRequestSchema, CreateMessageRequestSchema, ListRootsRequestSchema])
    client.setRequestHandler(schema, async ({ method, params }) => answer(method, params));
  client.fallbackNotificationHandler = async (notification) => hear(notification);
  const transport = road(first);
  let agreed;
  const told = transport.setProtocolVersion?.bind(transport) ?? (() => {});
  // The one place where this SDK tells what was agreed on.
  transport.setProtocolVersion = (version) => told((agreed = version));
  await client.connect(transport);
  return { client, revision: () => agreed };
}

await play(connect, (options) => [CallToolResultSchema, options]);
