// @ts-check
// One configured server in the settings: its tools, its login, and what is wrong with it.
import { Fold, Icon, Say, html, several, useEffect, useId, useState, visible } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { BROKEN, Dot, STATES, stateOf } from "./server-state.js";
import { useJob } from "./setup-job.js";
import { ServerPlan } from "./settings-plan.js";
import { Check, Field, ServerForm } from "./settings-server-form.js";
import { attempt, servers } from "./store.js";

const OLDER = "2025-11-25";

/**
 * The settings of a server.
 * @param {{
 *   id: string, examine?: boolean,
 *   onDone: (server: string) => void, onBack: () => void,
 * }} props `examine`: look for what is wrong at once
 */
export function ServerSettings({ id, examine = false, onDone, onBack }) {
  const server = servers.value.find((one) => one.id === id);
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState("");
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [editing, setEditing] = useState(/** @type {string | null} */ (null));
  const [turn, setTurn] = useState(0);
  // Here and not in the parts: a part is made anew when another one appears above it.
  const login = useJob();
  const check = useJob();
  const begin = () => check.start("examineServer", { server: id });
  useEffect(() => {
    if (examine) begin();
  }, []);
  const state = server?.state;
  useEffect(() => {
    act("setupServer", { server: id }).then(
      (answer) => (setFound(answer), setWrong("")),
      (bad) => setWrong(bad.message),
    );
  }, [id, state, turn]);
  const change = async (name, body) => {
    try {
      setPlan({ ...(await act(name, { server: id, ...body })), removes: name === "planRemoval" });
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
    }
  };
  const done = (server) => {
    setPlan(null);
    setEditing(null);
    setTurn(turn + 1);
    onDone(server);
  };
  if (plan)
    return html`
      <${ServerPlan}
        plan=${plan}
        title=${html`
          ${plan.removes ? "Remove" : "Change"} <${Say} text=${id} />?
        `}
        label=${plan.removes ? "Remove" : "Save"}
        onDone=${done}
        onBack=${() => setPlan(null)}
      />
    `;
  if (editing !== null && found)
    return html`
      <${ServerForm}
        form=${found.form}
        was=${id}
        missing=${editing}
        onDone=${done}
        onBack=${() => setEditing(null)}
      />
    `;
  return html`
    <h3 class="server-state">
      ${server && html`<${Dot} state=${stateOf(server)} />`} <${Say} text=${id} />
      ${server && html`<span class="quiet">${STATES[stateOf(server)]}</span>`}
    </h3>
    ${
      server?.words &&
      html`
        <p class=${server.state === "up" ? "quiet" : "wrong"}>
          <${Say} text=${server.words} />
        </p>
      `
    }
    ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
    ${
      server &&
      html`
        <${Login} job=${login} server=${server} url=${found?.form.url ?? ""} />
        <${Examination}
          job=${check}
          server=${server}
          onStart=${begin}
          onCure=${change}
          onEdit=${(name) => setEditing(name)}
        />
      `
    }
    ${
      found &&
      html`
        <${ToolSwitches}
          key=${JSON.stringify([found.offersLater, found.tools])}
          found=${found}
          onSave=${(body) => change("planTools", body)}
        />
        <${Trust} form=${found.form} onChange=${(body) => change("planChange", body)} />
      `
    }
    <div class="buttons">
      ${found && html`<button type="button" onClick=${() => setEditing("")}>Edit</button>`}
      ${
        found &&
        html`
          <button type="button" class="deny" onClick=${() => change("planRemoval", {})}>
            Remove
          </button>
        `
      }
      <button type="button" class="quiet" onClick=${onBack}>All servers</button>
    </div>
  `;
}

/** Whether the server is trusted, and whether it runs in a sandbox. */
const Trust = ({ form, onChange }) => html`
  <div class="fields">
    <${Check}
      label="Trust what it says about its tools"
      hint="Tools that it marks as read-only then run without a question."
      checked=${form.trusted}
      onChange=${(value) => onChange({ change: "trusted", value })}
    />
    ${
      form.command &&
      html`
        <${Check}
          label="Run it in a sandbox"
          checked=${form.sandbox === true}
          onChange=${(value) => onChange({ change: "sandbox", value })}
        />
      `
    }
  </div>
`;

/**
 * Which tools are offered to the model.
 * @param {{found: any, onSave: (body: any) => void}} props
 */
