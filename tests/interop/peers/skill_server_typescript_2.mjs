// The skills of a folder, served by the official TypeScript SDK v2 over stdio, or over HTTP at a
// port. Arguments: the folder, then perhaps the port.
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import { loadSkills } from "@modelcontextprotocol/server/ext/skills/node";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const [folder, port] = process.argv.slice(2);
const skills = await loadSkills(folder, { strict: true, pageSize: 1 });

function build() {
  const server = new McpServer({ name: "skills", version: "1.0.0" });
  skills.attach(server);
  return server;
}

if (port) createServer(toNodeHandler(createMcpHandler(build))).listen(Number(port), "127.0.0.1");
else serveStdio(build);
