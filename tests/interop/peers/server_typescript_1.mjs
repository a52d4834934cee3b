// The catalogue, served by the official TypeScript SDK v1 over stdio, or over HTTP
// (`streamable-http PORT`, `sse PORT`).
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const INSIDE = {
  type: "resource",
  resource: { uri: "note://inside", mimeType: "text/plain", text: "inside" },
};
const GUEST = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
};

const said = (text) => ({ content: [{ type: "text", text }] });
const named = (start) => ["ada", "alan", "grace"].filter((name) => name.startsWith(start));

let cancelled = 0;
const watched = new Set();

function build() {
  const server = new McpServer(
    { name: "catalogue", version: "1.2.3" },
    {
      instructions: "Try everything.",
      capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } },
    },
  );
  const tool = (name, description, inputSchema, run, more = {}) =>
    server.registerTool(name, { description, inputSchema, ...more }, run);

  tool(
    "add",
    "Add two integers.",
    { a: z.number().int(), b: z.number().int() },
    async ({ a, b }) => ({ ...said(String(a + b)), structuredContent: { result: a + b } }),
    { outputSchema: { result: z.number().int() } },
  );
  tool(
    "weather",
    "Say what it is like in a city.",
    { city: z.string() },
    async ({ city }) => ({
      ...said(JSON.stringify({ city, celsius: 21.5 })),
      structuredContent: { city, celsius: 21.5 },
    }),
    { outputSchema: { city: z.string(), celsius: z.number() } },
  );
  tool("echo", "Say the same again.", { text: z.string() }, async ({ text }) => said(text));
  tool("media", "Give a picture and a sound.", {}, async () => ({
    content: [
      { type: "image", data: PIXEL, mimeType: "image/png" },
      { type: "audio", data: WAV, mimeType: "audio/wav" },
    ],
  }));
  tool("links", "Give a text, a link and a resource.", {}, async () => ({
    content: [
      { type: "text", text: "Two of them:" },
      { type: "resource_link", uri: "note://board", name: "board" },
      INSIDE,
    ],
  }));
  tool("fail", "Fail, always.", {}, async () => {
    throw new Error("It is broken.");
  });
  tool("chatter", "Write to the log at three levels.", {}, async (_, { sessionId }) => {
    await server.server.sendLoggingMessage({ level: "debug", data: "one" }, sessionId);
    await server.server.sendLoggingMessage({ level: "info", data: "two" }, sessionId);
    await server.server.sendLoggingMessage({ level: "warning", data: "three" }, sessionId);
    return said("said");
  });
  const report = async (extra, progress, total, message) => {
    const progressToken = extra._meta?.progressToken;
    if (progressToken !== undefined)
      await extra.sendNotification({
        method: "notifications/progress",
        params: { progressToken, progress, total, message },
      });
  };
  tool("count", "Count, and report progress.", { to: z.number().int() }, async ({ to }, extra) => {
    for (let n = 1; n <= to; n++) await report(extra, n, to, `at ${n}`);
    return said(`counted to ${to}`);
  });
  tool("ask_guest", "Ask the person for a name and an age.", {}, async () => {
    const { action, content } = await server.server.elicitInput({
      message: "Who are you?",
      requestedSchema: GUEST,
    });
    return said(action === "accept" ? `accept ${content.name} ${content.age}` : action);
  });
  tool("ask_visit", "Ask the person to visit a page.", {}, async () => {
    const page = {
      mode: "url",
      message: "Please sign in",
      url: "https://example.com/sign-in",
      elicitationId: "sign-in-1",
    };
    const { action } = await server.server.elicitInput(page);
    return said(action === "accept" ? "visited" : "not visited");
  });
  tool("ask_model", "Ask the client's model.", { prompt: z.string() }, async ({ prompt }) => {
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    return said((await server.server.createMessage({ messages, maxTokens: 50 })).content.text);
  });
  tool("ask_roots", "Ask which folders may be used.", {}, async () => {
    const { roots } = await server.server.listRoots();
    return said(roots.map((root) => root.uri).join(" "));
  });
  tool("wait", "Wait until the call is cancelled.", {}, async (_, extra) => {
    const gone = new Promise((resolve) => extra.signal.addEventListener("abort", resolve));
    await report(extra, 1, 2, "waiting");
    await gone;
    cancelled += 1;
    return said("woken");
  });
  tool("cancellations", "Say how many calls were cancelled.", {}, async () =>
    said(String(cancelled)),
  );
  tool("touch", "Tell whoever watches that the board has changed.", {}, async () => {
    if (watched.has("note://board"))
      await server.server.sendResourceUpdated({ uri: "note://board" });
    return said("touched");
  });
  tool("grow", "Add a tool.", {}, async () => {
    tool("extra", "Say the same again.", { text: z.string() }, async ({ text }) => said(text));
    return said("grown");
  });

  server.registerResource("board", "note://board", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "Nothing new." }],
  }));
  server.registerResource("pixel", "note://pixel", { mimeType: "image/png" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "image/png", blob: PIXEL }],
  }));
  const people = new ResourceTemplate("note://people/{name}", {
    list: undefined,
    complete: { name: named },
  });
  server.registerResource(
    "person",
    people,
    { mimeType: "text/plain", description: "A person by name." },
    async (uri, { name }) => ({
      contents: [{ uri: uri.href, mimeType: "text/plain", text: `This is ${name}.` }],
    }),
  );
  server.server.setRequestHandler(
    SubscribeRequestSchema,
    async ({ params }) => (watched.add(params.uri), {}),
  );
  server.server.setRequestHandler(
    UnsubscribeRequestSchema,
    async ({ params }) => (watched.delete(params.uri), {}),
  );

  server.registerPrompt(
    "greet",
    { description: "Greet somebody.", argsSchema: { name: completable(z.string(), named) } },
    ({ name }) => ({
      messages: [
        { role: "user", content: { type: "text", text: `Greet ${name}.` } },
        { role: "assistant", content: { type: "text", text: `Hello, ${name}!` } },
      ],
    }),
  );
  server.registerPrompt("picture", { description: "Look at a picture and a note." }, () => ({
    messages: [
      { role: "user", content: { type: "image", data: PIXEL, mimeType: "image/png" } },
      { role: "user", content: INSIDE },
    ],
  }));
  return server;
}

// The servers of HTTP sessions, by their ids; each message that comes later says whose it is.
function serveWeb(kind, port) {
  const sessions = new Map();
  const streamable = async (req, res) => {
    let transport = sessions.get(req.headers["mcp-session-id"]);
    if (transport === undefined) {
      if (req.headers["mcp-session-id"] !== undefined) return res.writeHead(404).end();
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => void sessions.set(id, transport),
      });
      await build().connect(transport);
    }
    await transport.handleRequest(req, res);
  };
  const sse = async (req, res) => {
    if (req.method === "GET") {
      const transport = new SSEServerTransport("/messages", res);
      sessions.set(transport.sessionId, transport);
      await build().connect(transport);
    } else {
      const transport = sessions.get(
        new URL(req.url, "http://127.0.0.1").searchParams.get("sessionId"),
      );
      if (transport === undefined) return res.writeHead(404).end("Cannot POST");
      await transport.handlePostMessage(req, res);
    }
  };
  createServer(kind === "sse" ? sse : streamable).listen(Number(port), "127.0.0.1");
}

if (process.argv.length > 2) serveWeb(...process.argv.slice(2));
else await build().connect(new StdioServerTransport());
