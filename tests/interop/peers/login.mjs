// What the log-ins of both TypeScript SDKs share: what is kept in memory, and a person for a
// browser.
import { execFileSync } from "node:child_process";

export const [url, python, person] = process.argv.slice(2);
const redirectUrl = "http://127.0.0.1:39998/callback";

export function provider(name, ...grants) {
  const kept = { visits: 0 };
  return {
    kept,
    redirectUrl,
    clientMetadata: {
      client_name: name,
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", ...grants],
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => {
      kept.client = client;
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => {
      kept.tokens = tokens;
    },
    saveCodeVerifier: (verifier) => {
      kept.verifier = verifier;
    },
    codeVerifier: () => kept.verifier,
    discoveryState: () => kept.discovery,
    saveDiscoveryState: (state) => {
      kept.discovery = state;
    },
    redirectToAuthorization: (to) => {
      kept.visits += 1;
      kept.told = new URL(
        execFileSync(python, [person, to.href], { encoding: "utf8" }).trim(),
      ).searchParams;
    },
  };
}

// Do it; where the SDK says that somebody has to log in, finish that and do it again.
export async function insist(act, finish, { kept }) {
  for (;;) {
    const before = kept.visits;
    try {
      return await act();
    } catch (bad) {
      if (kept.visits === before) throw bad;
      await finish(kept.told);
    }
  }
}

export async function report(client, again, { kept }) {
  const tools = (await again(() => client().listTools())).tools.map((tool) => tool.name);
  const who = (await again(() => client().callTool({ name: "who", arguments: {} }))).content[0]
    .text;
  const ordered = (
    await again(() => client().callTool({ name: "order", arguments: { what: "tea" } }))
  ).content[0].text;
  console.log(
    JSON.stringify({
      visits: kept.visits,
      tools,
      who,
      ordered,
      refresh: Boolean(kept.tokens.refresh_token),
    }),
  );
}