function ToolSwitches({ found, onSave }) {
  const initial = () => new Set(found.tools.filter((tool) => tool.on).map((tool) => tool.name));
  const [on, setOn] = useState(/** @type {Set<string>} */ (initial()));
  const [later, setLater] = useState(found.offersLater);
  if (!found.switches || !found.tools.length) return null;
  const turn = (name) => {
    const now = new Set(on);
    if (!now.delete(name)) now.add(name);
    setOn(now);
  };
  const preset = (keep, offersLater) => () => {
    setOn(new Set(found.tools.filter(keep).map((tool) => tool.name)));
    setLater(offersLater);
  };
  const changed =
    later !== found.offersLater || found.tools.some((tool) => tool.on !== on.has(tool.name));
  const title = `Tools: ${on.size} of ${found.tools.length} on`;
  return html`
    <${Fold} title=${title} open=${true}>
      <div class="buttons">
        <button type="button" class="small" onClick=${preset(() => true, true)}>All tools</button>
        <button type="button" class="small" onClick=${preset((tool) => tool.readOnly, false)}>
          Read-only tools
        </button>
      </div>
      <ul class="switches" aria-label="Tools">
        ${found.tools.map(
          (tool) => html`
            <li key=${tool.name}>
              <label>
                <input
                  type="checkbox"
                  role="switch"
                  checked=${on.has(tool.name)}
                  onChange=${() => turn(tool.name)}
                />
                <span class="grow">
                  <${Say} text=${tool.title || tool.name} />${" "}
                  <code class="quiet">
                    <${Say} text=${tool.name} />
                  </code>
                </span>
                ${tool.readOnly && html`<span class="tag">read-only</span>`}
              </label>
            </li>
          `,
        )}
      </ul>
      <${Check}
        label="Offer tools that it adds later"
        checked=${later}
        onChange=${setLater}
      />
      ${
        changed &&
        html`
          <div class="buttons">
            <button
              type="button"
              class="main"
              onClick=${() => onSave({ on: [...on], offersLater: later })}
            >
              Save the tools
            </button>
          </div>
        `
      }
    </${Fold}>
  `;
}

const WAYS = [
  ["browser", "In this browser"],
  ["device", "With a code"],
  ["paste", "Paste the address"],
];

/**
 * The login to a server.
 * @param {{job: import("./setup-job.js").Job, server: any, url: string}} props
 */
function Login({ job, server, url }) {
  const [text, setText] = useState("");
  const [way, setWay] = useState("browser");
  const id = useId();
  const wanted = server.state === "login";
  const last = (kind) => job.events.findLast((event) => event.kind === kind);
  if (!/^https?:/i.test(url) || (!wanted && !job.events.length)) return null;
  const start = () => job.start("logIn", { server: server.id, way });
  const failed = last("failed")?.words || job.wrong;
  const ended = last("loggedIn") ? "You are logged in." : last("open") && "No login is needed.";
  return html`
    <section class="boxed login" aria-label="Log in">
      ${
        !job.running &&
        !last("loggedIn") &&
        html`
          <div class="buttons">
            <button type="button" class="main" onClick=${start}>
              <${Icon} name="lock" />
              Log in
            </button>
            <label for=${id} class="hidden-text">How you log in</label>
            <select id=${id} value=${way} onChange=${(event) => setWay(event.currentTarget.value)}>
              ${WAYS.map(([key, words]) => html`<option key=${key} value=${key}>${words}</option>`)}
            </select>
          </div>
        `
      }
      <${LoginSteps} job=${job} last=${last} text=${text} onText=${setText} />
      ${failed && html`<p class="wrong" role="alert"><${Say} text=${failed} /></p>`}
      ${ended && html`<p role="status"><${Icon} name="check" /> ${ended}</p>`}
    </section>
  `;
}

