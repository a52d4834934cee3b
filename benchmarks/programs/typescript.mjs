// The official TypeScript SDK as a peer: its roles are those of `Peer` in `roster.py`.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const pair = z.object({ a: z.number().int(), b: z.number().int() });
const whole = z.object({ result: z.number().int() });
const records = z.object({
  records: z.array(
    z.object({
      id: z.number().int(),
      name: z.string(),
      email: z.string(),
      score: z.number(),
      active: z.boolean(),
      tags: z.array(z.string()),
    }),
  ),
});

const row = z.object({
  number: z.number().int(),
  name: z.string(),
  email: z.string(),
  score: z.number(),
  active: z.boolean(),
  city: z.string(),
});
const kept = [];
const table = () => {
  if (kept.length === 0) kept.push(...Array.from({ length: 55_000 }, (_, id) => madeRow(id)));
  return kept;
};
const madeRow = (id) => ({
  number: id,
  name: `Person Number ${id}`,
  email: `person.${id}@example.org`,
  score: id * 1.25,
  active: id % 2 === 0,
  city: "Amsterdam",
});

const said = (text) => ({ content: [{ type: "text", text }] });
const answer = (result) => ({
  content: [{ type: "text", text: String(result) }],
  structuredContent: { result },
});

function build(catalogue) {
  const server = new McpServer({ name: "bench", version: "1.0.0" });
  const tool = (name, description, inputSchema, outputSchema, run) =>
    server.registerTool(name, { description, inputSchema, outputSchema }, run);

  tool("aadd", "Add two integers, as a coroutine.", pair, whole, async ({ a, b }) => answer(a + b));
  tool("add", "Add two integers, as a plain function.", pair, whole, ({ a, b }) => answer(a + b));
  tool(
    "text",
    "Return a text of the given number of characters.",
    z.object({ size: z.number().int() }),
    undefined,
    async ({ size }) => said("x".repeat(size)),
  );
  tool(
    "length",
    "Return the number of characters of a text.",
    z.object({ text: z.string() }),
    whole,
    async ({ text }) => answer(text.length),
  );
  tool(
    "echo",
    "Return the words that were given.",
    z.object({ words: z.string() }),
    undefined,
    async ({ words }) => said(words),
  );
  if (catalogue === "models") {
    tool(
      "record",
      "Add up the identifiers of the active records.",
      records,
      whole,
      async ({ records }) =>
        answer(records.reduce((sum, row) => (row.active ? sum + row.id : sum), 0)),
    );
  } else if (catalogue === "rows") {
    const wrapped = z.object({ result: z.array(row) });
    tool(
      "rows",
      "Return the first rows of a table.",
      z.object({ count: z.number().int() }),
      wrapped,
      async ({ count }) => {
        const result = table().slice(0, count);
        return {
          content: [{ type: "text", text: JSON.stringify(result) }],
          structuredContent: { result },
        };
      },
    );
  } else {
    tool(
      "flip",
      "Return the opposite.",
      z.object({ value: z.boolean() }),
      z.object({ result: z.boolean() }),
      async ({ value }) => answer(!value),
    );
  }
  const numbered = { many: 994, "very-many": 9994 }[catalogue] ?? 0;
  for (let number = 0; number < numbered; number++) {
    const name = `tool_${String(number).padStart(4, "0")}`;
    tool(name, `Multiply two integers and add ${number}.`, pair, whole, async ({ a, b }) =>
      answer(a * b + number),
    );
  }
  return server;
}

// The stateless era through the handler that the SDK's documentation puts first, sessions through
// its session transport, which that handler leaves to the application; both behind the guards that
// it names for plain node:http.
async function serveWeb(revision, catalogue, port, mode) {
  const {
    localhostHostValidation,
    localhostOriginValidation,
    NodeStreamableHTTPServerTransport,
    toNodeHandler,
  } = await import("@modelcontextprotocol/node");
  const validHost = localhostHostValidation();
  const validOrigin = localhostOriginValidation();
  const sessions = new Map();
  const session = async (req, res) => {
    let transport = sessions.get(req.headers["mcp-session-id"]);
    if (transport === undefined) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        enableJsonResponse: mode === "json",
        onsessioninitialized: (id) => void sessions.set(id, transport),
      });
      await build(catalogue).connect(transport);
    }
    await transport.handleRequest(req, res);
  };
  const responseMode = { usual: "auto", events: "sse", json: "json" }[mode];
  const handle =
    revision >= "2026"
      ? toNodeHandler(createMcpHandler(() => build(catalogue), { responseMode }))
      : session;
  createServer((req, res) => {
    if (validHost(req, res) && validOrigin(req, res)) handle(req, res);
  }).listen(Number(port), "127.0.0.1");
}

async function batch(client, inFlight, seconds) {
  const end = performance.now() + seconds * 1000;
  const worker = async () => {
    let made = 0;
    while (performance.now() < end) {
      const result = await client.callTool({ name: "aadd", arguments: { a: 1, b: 2 } });
      if (result.structuredContent.result !== 3) throw new Error("the answer to 1 + 2 was not 3");
      made += 1;
    }
    return made;
  };
  const counts = await Promise.all(Array.from({ length: inFlight }, worker));
  return counts.reduce((sum, made) => sum + made, 0);
}

async function callFrom(transport, revision) {
  const { Client } = await import("@modelcontextprotocol/client");
  const mode = revision >= "2026" ? { pin: revision } : "legacy";
  const client = new Client({ name: "bench", version: "1.0.0" }, { versionNegotiation: { mode } });
  await client.connect(transport);
  // The schemas that results are checked against, as the Python clients fetch them on their own.
  await client.listTools();
  console.log("ready");
  for await (const order of createInterface({ input: process.stdin })) {
    const [inFlight, seconds] = order.split(" ").map(Number);
    console.log(await batch(client, inFlight, seconds));
  }
  await client.close();
}

const [role, first, ...words] = process.argv.slice(2);
if (role === "server") {
  serveStdio(() => build(first));
} else if (role === "web") {
  await serveWeb(first, ...words);
} else if (role === "web-client") {
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  await callFrom(new StreamableHTTPClientTransport(new URL(words[0])), first);
} else if (role === "client") {
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  await callFrom(new StdioClientTransport({ command: words[0], args: words.slice(1) }), first);
} else {
  const { InMemoryTransport } = await import("@modelcontextprotocol/client");
  const [near, far] = InMemoryTransport.createLinkedPair();
  serveStdio(() => build("plain"), { transport: far });
  await callFrom(near, first);
}
