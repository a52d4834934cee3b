// A small server, made with the low-level interface that every version 0.x and 1.x of the
// TypeScript SDK has. node server_small.mjs SDK [streamable-http PORT | sse PORT], where SDK is the
// name of the version's folder in node_modules. Its tools refuse a call without arguments, as the
// servers of 2024 did that were made after the first examples.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const [sdk, kind = "stdio", port] = process.argv.slice(2);
const { Server } = await import(`${sdk}/server/index.js`);
const types = await import(`${sdk}/types.js`);

const said = (text) => ({ content: [{ type: "text", text }] });
const integer = { type: "integer" };
const object = (properties = {}) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
});

const TOOLS = {
  add: { description: "Add two integers.", inputSchema: object({ a: integer, b: integer }) },
  touch: { description: "Take no arguments.", inputSchema: object() },
  fail: { description: "Fail, always.", inputSchema: object() },
  count: { description: "Count, and report progress.", inputSchema: object({ to: integer }) },
};

function build() {
  const server = new Server(
    { name: "small", version: "1.0.0" },
    { capabilities: { tools: {}, resources: {}, prompts: {} } },
  );
  const on = (schema, handler) =>
    server.setRequestHandler(types[`${schema}RequestSchema`], handler);
  on("ListTools", async () => ({
    tools: Object.entries(TOOLS).map(([name, tool]) => ({ name, ...tool })),
  }));
  on("CallTool", async ({ params: { name, arguments: args, _meta } }, extra) => {
    // Older versions have no extra.
    const notify = extra?.sendNotification ?? ((message) => server.notification(message));
    if (!args) throw new Error(`No arguments provided for tool: ${name}`);
    if (name === "add") return said(String(args.a + args.b));
    if (name === "touch") return said("touched");
    if (name === "fail") return { ...said("It is broken."), isError: true };
    for (let progress = 1; progress <= args.to && _meta?.progressToken !== undefined; progress++)
      await notify({
        method: "notifications/progress",
        params: { progressToken: _meta.progressToken, progress, total: args.to },
      });
    return said(`counted to ${args.to}`);
  });
  on("ListResources", async () => ({ resources: [{ uri: "note://board", name: "board" }] }));
  on("ListResourceTemplates", async () => ({
    resourceTemplates: [{ uriTemplate: "note://people/{name}", name: "person" }],
  }));
  on("ReadResource", async ({ params: { uri } }) => ({
    contents: [
      { uri, text: uri === "note://board" ? "Nothing new." : `This is ${uri.split("/").pop()}.` },
    ],
  }));
  on("ListPrompts", async () => ({
    prompts: [{ name: "greet", arguments: [{ name: "name", required: true }] }],
  }));
  on("GetPrompt", async ({ params }) => ({
    messages: [
      { role: "user", content: { type: "text", text: `Greet ${params.arguments.name}.` } },
    ],
  }));
  return server;
}

if (kind === "stdio") {
  const { StdioServerTransport } = await import(`${sdk}/server/stdio.js`);
  await build().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const { SSEServerTransport } = await import(`${sdk}/server/sse.js`);
  const sse = async (req, res) => {
    if (req.method === "GET") {
      const transport = new SSEServerTransport("/messages", res);
      sessions.set(transport.sessionId, transport);
      await build().connect(transport);
      return;
    }
    const transport = sessions.get(
      new URL(req.url, "http://127.0.0.1").searchParams.get("sessionId"),
    );
    if (transport === undefined) res.writeHead(404).end("Cannot POST");
    else await transport.handlePostMessage(req, res);
  };
  const streamable = async (req, res) => {
    const { StreamableHTTPServerTransport } = await import(`${sdk}/server/streamableHttp.js`);
    let transport = sessions.get(req.headers["mcp-session-id"]);
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => void sessions.set(id, transport),
      });
      await build().connect(transport);
    }
    await transport.handleRequest(req, res);
  };
  createServer(kind === "sse" ? sse : streamable).listen(Number(port), "127.0.0.1");
}
