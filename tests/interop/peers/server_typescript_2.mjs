// The catalogue, served by the official TypeScript SDK v2 over stdio, or over HTTP
// (`streamable-http PORT`).
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import {
  McpServer,
  ResourceTemplate,
  completable,
  createMcpHandler,
  inputRequired,
  inputResponse,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
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
let grown = false;
// Tells those who listen over HTTP, where each request of the stateless era has a server of its
// own.
let web;
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
  const nothing = z.object({});

  tool(
    "add",
    "Add two integers.",
    z.object({ a: z.number().int(), b: z.number().int() }),
    async ({ a, b }) => ({ ...said(String(a + b)), structuredContent: { result: a + b } }),
    { outputSchema: z.object({ result: z.number().int() }) },
  );
  tool(
    "weather",
    "Say what it is like in a city.",
    z.object({ city: z.string() }),
    async ({ city }) => ({
      ...said(JSON.stringify({ city, celsius: 21.5 })),
      structuredContent: { city, celsius: 21.5 },
    }),
    { outputSchema: z.object({ city: z.string(), celsius: z.number() }) },
  );
  tool("echo", "Say the same again.", z.object({ text: z.string() }), async ({ text }) =>
    said(text),
  );
  tool("media", "Give a picture and a sound.", nothing, async () => ({
    content: [
      { type: "image", data: PIXEL, mimeType: "image/png" },
      { type: "audio", data: WAV, mimeType: "audio/wav" },
    ],
  }));
  tool("links", "Give a text, a link and a resource.", nothing, async () => ({
    content: [
      { type: "text", text: "Two of them:" },
      { type: "resource_link", uri: "note://board", name: "board" },
      INSIDE,
    ],
  }));
  tool("fail", "Fail, always.", nothing, async () => {
    throw new Error("It is broken.");
  });
  tool("chatter", "Write to the log at three levels.", nothing, async (_, ctx) => {
    await ctx.mcpReq.log("debug", "one");
    await ctx.mcpReq.log("info", "two");
    await ctx.mcpReq.log("warning", "three");
    return said("said");
  });
  const report = async (ctx, progress, total, message) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken !== undefined)
      await ctx.mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken, progress, total, message },
      });
  };
  tool(
    "count",
    "Count, and report progress.",
    z.object({ to: z.number().int() }),
    async ({ to }, ctx) => {
      for (let n = 1; n <= to; n++) await report(ctx, n, to, `at ${n}`);
      return said(`counted to ${to}`);
    },
  );

  // In both eras the questions go out as a result of the tool; the SDK asks them one by one where
  // the client is of the older era.
  const asking = (key, request, tell) => async (args, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, key);
    return answer.kind === "missing"
      ? inputRequired({ inputRequests: { [key]: request(args) } })
      : said(tell(answer));
  };
  tool(
    "ask_guest",
    "Ask the person for a name and an age.",
    nothing,
    asking(
      "guest",
      () => inputRequired.elicit({ message: "Who are you?", requestedSchema: GUEST }),
      ({ action, content }) =>
        action === "accept" ? `accept ${content.name} ${content.age}` : action,
    ),
  );
  tool(
    "ask_visit",
    "Ask the person to visit a page.",
    nothing,
    asking(
      "visit",
      () =>
        inputRequired.elicitUrl({ message: "Please sign in", url: "https://example.com/sign-in" }),
      ({ action }) => (action === "accept" ? "visited" : "not visited"),
    ),
  );
  tool(
    "ask_model",
    "Ask the client's model.",
    z.object({ prompt: z.string() }),
    asking(
      "model",
      ({ prompt }) =>
        inputRequired.createMessage({
          messages: [{ role: "user", content: { type: "text", text: prompt } }],
          maxTokens: 50,
        }),
      ({ result }) => result.content.text,
    ),
  );
  tool(
    "ask_roots",
    "Ask which folders may be used.",
    nothing,
    asking(
      "roots",
      () => inputRequired.listRoots(),
      ({ roots }) => roots.map((root) => root.uri).join(" "),
    ),
  );

  tool("wait", "Wait until the call is cancelled.", nothing, async (_, ctx) => {
    const gone = new Promise((resolve) => ctx.mcpReq.signal.addEventListener("abort", resolve));
    await report(ctx, 1, 2, "waiting");
    await gone;
    cancelled += 1;
    return said("woken");
  });
  tool("cancellations", "Say how many calls were cancelled.", nothing, async () =>
    said(String(cancelled)),
  );
  tool("touch", "Tell whoever watches that the board has changed.", nothing, async (_, ctx) => {
    if (web && ctx.mcpReq.envelope) web.notify.resourceUpdated("note://board");
    else if (watched.has("note://board") || ctx.mcpReq.envelope)
      await server.server.sendResourceUpdated({ uri: "note://board" });
    return said("touched");
  });
  const extra = () =>
    tool("extra", "Say the same again.", z.object({ text: z.string() }), async ({ text }) =>
      said(text),
    );
  tool("grow", "Add a tool.", nothing, async (_, ctx) => {
    grown = true;
    if (web && ctx.mcpReq.envelope) web.notify.toolsChanged();
    else extra();
    return said("grown");
  });
  if (grown) extra();

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
    "resources/subscribe",
    async ({ params }) => (watched.add(params.uri), {}),
  );
  server.server.setRequestHandler(
    "resources/unsubscribe",
    async ({ params }) => (watched.delete(params.uri), {}),
  );

  server.registerPrompt(
    "greet",
    {
      description: "Greet somebody.",
      argsSchema: z.object({ name: completable(z.string(), named) }),
    },
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

function serveWeb(port) {
  const sessions = new Map();
  web = createMcpHandler(build, { legacy: "reject" });
  const stateless = toNodeHandler(web);
  createServer(async (req, res) => {
    if (req.headers["mcp-protocol-version"] >= "2026") return stateless(req, res);
    let transport = sessions.get(req.headers["mcp-session-id"]);
    if (transport === undefined) {
      if (req.headers["mcp-session-id"] !== undefined) return res.writeHead(404).end();
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => void sessions.set(id, transport),
      });
      await build().connect(transport);
    }
    await transport.handleRequest(req, res);
  }).listen(Number(port), "127.0.0.1");
}

if (process.argv.length > 2) serveWeb(process.argv[3]);
else serveStdio(build);
