// The tools of the chaos test, served by the official TypeScript SDK: see `chaos_interlock.py`.
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import {
  McpServer,
  createMcpHandler,
  inputRequired,
  inputResponse,
} from "@modelcontextprotocol/server";
import { z } from "zod";

const [folder, given] = process.argv.slice(2);
const options = JSON.parse(given);
const said = (text) => ({ content: [{ type: "text", text }] });
const mark = (what) => appendFileSync(`${folder}/marks`, `${what}\n`);
const SURE = {
  type: "object",
  properties: { confirm: { type: "boolean" } },
  required: ["confirm"],
};

function build() {
  const server = new McpServer({ name: "chaos", version: "1.0.0" });
  const tool = (name, inputSchema, run) => server.registerTool(name, { inputSchema }, run);

  tool("add", z.object({ a: z.number().int(), b: z.number().int() }), async ({ a, b }) =>
    said(String(a + b)),
  );
  tool("length", z.object({ text: z.string() }), async ({ text }) => said(String(text.length)));
  tool(
    "act",
    z.object({ name: z.string(), padding: z.string().optional() }),
    async ({ name }, ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, "sure");
      if (answer.kind === "missing") {
        const sure = inputRequired.elicit({ message: "Sure?", requestedSchema: SURE });
        return inputRequired({ inputRequests: { sure } });
      }
      if (answer.action !== "accept" || !answer.content.confirm) return said("no");
      mark(`acts ${name}`);
      await sleep(10);
      return said(`did ${name}`);
    },
  );
  tool("count", z.object({ to: z.number().int() }), async ({ to }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= to; progress++) {
      await ctx.mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken, progress, total: to },
      });
      await sleep(50);
    }
    return said(`counted to ${to}`);
  });
  tool("wait", z.object({ name: z.string() }), async ({ name }, ctx) => {
    mark(`waits ${name}`);
    try {
      await sleep(60_000, undefined, { signal: ctx.mcpReq.signal });
    } catch (stopped) {
      mark(`stopped ${name}`);
      throw stopped;
    }
    return said("never cancelled");
  });
  return server;
}

const sessions = new Map();
const stateless = toNodeHandler(createMcpHandler(build, { legacy: "reject" }));
createServer(async (req, res) => {
  if (req.headers["mcp-protocol-version"] >= "2026") return stateless(req, res);
  let transport = sessions.get(req.headers["mcp-session-id"]);
  if (transport === undefined) {
    if (req.headers["mcp-session-id"] !== undefined) {
      return res.writeHead(404).end("Session not found");
    }
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await build().connect(transport);
  }
  await transport.handleRequest(req, res);
}).listen(options.port, "127.0.0.1");
