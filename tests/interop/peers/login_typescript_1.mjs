// A client made with the official TypeScript SDK v1 that logs in, and then needs more scopes.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { insist, provider, report, url } from "./login.mjs";

// With a refresh token this SDK refreshes where it should ask for more scopes.
const auth = provider("typescript-1");
let client, transport;

async function connect() {
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: auth });
  client = new Client({ name: "peer", version: "1.0.0" });
  await client.connect(transport);
}

const finish = (told) => transport.finishAuth(told.get("code"));
await insist(connect, finish, auth);
await report(
  () => client,
  (act) => insist(act, finish, auth),
  auth,
);
await client.close();
