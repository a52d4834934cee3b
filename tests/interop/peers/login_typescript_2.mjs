// A client made with the official TypeScript SDK v2 that logs in, and then needs more scopes.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { insist, provider, report, url } from "./login.mjs";

const auth = provider("typescript-2", "refresh_token");
let client, transport;

async function connect() {
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: auth });
  client = new Client({ name: "peer", version: "1.0.0" });
  await client.connect(transport);
}

const finish = (told) => transport.finishAuth(told);
await insist(connect, finish, auth);
await report(
  () => client,
  (act) => insist(act, finish, auth),
  auth,
);
await client.close();