/** What the person has to do for a login. */
function LoginSteps({ job, last, text, onText }) {
  if (!job.running) return null;
  const visit = last("visit");
  const code = last("code");
  const paste = last("paste");
  const send = (event) => {
    event.preventDefault();
    if (text.trim()) job.reply(text.trim());
    onText("");
  };
  const doing =
    visit || code ? "Waiting for your login" : last("step")?.words || "Asking the server";
  const link = (url, words) => html`
    <a class="button main" href=${url} target="_blank" rel="noopener noreferrer">
      <${Icon} name="out" />
      ${words}
    </a>
  `;
  return html`
    <p role="status" class="quiet">
      <span class="dots" aria-hidden="true"></span> <${Say}
        text=${doing}
      />
    </p>
    ${visit && html`<div class="buttons">${link(visit.url, "Open the login page")}</div>`}
    ${
      visit &&
      html`
        <code class="block wrap small-line">
          <${Say} text=${visit.url} />
        </code>
      `
    }
    ${
      code &&
      html`
        <p>
          Enter the code <strong class="login-code">${visible(code.code)}</strong> at${" "}
          <code class="wrap">
            <${Say} text=${code.url} />
          </code>
        </p>
        <div class="buttons">${link(code.complete ?? code.url, "Open the page for the code")}</div>
      `
    }
    ${
      paste &&
      html`
        <form class="fields" onSubmit=${send}>
          <${Field}
            label="Address at the end of the login"
            hint=${`The last page cannot be opened. Its address begins with ${paste.starts}`}
            value=${text}
            onChange=${onText}
          />
          ${
            last("refused") &&
            html`<p class="wrong" role="alert">${visible(last("refused").words)}</p>`
          }
          <div class="buttons">
            <button type="submit" class="main">Finish the login</button>
          </div>
        </form>
      `
    }
    <div class="buttons">
      <button type="button" class="quiet" onClick=${job.cancel}>Cancel the login</button>
    </div>
  `;
}

const CURES = {
  revision: `Use the revision ${OLDER}`,
  unconfine: "Start it without the sandbox",
  edit: "Edit the server",
};

/**
 * What is wrong with a server, by the rules of the doctor.
 * @param {{
 *   job: import("./setup-job.js").Job, server: any, onStart: () => void,
 *   onCure: (name: string, body: any) => void, onEdit: (missing: string) => void,
 * }} props
 */
function Examination({ job, server, onStart, onCure, onEdit }) {
  const ask = server.state === "up" ? "Check the server" : "Find out what is wrong";
  const parts = job.events.filter((event) => event.kind === "part");
  const report = job.events.find((event) => event.kind === "report");
  const failed = job.wrong || job.events.find((event) => event.kind === "failed")?.words;
  const cure = (finding) => {
    if (finding.cure === "revision") onCure("planChange", { change: "revision", value: OLDER });
    else if (finding.cure === "unconfine")
      onCure("planChange", { change: "sandbox", value: false });
    else onEdit(finding.rule === "variable-missing" ? (finding.where ?? "") : "");
  };
  return html`
    <section class="examination" aria-label="What is wrong">
      <div class="buttons">
        <button
          type="button"
          class=${BROKEN.includes(server.state) && server.state !== "login" ? "main" : ""}
          disabled=${job.running}
          onClick=${onStart}
        >
          ${job.running ? "Examining …" : ask}
        </button>
        ${
          ["down", "off", "refused", "login"].includes(server.state) &&
          html`
            <button
              type="button"
              onClick=${() => attempt("server", { server: server.id, what: "start" })}
            >
              Start again
            </button>
          `
        }
      </div>
      ${failed && html`<p class="wrong" role="alert"><${Say} text=${failed} /></p>`}
      <ul class="findings" aria-label="Findings">
        ${parts.flatMap((part) =>
          part.findings.map(
            (finding, number) => html`
              <${Finding}
                key=${`${part.part} ${number}`}
                finding=${finding}
                onCure=${() => cure(finding)}
              />
            `,
          ),
        )}
      </ul>
      ${
        report &&
        html`
          <p role="status" class="quiet">
            ${
              report.errors
                ? several(report.errors, "error")
                : report.warnings
                  ? several(report.warnings, "warning")
                  : "Nothing is wrong."
            }
          </p>
        `
      }
    </section>
  `;
}

/** One finding, what to do, and a button where one click does it. */
const Finding = ({ finding, onCure }) => html`
  <li class=${`finding is-${finding.severity}`}>
    <${Icon} name=${finding.severity === "note" ? "bell" : "warn"} />
    <div class="grow">
      <p class="wrap"><${Say} text=${finding.words} /></p>
      ${
        finding.advice &&
        html`
          <p class="quiet wrap">
            <${Say} text=${finding.advice} />
          </p>
        `
      }
      ${
        CURES[/** @type {keyof typeof CURES} */ (finding.cure)] &&
        html`
          <button type="button" class="small" onClick=${onCure}>
            ${CURES[/** @type {keyof typeof CURES} */ (finding.cure)]}
          </button>
        `
      }
    </div>
  </li>
`;
