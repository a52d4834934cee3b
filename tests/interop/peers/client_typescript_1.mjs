// A client made with the official TypeScript SDK v1 that does what the test says.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks";
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

const TASKS = { requests: { elicitation: { create: {} }, sampling: { createMessage: {} } } };

// Answers a question as a task of this client (2025-11-25).
async function asTask(tasks, method, params) {
  // Without a time to live: its timer would keep Node running.
  const task = await tasks.createTask({ ttl: null, pollInterval: 50 });
  setImmediate(() => tasks.storeTaskResult(task.taskId, "completed", answer(method, params)));
  return { task };
}

function road({ command, url, road }) {
  if (command) return new StdioClientTransport({ command: command[0], args: command.slice(1) });
  return new (road === "sse" ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(url));
}

async function connect(first) {
  const options = first.question_tasks
    ? { capabilities: { ...capabilities, tasks: TASKS }, taskStore: new InMemoryTaskStore() }
    : { capabilities };
  const client = new Client({ name: "peer", version: "1.0.0" }, options);
  for (const schema of [ElicitRequestSchema, CreateMessageRequestSchema, ListRootsRequestSchema])
    client.setRequestHandler(schema, async ({ method, params }, { taskStore }) =>
      params?.task ? asTask(taskStore, method, params) : answer(method, params),
    );
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
