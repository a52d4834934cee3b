"""The table of presets, from what the providers publish.

What is not certain, or has to be set up there, is said in the remarks.
"""

from __future__ import annotations

from .preset import Preset

_OWN_AUDIENCE = "The access token must name this server in `aud`."

_ROWS = (
    Preset(
        name="auth0",
        title="Auth0",
        needs={"domain": "acme.eu.auth0.com"},
        issuer="https://{domain}/",
        jwks_uri="https://{domain}/.well-known/jwks.json",
        authorization_endpoint="https://{domain}/authorize",
        token_endpoint="https://{domain}/oauth/token",
        person_url="https://{domain}/userinfo",
        setup="guard",
        dcr=True,
        cimd=None,
        indicators=True,
        scope_claims=("scope", "permissions"),
        links=(
            "https://auth0.com/ai/docs/mcp/guides/resource-param-compatibility-profile",
            "https://auth0.com/docs/secure/tokens/access-tokens",
        ),
        remarks=(
            "Create an API whose identifier is the address of this server. Without one, "
            "access tokens are opaque.",
            "Turn on the Resource Parameter Compatibility Profile. Without it, "
            "`resource` is ignored.",
            "Dynamic client registration must be allowed in the tenant, and connections "
            "must be enabled for the domain.",
            "Client ID metadata documents are imported by an administrator. Its "
            "documentation does not say that any client can bring one.",
            "`permissions` are in the token if role-based access control of the API adds them.",
        ),
    ),
    Preset(
        name="entra",
        title="Microsoft Entra ID",
        needs={
            "tenant": "00000000-0000-0000-0000-000000000000",
            "application": "11111111-1111-1111-1111-111111111111",
        },
        issuer="https://login.microsoftonline.com/{tenant}/v2.0",
        jwks_uri="https://login.microsoftonline.com/{tenant}/discovery/v2.0/keys",
        authorization_endpoint="https://login.microsoftonline.com/{tenant}/oauth2/v2.0/authorize",
        token_endpoint="https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token",
        audience="{application}",
        setup="proxy",
        dcr=False,
        cimd=False,
        indicators=False,
        scope_claims=("scp", "roles"),
        client_claims=("azp", "appid"),
        subject_claims=("oid", "sub"),
        subject="oid",
        scopes=("openid", "profile", "email", "offline_access"),
        links=(
            "https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference",
            "https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc",
        ),
        remarks=(
            "`tenant` is the directory's id: `common` and `organizations` admit "
            "everybody, and their tokens name different issuers.",
            "`application` is the application (client) id of the API's registration, which is "
            "`aud` in tokens of version 2.",
            "Set `requestedAccessTokenVersion` to 2 in its manifest: tokens of version 1 name "
            "another issuer.",
            "It does not register clients dynamically and refuses `resource` together "
            "with `scope`, so MCP clients need the proxy.",
            "`scp` holds what a user has delegated, `roles` what an application has been granted.",
            "`oid` identifies the user in all applications of the directory; `sub` "
            "differs for each application.",
        ),
    ),
    Preset(
        name="cognito",
        title="Amazon Cognito",
        needs={
            "region": "eu-central-1",
            "pool": "eu-central-1_AbCdEfGhI",
            "domain": "acme.auth.eu-central-1.amazoncognito.com",
        },
        issuer="https://cognito-idp.{region}.amazonaws.com/{pool}",
        jwks_uri="https://cognito-idp.{region}.amazonaws.com/{pool}/.well-known/jwks.json",
        authorization_endpoint="https://{domain}/oauth2/authorize",
        token_endpoint="https://{domain}/oauth2/token",
        person_url="https://{domain}/oauth2/userInfo",
        names=("name", "cognito:username", "email"),
        setup="proxy",
        dcr=False,
        cimd=False,
        indicators=True,
        required={"token_use": "access"},
        method="client_secret_basic",
        links=(
            "https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html",
            "https://docs.aws.amazon.com/cognito/latest/developerguide/cognito-user-pools-define-resource-servers.html",
        ),
        remarks=(
            "`pool` is the id of the user pool, `domain` that of its managed login.",
            f"{_OWN_AUDIENCE} It does if the client requested, with `resource`, a "
            "resource server whose identifier is this address (managed login, tiers "
            "Essentials and Plus). Other tokens have no `aud` and are refused.",
            "It does not register clients dynamically, so MCP clients need the proxy.",
            "Custom scopes are written `identifier-of-the-resource-server/scope`.",
        ),
    ),
    Preset(
        name="google",
        title="Google",
        issuer="https://accounts.google.com",
        also=("accounts.google.com",),
        jwks_uri="https://www.googleapis.com/oauth2/v3/certs",
        authorization_endpoint="https://accounts.google.com/o/oauth2/v2/auth",
        token_endpoint="https://oauth2.googleapis.com/token",
        person_url="https://openidconnect.googleapis.com/v1/userinfo",
        setup="proxy",
        kind="api",
        dcr=False,
        cimd=False,
        indicators=False,
        extra={"access_type": "offline", "prompt": "consent"},
        names=("name", "email"),
        links=(
            "https://developers.google.com/identity/protocols/oauth2/web-server",
            "https://developers.google.com/identity/openid-connect/reference",
        ),
        remarks=(
            "Access tokens are opaque and only for Google's own APIs, never for your "
            "server. Use the proxy.",
            "The verifier asks Google about each token and accepts those of your client "
            "id. It cannot distinguish two of your servers.",
            "Google issues refresh tokens only with `access_type=offline`, and reissues "
            "them only with `prompt=consent`. The proxy requests both.",
            "Anybody can have an account: pass `admit` to the proxy, and check `hd` and "
            "`email_verified`.",
            "Refresh tokens of projects whose consent screen is in testing expire after "
            "seven days.",
        ),
    ),
    Preset(
        name="github",
        title="GitHub",
        issuer="https://github.com/login/oauth",
        authorization_endpoint="https://github.com/login/oauth/authorize",
        token_endpoint="https://github.com/login/oauth/access_token",
        person="api",
        person_url="https://api.github.com/user",
        subject="id",
        names=("name", "login"),
        scopes=("read:user",),
        headers=(("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")),
        setup="proxy",
        kind="api",
        dcr=False,
        cimd=False,
        indicators=False,
        links=(
            "https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps",
            "https://docs.github.com/rest/apps/oauth-applications",
        ),
        remarks=(
            "Tokens are opaque and only for GitHub's own API, never for your server. Use "
            "the proxy.",
            "The verifier asks GitHub about each token and accepts those of your own "
            "app. It cannot distinguish two of your servers.",
            "Since April 2026 its authorization responses carry `iss`, which its "
            "documentation does not mention. So `iss` is checked, but not required.",
            "There is no ID token: the API identifies users. Scopes are requested with "
            "spaces between them, and come back with commas.",
            "Tokens of OAuth apps do not expire. The proxy checks whether one is still "
            "valid when it renews its own token.",
            "Anybody can have an account: pass `admit` to the proxy.",
        ),
    ),
    Preset(
        name="keycloak",
        title="Keycloak",
        needs={"base": "https://id.example.com", "realm": "acme"},
        issuer="{base}/realms/{realm}",
        jwks_uri="{base}/realms/{realm}/protocol/openid-connect/certs",
        authorization_endpoint="{base}/realms/{realm}/protocol/openid-connect/auth",
        token_endpoint="{base}/realms/{realm}/protocol/openid-connect/token",
        introspection="{base}/realms/{realm}/protocol/openid-connect/token/introspect",
        person_url="{base}/realms/{realm}/protocol/openid-connect/userinfo",
        setup="guard",
        dcr=True,
        cimd=True,
        indicators=False,
        links=("https://www.keycloak.org/securing-apps/mcp-authz-server",),
        remarks=(
            f"{_OWN_AUDIENCE} `resource` is ignored: add an audience mapper with this "
            "address to the scopes that clients request.",
            "Dynamic registration follows the policies for anonymous registration: allow "
            "the hosts, and the scopes with the mapper.",
            "Client id metadata documents are an experimental feature (26.6 on).",
            "Before version 17, `/auth` precedes `/realms`: include it in `base`.",
            "Its authorization responses carry `iss`. That can be turned off for each "
            "client, so `iss` is checked, but not required.",
        ),
    ),
    Preset(
        name="okta",
        title="Okta",
        needs={"domain": "acme.okta.com", "server": "default"},
        issuer="https://{domain}/oauth2/{server}",
        jwks_uri="https://{domain}/oauth2/{server}/v1/keys",
        authorization_endpoint="https://{domain}/oauth2/{server}/v1/authorize",
        token_endpoint="https://{domain}/oauth2/{server}/v1/token",
        introspection="https://{domain}/oauth2/{server}/v1/introspect",
        person_url="https://{domain}/oauth2/{server}/v1/userinfo",
        setup="proxy",
        dcr=False,
        cimd=None,
        indicators=None,
        scope_claims=("scp",),
        client_claims=("cid",),
        subject_claims=("uid", "sub"),
        scopes=("openid", "profile", "email", "offline_access"),
        method="client_secret_basic",
        links=(
            "https://developer.okta.com/docs/guides/customize-authz-server/main/",
            "https://developer.okta.com/docs/reference/api/oidc/",
        ),
        remarks=(
            "`server` is a custom authorization server (API Access Management); others "
            "cannot verify tokens of the org authorization server.",
            "Set its audience to the address of this server: the default, "
            "`api://default`, is shared by every API of the server. If you want that, "
            "pass it as `audience`.",
            "Registering a client requires an API token, so MCP clients need the proxy.",
            "In access tokens `sub` is the login name and `uid` the permanent id. In ID "
            "tokens `sub` is the permanent id.",
        ),
    ),
    Preset(
        name="workos",
        title="WorkOS AuthKit",
        needs={"domain": "acme-12.authkit.app"},
        issuer="https://{domain}",
        jwks_uri="https://{domain}/oauth2/jwks",
        authorization_endpoint="https://{domain}/oauth2/authorize",
        token_endpoint="https://{domain}/oauth2/token",
        introspection="https://{domain}/oauth2/introspection",
        person_url="https://{domain}/oauth2/userinfo",
        setup="guard",
        dcr=True,
        cimd=True,
        indicators=True,
        scopes=("openid", "profile", "email", "offline_access"),
        links=(
            "https://workos.com/docs/authkit/mcp",
            "https://workos.com/docs/reference/workos-connect/metadata",
        ),
        remarks=(
            "Turn on client ID metadata documents, and dynamic registration for older "
            "clients, under Connect, Configuration.",
            f"{_OWN_AUDIENCE} Enter its address as a resource indicator there; without `resource` "
            "the tokens are for the environment.",
        ),
    ),
    Preset(
        name="clerk",
        title="Clerk",
        needs={"domain": "verb-noun-00.clerk.accounts.dev"},
        issuer="https://{domain}",
        jwks_uri="https://{domain}/.well-known/jwks.json",
        authorization_endpoint="https://{domain}/oauth/authorize",
        token_endpoint="https://{domain}/oauth/token",
        introspection="https://{domain}/oauth/token_info",
        person_url="https://{domain}/oauth/userinfo",
        setup="either",
        dcr=True,
        cimd=None,
        indicators=None,
        links=(
            "https://clerk.com/docs/oauth/how-clerk-implements-oauth",
            "https://clerk.com/changelog/2026-01-08-jwt-oauth-access-tokens",
        ),
        remarks=(
            "`domain` is that of the Frontend API.",
            "Access tokens are JWTs for applications created since January 2026. For "
            'older ones, turn on "Generate access tokens as JWTs".',
            "Turn on dynamic client registration in the settings of OAuth applications.",
            f"{_OWN_AUDIENCE} Its documentation does not say that it does: inspect a "
            "token, and use the proxy if it does not.",
        ),
    ),
    Preset(
        name="supabase",
        title="Supabase",
        needs={"project": "abcdefghijklmnopqrst"},
        issuer="https://{project}.supabase.co/auth/v1",
        jwks_uri="https://{project}.supabase.co/auth/v1/.well-known/jwks.json",
        authorization_endpoint="https://{project}.supabase.co/auth/v1/oauth/authorize",
        token_endpoint="https://{project}.supabase.co/auth/v1/oauth/token",
        person_url="https://{project}.supabase.co/auth/v1/oauth/userinfo",
        setup="either",
        dcr=True,
        cimd=None,
        indicators=False,
        links=(
            "https://supabase.com/docs/guides/auth/oauth-server/mcp-authentication",
            "https://supabase.com/docs/guides/auth/oauth-server/token-security",
        ),
        remarks=(
            "Turn on the OAuth 2.1 server and dynamic registration. Your own app "
            "provides the consent page.",
            "Use asymmetric signing keys: tokens that are signed with the project's shared secret "
            "cannot be verified.",
            f"{_OWN_AUDIENCE} The default is `authenticated` in every token of the "
            "project: set it in a custom access token hook. `audience='authenticated'` "
            "accepts every token of the project, including those of its own app.",
            "The only scopes are those of OpenID Connect.",
        ),
    ),
    Preset(
        name="descope",
        title="Descope",
        needs={
            "project": "P2abcdefghijklmnopqrstuvwxyz",
            "server": "MS2abcdefghijklmnopqrstuvwxyz",
        },
        issuer="https://api.descope.com/v1/apps/agentic/{project}/{server}",
        jwks_uri="https://api.descope.com/{project}/.well-known/jwks.json",
        authorization_endpoint="https://api.descope.com/oauth2/v1/apps/agentic/{project}/{server}/authorize",
        token_endpoint="https://api.descope.com/oauth2/v1/apps/agentic/{project}/{server}/token",
        person_url="https://api.descope.com/oauth2/v1/apps/{project}/userinfo",
        audience="{project}",
        setup="guard",
        dcr=True,
        cimd=True,
        indicators=None,
        links=("https://docs.descope.com/agentic-identity-hub/mcp-servers/discovery-url",),
        remarks=(
            "`project` is the project's id, `server` that of the MCP server that is set up in the "
            "Agentic Identity Hub.",
            "`aud` is the client and the project; pass the address of this server as "
            "`audience` if the tokens name it.",
            "One key pair signs for all MCP servers of a project: the issuer distinguishes them.",
        ),
    ),
    Preset(
        name="scalekit",
        title="Scalekit",
        needs={"domain": "acme.scalekit.com", "resource": "res_12345678901234567"},
        issuer="https://{domain}",
        server="https://{domain}/resources/{resource}",
        jwks_uri="https://{domain}/keys",
        authorization_endpoint="https://{domain}/oauth/authorize",
        token_endpoint="https://{domain}/oauth/token",
        person_url="https://{domain}/userinfo",
        setup="guard",
        dcr=True,
        cimd=True,
        indicators=True,
        scopes=("openid", "profile", "email", "offline_access"),
        links=(
            "https://docs.scalekit.com/guides/mcp/oauth",
            "https://docs.scalekit.com/mcp/overview/",
        ),
        remarks=(
            "`domain` is that of the environment, `resource` the id of the MCP server in the "
            "dashboard.",
            f"{_OWN_AUDIENCE} Its address there must be the one of this server; if tokens "
            "name the id instead, pass it as `audience`.",
        ),
    ),
)

PRESETS = {preset.name: preset for preset in _ROWS}
"""By name."""
