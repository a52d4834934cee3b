// @ts-check
// Authorization: what a login to the server asks and gets, the stored login, log in and log out.
import { Copy, Icon, Say, cls, html, useState, visible, when } from "../../kit/kit.js";
import { Plain } from "../../kit/content.js";
import { safe } from "../../kit/markdown.js";
import { act } from "../../kit/net.js";
import { attempt, toast } from "../store.js";
import { Closed, Wrong, useAct } from "./common.js";

const WHO = {
  server: "the operator of the server",
  "authorization server": "the operator of the authorization server",
  client: "you, with options of the command",
  person: "you",
  network: "the operator of the network or proxy in between",
};
const ICONS = { ok: "check", info: "chevron", remark: "ask", wrong: "warn" };

/** One finding of the check. */
const Finding = ({ one }) => html`
  <li class=${cls("step", `is-${one.level}`)}>
    <${Icon} name=${ICONS[one.level]} />
    <span>
      <strong class="hidden-text">${one.level}: </strong>
      <${Say} text=${one.words} />
      ${
        one.document &&
        !one.words.includes(one.document) &&
        html`<span class="quiet block"><${Say} text=${one.document} /></span>`
      }
      ${
        ["remark", "wrong"].includes(one.level) &&
        html`
          ${
            one.expected &&
            html`<span class="quiet block">Expected: <${Say} text=${one.expected} /></span>`
          }
          ${
            one.culprit &&
            one.level === "wrong" &&
            html`<span class="quiet block">To repair by ${WHO[one.culprit]}.</span>`
          }
          ${one.advice && html`<span class="quiet block"><${Say} text=${one.advice} /></span>`}
        `
      }
    </span>
  </li>
`;

/** A request of the check, and its response. */
const Exchange = ({ one }) => html`
  <li class="boxed">
    <p class="small-line wrap">
      <code>${one.method} <${Say} text=${one.url} /></code>${" "}
      <span class="tag">${one.status ?? "no answer"}</span>
    </p>
    ${Object.entries(one.headers).map(
      ([name, value]) => html`
        <p key=${name} class="small-line wrap">
          <code class="quiet">${name}: <${Say} text=${value} /></code>
        </p>
      `,
    )}
    ${one.body && html`<${Closed} title="Body"><${Plain} text=${one.body} /></${Closed}>`}
  </li>
`;

/** What the check found, by part. */
function Report({ report }) {
  const parts = [...new Set(report.findings.map((one) => one.part))];
  return html`
    <p role="status" class=${report.wrong ? "wrong" : "quiet"}>
      ${report.wrong ? `${report.wrong} of the steps would fail.` : "Nothing prevents a login."}
    </p>
    ${parts.map(
      (part) => html`
        <section key=${part} aria-label=${visible(part)} class="rules">
          <h3><${Say} text=${part} /></h3>
          <ol class="steps">
            ${report.findings
              .filter((one) => one.part === part)
              .map((one, at) => html`<${Finding} key=${at} one=${one} />`)}
          </ol>
        </section>
      `,
    )}
    <${Closed} title=${`Requests and responses (${report.exchanges.length})`}>
      <ol class="steps">
        ${report.exchanges.map((one, at) => html`<${Exchange} key=${at} one=${one} />`)}
      </ol>
    </${Closed}>
  `;
}

/** The running login: its steps, and the address to visit. */
function Login({ login }) {
  const address = safe(login.address);
  return html`
    <ol class="steps">
      ${login.steps.map(
        (one, at) => html`
          <li key=${at} class="step">
            <${Icon} name="check" />
            <span>
              <${Say} text=${one.step} />: <${Say} text=${one.words} />
              ${
                one.document &&
                html`<span class="quiet block wrap"><${Say} text=${one.document} /></span>`
              }
            </span>
          </li>
        `,
      )}
    </ol>
    ${
      address &&
      html`
        <div class="question" role="group" aria-label="Log in at the authorization server">
          <p>The authorization server asks you to log in at this page:</p>
          <div class="address-box">
            <code class="wrap" aria-label="The whole address">${visible(login.address)}</code>
            <${Copy} text=${login.address} label="Copy address" />
          </div>
          <div class="buttons">
            <a class="button main" href=${address} target="_blank" rel="noopener noreferrer">
              Open the page
            </a>
          </div>
        </div>
      `
    }
    ${login.outcome && html`<p role="status"><${Say} text=${login.outcome} /></p>`}
  `;
}

/** @param {{connection: any}} props */
function Authorization({ connection }) {
  const name = connection.name;
  const login = connection.features.authorization;
  const stored = useAct("storedLogin", { connection: name }, `${name} ${login.outcome}`);
  const [report, setReport] = useState(/** @type {any} */ (null));
  const [checking, setChecking] = useState(false);
  const [words, setWords] = useState("");
  const check = async () => {
    setChecking(true);
    setWords("");
    try {
      setReport(await act("explainLogin", { connection: name }));
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
    setChecking(false);
  };
  const logOut = async () => {
    const done = await attempt("logOut", { connection: name });
    if (done) toast("info", done.words);
    stored.reload();
  };
  const kept = stored.value;
  return html`
    <div class="feature">
      <section aria-label="Login" class="rules">
        <h2>Login</h2>
        ${
          kept &&
          html`
            <dl class="table-list">
              <div>
                <dt>Authorization server</dt>
                <dd class="wrap"><${Say} text=${kept.issuer} /></dd>
              </div>
              <div><dt>Client</dt><dd class="wrap"><${Say} text=${kept.client} /></dd></div>
              <div>
                <dt>Scopes</dt>
                <dd class="wrap">
                  <${Say} text=${kept.scopes.join(" ") || "none in particular"} />
                </dd>
              </div>
              <div>
                <dt>Token</dt>
                <dd>
                  ${kept.expires ? `valid until ${when(kept.expires)}` : "without an end"}
                  ${kept.refreshable ? ", renewed automatically" : ""}
                  ${kept.bound ? ", bound to a key (DPoP)" : ""}
                </dd>
              </div>
            </dl>
          `
        }
        ${!kept && !stored.loading && html`<p class="quiet">No login is stored.</p>`}
        <${Wrong} words=${stored.words} />
        <div class="buttons">
          <button
            type="button"
            class="main"
            disabled=${login.running}
            onClick=${() => attempt("logIn", { connection: name })}
          >
            Log in
          </button>
          ${
            login.running &&
            html`
              <button type="button" onClick=${() => attempt("cancelLogin", { connection: name })}>
                Cancel the login
              </button>
            `
          }
          ${kept && html`<button type="button" onClick=${logOut}>Log out</button>`}
        </div>
        <${Login} login=${login} />
      </section>
      <section aria-label="Steps" class="rules">
        <h2>Steps of a login</h2>
        <p class="quiet">
          Each step is checked without logging in. Nothing is registered, requested or stored.
        </p>
        <div class="buttons">
          <button type="button" disabled=${checking} onClick=${check}>
            ${checking ? "Checking …" : "Check the steps"}
          </button>
        </div>
        <${Wrong} words=${words} />
        ${report && html`<${Report} report=${report} />`}
      </section>
    </div>
  `;
}

/** @type {import("./index.js").FeaturePanel} */
export const panel = {
  id: "authorization",
  title: "Authorization",
  available: (connection) => !!connection.features.authorization.offered,
  Panel: Authorization,
};
