// An identity server on loopback: `node server.mjs OIDC_PROVIDER_MODULE PORT RESOURCE`. Anybody may
// log in, with any password.
const [module, port, resource] = process.argv.slice(2);
const { Provider } = await import(module);
const issuer = `http://127.0.0.1:${port}`;
const scopes = ["openid", "offline_access", "demo:read", "demo:write"];

const provider = new Provider(issuer, {
  scopes,
  clients: [
    {
      client_id: "machine",
      client_secret: "a secret that is only used in this test",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      token_endpoint_auth_method: "client_secret_basic",
      scope: "demo:read",
    },
  ],
  cookies: { keys: ["only used in this test"] },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (_ctx, client, code) =>
    client.grantTypeAllowed("refresh_token") && code.scopes.has("offline_access"),
  ttl: { AccessToken: 60, ClientCredentials: 60 },
  clientDefaults: { id_token_signed_response_alg: "RS256" },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx, wanted) => {
        if (wanted !== resource) throw new Error(`unknown resource ${wanted}`);
        return {
          scope: "demo:read demo:write",
          audience: resource,
          accessTokenFormat: "jwt",
          accessTokenTTL: 60,
        };
      },
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
