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
        road="guard",
        dcr=True,
        cimd=None,
        indicators=True,
        scope_claims=("scope", "permissions"),
        links=(
            "https://auth0.com/ai/docs/mcp/guides/resource-param-compatibility-profile",
            "https://auth0.com/docs/secure/tokens/access-tokens",
        ),
        remarks=(
            "Make an API whose identifier is the address of this server; without one its access "
            "tokens are opaque.",
            "Switch on the Resource Parameter Compatibility Profile, or `resource` is not "
            "understood.",
            "Clients register themselves only where the tenant allows it, and their connections "
            "must be those of the domain.",
            "Client id metadata documents are imported by an administrator; that any client may "
            "bring one is not documented.",
            "`permissions` are in the token where role-based access control of the API adds them.",
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
        road="proxy",
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
            "`tenant` is the directory's id: `common` and `organizations` let everybody in, and "
            "their tokens name another issuer each.",
            "`application` is the application (client) id of the API's registration, which is "
            "`aud` in tokens of version 2.",
            "Set `requestedAccessTokenVersion` to 2 in its manifest: tokens of version 1 name "
            "another issuer.",
            "It registers no clients by itself and refuses `resource` beside `scope`, so that MCP "
            "clients need the proxy.",
            "`scp` are what a person has delegated, `roles` what an application has been given.",
            "A personal identifier is `oid`, the same for all applications of the directory; "
            "`sub` is another for each.",
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
        road="proxy",
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
            f"{_OWN_AUDIENCE} It does where the client asked with `resource` for a resource "
            "server whose identifier is this address "
            "(managed login, tiers Essentials and Plus); other tokens have no `aud` at all and "
            "are refused.",
            "It registers no clients by itself, so that MCP clients need the proxy.",
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
        road="proxy",
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
            "Access tokens are opaque and for Google's own APIs: none is for a server of yours. "
            "Use the proxy.",
            "The verifier asks Google about each token and takes those of your own client id; it "
            "cannot tell two of your servers apart.",
            "Refresh tokens come only with `access_type=offline`, and each time only with "
            "`prompt=consent`; both are asked for.",
            "Anybody can have an account: give the proxy `admit`, and look at `hd` and "
            "`email_verified`.",
            "Refresh tokens of projects whose consent screen is in testing end after seven days.",
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
        road="proxy",
        kind="api",
        dcr=False,
        cimd=False,
        indicators=False,
        links=(
            "https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps",
            "https://docs.github.com/rest/apps/oauth-applications",
        ),
        remarks=(
            "Tokens are opaque and for GitHub's own API: none is for a server of yours. Use the "
            "proxy.",
            "The verifier asks GitHub about each token and takes those of your own app; it cannot "
            "tell two of your servers apart.",
            "Since April 2026 its authorization responses carry `iss`; its documentation does not "
            "say so: it is checked, not demanded.",
            "There is no ID token: people are found by the API. Scopes are asked for with blanks "
            "between them, and come back with commas.",
            "Tokens of OAuth apps do not end by themselves; whether one is still taken is asked "
            "when our own token is renewed.",
            "Anybody can have an account: give the proxy `admit`.",
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
        road="guard",
        dcr=True,
        cimd=True,
        indicators=False,
        links=("https://www.keycloak.org/securing-apps/mcp-authz-server",),
        remarks=(
            f"{_OWN_AUDIENCE} `resource` is not understood: give the scopes that clients ask for "
            "an audience mapper with this address.",
            "Clients register themselves within the policies for anonymous registration: allow "
            "the hosts, and the scopes with the mapper.",
            "Client id metadata documents are an experimental feature (26.6 on).",
            "Servers before version 17 have `/auth` in front of `/realms`: put it into `base`.",
            "Its authorization responses carry `iss`; that can be switched off for each client, "
            "so that it is checked but not demanded.",
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
        road="proxy",
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
            "`server` is a custom authorization server (API Access Management); tokens of the "
            "org's own are not to be verified by others.",
            "Set its audience to the address of this server: the default, `api://default`, is "
            "that of every API there. "
            "If that is what you want, pass it as `audience`.",
            "Registering a client takes an API token, so that MCP clients need the proxy.",
            "In access tokens `sub` is the log-in name and `uid` what stays; ID tokens have in "
            "`sub` what stays.",
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
        road="guard",
        dcr=True,
        cimd=True,
        indicators=True,
        scopes=("openid", "profile", "email", "offline_access"),
        links=(
            "https://workos.com/docs/authkit/mcp",
            "https://workos.com/docs/reference/workos-connect/metadata",
        ),
        remarks=(
            "Switch on client id metadata documents, and dynamic registration for older clients, "
            "under Connect, Configuration.",
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
        road="either",
        dcr=True,
        cimd=None,
        indicators=None,
        links=(
            "https://clerk.com/docs/oauth/how-clerk-implements-oauth",
            "https://clerk.com/changelog/2026-01-08-jwt-oauth-access-tokens",
        ),
        remarks=(
            "`domain` is that of the Frontend API.",
            "Access tokens are JWTs for applications made since January 2026; switch on Generate "
            "access tokens as JWTs for older ones.",
            "Switch on dynamic client registration in the settings of OAuth applications.",
            f"{_OWN_AUDIENCE} That it does is not documented: look at a token, and take the proxy "
            "where it does not.",
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
        road="either",
        dcr=True,
        cimd=None,
        indicators=False,
        links=(
            "https://supabase.com/docs/guides/auth/oauth-server/mcp-authentication",
            "https://supabase.com/docs/guides/auth/oauth-server/token-security",
        ),
        remarks=(
            "Switch on the OAuth 2.1 server and dynamic registration; the consent page is one of "
            "your own app.",
            "Use asymmetric signing keys: tokens that are signed with the project's shared secret "
            "cannot be verified.",
            f"{_OWN_AUDIENCE} By default that is `authenticated` in every token of the project: "
            "let a custom access token hook set it. "
            "`audience='authenticated'` takes every token of the project, those of its own app "
            "too.",
            "Scopes are those of OpenID Connect only.",
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
        road="guard",
        dcr=True,
        cimd=True,
        indicators=None,
        links=("https://docs.descope.com/agentic-identity-hub/mcp-servers/discovery-url",),
        remarks=(
            "`project` is the project's id, `server` that of the MCP server that is set up in the "
            "Agentic Identity Hub.",
            "`aud` is the client and the project; give the address of this server as `audience` "
            "where the tokens name it.",
            "One pair of keys signs for all MCP servers of a project: the issuer tells them apart.",
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
        road="guard",
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
            f"{_OWN_AUDIENCE} Its address there must be the one of this server; where tokens name "
            "the id instead, pass it as `audience`.",
        ),
    ),
)

PRESETS = {preset.name: preset for preset in _ROWS}
"""By name."""
