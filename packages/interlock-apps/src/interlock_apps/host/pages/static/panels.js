// @ts-check
// The panels beside the conversation: servers, folders, rules.
import {
  Dialog,
  Fold,
  From,
  Icon,
  Say,
  Warnings,
  cls,
  html,
  several,
  useEffect,
  useId,
  useRef,
  useState,
  visible,
} from "../kit/kit.js";
import { Annotations } from "./asked-calls.js";
import { Conversations } from "./conversation-list.js";
import { ArgumentsEditor } from "../kit/fields.js";
import { act, reachable } from "../kit/net.js";
import { BROKEN, Dot, STATES, stateOf } from "./server-state.js";
import { sections } from "./settings.js";
import {
  attempt,
  current,
  isLive,
  log,
  open,
  overlay,
  panel,
  roots,
  rules,
  servers,
  settings,
  settingsPlace,
  setup,
} from "./store.js";

/**
 * Order by attention: blocked features first, then those with warnings, then the rest as listed.
 * @param {any[]} offers
 */
function byAttention(offers) {
  const rank = (one) => (one.blocked ? 0 : one.warnings?.length ? 1 : 2);
  return [...offers].sort((one, other) => rank(one) - rank(other));
}

/** How many features are blocked or have warnings, as tags. @param {{offers: any[]}} props */
function Marks({ offers }) {
  const blocked = offers.filter((one) => one.blocked).length;
  const warned = offers.filter((one) => one.warnings?.length).length;
  return html`
    ${
      blocked > 0 &&
      html`
        ${" "}
        <span class="tag care">
          <${Icon} name="lock" />
          ${blocked} blocked
        </span>
      `
    }
    ${
      warned > 0 &&
      html`
        ${" "}
        <span class="tag care">
          <${Icon} name="warn" />
          ${warned} flagged
        </span>
      `
    }
  `;
}

/** A server: its state, what it offers, its log. @param {{id: string}} props */
export function ServerPanel({ id }) {
  const server = servers.value.find((one) => one.id === id);
  if (!server)
    return html`
      <p class="quiet">
        The server <${Say} text=${id} /> is no longer configured.
      </p>
    `;
  const tools = server.tools ?? [];
  const prompts = server.prompts ?? [];
  const heading = html`
    ${several(tools.length, "tool")}
    <${Marks} offers=${tools} />
  `;
  const promptsHeading = html`
    ${several(prompts.length, "prompt")}
    <${Marks} offers=${prompts} />
  `;
  return html`
    <${ServerState} server=${server} />
    <${Fold} title="Command">
      <pre class="command wrap" tabindex="0">
        ${visible(server.command)}
      </pre>
    </${Fold}>
    ${
      server.instructions &&
      html`
        <${Fold} title="What it tells the model">
          <p class="wrap">
            <${Say} text=${server.instructions} />
          </p>
        </${Fold}>
      `
    }
    <${Fold} title=${heading} open=${true}>
      <ul class="offers">
        ${byAttention(tools).map(
          (tool) => html`
            <${ToolRow} key=${tool.name} server=${server} tool=${tool} />
          `,
        )}
      </ul>
    </${Fold}>
    ${
      prompts.length > 0 &&
      html`
        <${Fold}
          title=${promptsHeading}
          open=${prompts.some((one) => one.blocked || one.warnings?.length)}
        >
          <ul class="offers">
            ${byAttention(prompts).map(
              (prompt) => html`
                <${PromptRow} key=${prompt.name} server=${id} prompt=${prompt} />
              `,
            )}
          </ul>
        </${Fold}>
      `
    }
    <${ServerResources} server=${server} />
    <${ServerLog} id=${id} />
  `;
}

/** The state of a server, and what can be done about it. */
function ServerState({ server }) {
  const on = !["off", "refused", "login"].includes(server.state);
  const state = stateOf(server);
  const does = (what) => () => attempt("server", { server: server.id, what });
  return html`
    <div class="panel-part">
      <p class="server-state">
        <${Dot} state=${state} /> <strong>${STATES[state] ?? state}</strong>
        ${
          server.revision &&
          html`
            ${" "}
            <span class="tag">${server.revision}</span>
          `
        }
        ${
          server.trusted &&
          html`
            ${" "}
            <span class="tag">trusted</span>
          `
        }
      </p>
      ${
        server.title &&
        server.title !== server.id &&
        html`
          <p>
            It calls itself “<${Say} text=${server.title} />
            ”.
          </p>
        `
      }
      ${
        server.words &&
        html`
          <p class=${server.state === "up" ? "quiet" : "wrong"}>
            <${Say} text=${server.words} />
          </p>
        `
      }
      <div class="buttons">
        <${Repair} server=${server} />
        ${
          on
            ? html`
              <button type="button" disabled=${!reachable.value} onClick=${does("restart")}>
                Restart
              </button>
              <button type="button" disabled=${!reachable.value} onClick=${does("stop")}>
                Stop
              </button>
            `
            : html`
              <button
                type="button"
                class="main"
                disabled=${!reachable.value}
                onClick=${does("start")}
              >
                Start
              </button>
            `
        }
      </div>
    </div>
  `;
}

/** Buttons that lead to the settings of a server: to what is wrong with it, or to its login. */
function Repair({ server }) {
  if (!setup.value) return null;
  const show = (examine) => () => {
    settingsPlace.value = { name: "server", id: server.id, examine };
    settings.value = "servers";
  };
  if (server.state === "login")
    return html`<button type="button" class="main" onClick=${show(false)}>Log in</button>`;
  if (BROKEN.includes(server.state))
    return html`<button type="button" onClick=${show(true)}>Find out what is wrong</button>`;
  return html`<button type="button" onClick=${show(false)}>Settings</button>`;
}

/** Why a feature is blocked, and its warnings. */
const Doubts = ({ offer }) => html`
  ${
    offer.blocked &&
    html`
      <p class="wrong">
        <${Icon} name="lock" /> <${Say} text=${offer.blocked} />
      </p>
    `
  }
  <${Warnings} warnings=${offer.warnings} />
`;

/** A tool: its annotations, and a button to call it by hand. */
function ToolRow({ server, tool }) {
  const title = tool.title || tool.tool;
  const call = () => {
    overlay.value = { name: "call", server: server.id, tool: tool.tool };
  };
  return html`
    <li>
      <div class="offer-head">
        <span>
          <strong>
            <${Say} text=${title} />
          </strong>${" "}
          <code class="quiet">
            <${Say} text=${tool.tool} />
          </code>
        </span>
        ${
          !tool.blocked &&
          server.state === "up" &&
          html`
            <button
              type="button"
              class="small quiet"
              aria-label=${`Call ${visible(title)}`}
              onClick=${call}
            >
              Call
            </button>
          `
        }
      </div>
      <${Doubts} offer=${tool} />
      ${
        tool.description &&
        html`
          <p class="quiet clamp wrap">
            <${Say} text=${tool.description} />
          </p>
        `
      }
      <${Annotations} annotations=${tool.annotations} trusted=${server.trusted} />
    </li>
  `;
}

/** A prompt, and a button to use it. */
function PromptRow({ server, prompt }) {
  const use = () => {
    overlay.value = { name: "prompts", server, prompt: prompt.name };
  };
  return html`
    <li>
      <div class="offer-head">
        <strong>
          <${Say} text=${prompt.title || prompt.name} />
        </strong>
        ${
          !prompt.blocked &&
          html`
            <button type="button" class="small quiet" onClick=${use}>
              Use
            </button>
          `
        }
      </div>
      <${Doubts} offer=${prompt} />
      <${Say} class="quiet block" text=${prompt.description ?? ""} />
    </li>
  `;
}

const MOST_RESOURCES = 200;

/** Its resources and templates. */
function ServerResources({ server }) {
  const resources = server.resources ?? [];
  const templates = server.templates ?? [];
  if (!resources.length && !templates.length) return null;
  const look = (uri) => () => {
    overlay.value = { name: "resources", server: server.id, uri };
  };
  const counts = [several(resources.length, "resource"), several(templates.length, "template")];
  return html`
    <${Fold} title=${counts.join(", ")}>
      <ul class="offers">
        ${resources.slice(0, MOST_RESOURCES).map(
          (one) => html`
            <li key=${one.uri}>
              <div class="offer-head">
                <span>
                  <${Say} text=${one.title || one.name} />${" "}
                  <code class="uri">
                    <${Say} text=${one.uri} />
                  </code>
                </span>
                <button type="button" class="small quiet" onClick=${look(one.uri)}>
                  View
                </button>
              </div>
            </li>
          `,
        )}
        ${templates.map(
          (one) => html`
            <li key=${one.uriTemplate}>
              <${Say} text=${one.title || one.name} />${" "}
              <code class="uri">
                <${Say} text=${one.uriTemplate} />
              </code>
            </li>
          `,
        )}
      </ul>
    </${Fold}>
  `;
}

/** Pixels from the end within which the log scrolls with new lines. */
const NEAR = 24;

/** The log of a server. */
function ServerLog({ id }) {
  const lines = log(id);
  const [words, setWords] = useState("");
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => {
    act("serverLog", { server: id }).then(
      (answer) => {
        // Lines that came over the stream have a time.
        const known = lines.value.filter((line) => line.at);
        lines.value = [
          ...answer.lines.slice(0, known.length ? answer.lines.length - known.length : undefined),
          ...known,
        ].slice(-1000);
      },
      (bad) => setWords(bad.message),
    );
  }, [id]);
  const stuck = useRef(true); // whether the end is in view
  useEffect(() => {
    if (stuck.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines.value]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    stuck.current = scrollHeight - scrollTop - clientHeight < NEAR;
  };
  return html`
    <${Fold} title="Log" open=${true}>
      ${words && html`<p class="wrong"><${Say} text=${words} /></p>`}
      <div
        ref=${box}
        class="server-log"
        onScroll=${scrolled}
        tabindex="0"
        role="group"
        aria-label=${`Log of ${visible(id)}`}
      >
        ${lines.value.map(
          (line, at) => html`
            <p key=${at} class=${`level-${line.level}`}>
              <span class="level">
                <${Say} text=${line.level} />
              </span>${" "}
              <span class="wrap">
                ${
                  line.logger &&
                  html`
                    <${Say} class="quiet" text=${line.logger} />${" "}
                  `
                }
                <${Say} text=${line.text} />
              </span>
            </p>
          `,
        )}
        ${!lines.value.length && html`<p class="quiet">Nothing is logged yet.</p>`}
      </div>
    </${Fold}>
  `;
}

/** A call by hand: after the arguments it goes through rules and questions as usual. */
export function CallByHand({ server: id, tool: name, onClose }) {
  const tool = servers.value.find((one) => one.id === id)?.tools?.find((one) => one.tool === name);
  const [value, setValue] = useState(/** @type {any} */ ({}));
  const [wrong, setWrong] = useState(false);
  const call = async () => {
    let session = isLive(current.value) ? current.value : "";
    if (!session) {
      const begun = await attempt("newSession", {});
      if (!begun) return;
      session = begun.session;
      open(session);
    }
    attempt("callTool", { session, server: id, tool: name, arguments: value });
    onClose();
  };
  useEffect(() => {
    if (!tool) onClose(); // the server no longer offers the tool
  }, [tool]);
  if (!tool) return null;
  return html`
    <${Dialog}
      title=${html`
        Call <${Say} text=${tool.title || name} />
      `}
      onClose=${onClose}
      foot=${html`<button type="button" class="main" disabled=${wrong} onClick=${call}>
          Call
        </button>`}
    >
      <p class="small-line">
        <${From} server=${id} />${" "}
        <code class="quiet">
          <${Say} text=${name} />
        </code>
      </p>
      <p class="quiet wrap">
        <${Say} text=${tool.description ?? ""} />
      </p>
      <${ArgumentsEditor}
        schema=${tool.inputSchema}
        value=${value}
        onChange=${(made, bad) => {
          setValue(made);
          setWrong(bad);
        }}
      />
    </${Dialog}>
  `;
}

/** Folders that are offered to servers as roots. */
export function RootsPanel() {
  const [folder, setFolder] = useState("");
  const [server, setServer] = useState("");
  const id = useId();
  const grant = async (event) => {
    event.preventDefault();
    if (
      folder.trim() &&
      (await attempt("grant", { folder: folder.trim(), ...(server ? { server } : {}) })) !==
        undefined
    ) {
      setFolder("");
    }
  };
  const all = Object.entries(roots.value).flatMap(([who, folders]) =>
    folders.map((path) => ({ who, path })),
  );
  return html`
    <p class="quiet">
      Servers are told to work in these folders. They are not confined to them: a program that
      you run can read whatever you can read.
    </p>
    <ul class="offers">
      ${all.map(
        ({ who, path }) => html`
          <li key=${who + path} class="offer-head">
            <span class="grow">
              <code class="wrap">
                <${Say} text=${path} />
              </code>
              <span class="quiet block">
                ${
                  who
                    ? html`
                      for <${Say} text=${who} />
                    `
                    : "for all servers"
                }
              </span>
            </span>
            <button
              type="button"
              class="small"
              aria-label=${`Remove ${visible(path)}`}
              onClick=${() => attempt("revoke", { folder: path, ...(who ? { server: who } : {}) })}
            >
              Remove
            </button>
          </li>
        `,
      )}
      ${!all.length && html`<li class="quiet">No folders are shared.</li>`}
    </ul>
    <form class="fields boxed" onSubmit=${grant}>
      <div class="field">
        <label for=${id}>Folder</label>
        <input
          id=${id}
          value=${folder}
          placeholder="Full path of a folder on this computer"
          autocomplete="off"
          spellcheck=${false}
          onInput=${(event) => setFolder(event.currentTarget.value)}
        />
      </div>
      <div class="field">
        <label for=${`${id}-who`}>For</label>
        <select
          id=${`${id}-who`}
          value=${server}
          onChange=${(event) => setServer(event.currentTarget.value)}
        >
          <option value="">all servers</option>
          ${servers.value.map(
            (one) => html`
              <option key=${one.id} value=${one.id}>
                ${visible(one.id)}
              </option>
            `,
          )}
        </select>
      </div>
      <div class="buttons">
        <button type="submit" class="main" disabled=${!folder.trim()}>
          Share
        </button>
      </div>
    </form>
  `;
}

const DECISIONS = { allow: ["check", "Allow"], deny: ["cross", "Deny"], ask: ["ask", "Ask"] };

/** @param {string} id */
async function forget(id) {
  if ((await attempt("forget", { rule: id })) !== undefined)
    rules.value = rules.value.filter((rule) => rule.id !== id);
}

/** The person's remembered answers. */
export function RulesPanel() {
  return html`
    <p class="quiet">
      Decisions that you asked to be remembered. A rule that denies always wins over one that
      allows.
    </p>
    <ul class="offers">
      ${rules.value.map((rule) => {
        const [icon, word] = DECISIONS[rule.decision] ?? ["ask", rule.decision];
        return html`
          <li key=${rule.id}>
            <div class="offer-head">
              <span class="grow">
                <span class=${cls("decision", rule.decision)}>
                  <${Icon} name=${icon} />
                  ${word}
                </span>${" "}
                <${Say} text=${rule.words.slice(rule.words.indexOf(" ") + 1)} />
                ${rule.session && html` <span class="tag">this session</span>`}
                ${
                  rule.reason &&
                  html`
                    <span class="quiet block">
                      <${Say} text=${rule.reason} />
                    </span>
                  `
                }
              </span>
              <button
                type="button"
                class="small"
                aria-label=${`Forget: ${visible(rule.words)}`}
                onClick=${(event) => event.detail < 2 && forget(rule.id)}
              >
                Forget
              </button>
            </div>
          </li>
        `;
      })}
      ${!rules.value.length && html`<li class="quiet">No rules are remembered.</li>`}
    </ul>
  `;
}

/** @type {[string, any, string][]} */
const PANELS = [
  ["roots", "folder", "Folders"],
  ["rules", "rule", "Rules"],
  ["runs", "play", "Runs"],
  ["timeline", "clock", "Timeline"],
  ["audit", "list", "Log"],
];

/** The servers and conversations on the left. */
export const Side = () => html`
  <${Conversations} />
  <${Servers} />
  <div class="side-part side-foot">
    ${PANELS.map(
      ([name, icon, words]) => html`
        <${PanelButton} key=${name} name=${name} icon=${icon} words=${words} />
      `,
    )}
    <${SettingsButton} />
  </div>
`;

/** A button that opens the settings. */
function SettingsButton() {
  if (!sections().length) return null;
  return html`
    <button
      type="button"
      class=${cls("side-row", settings.value && "is-current")}
      aria-current=${settings.value ? "page" : undefined}
      onClick=${() => {
        settings.value = sections()[0].id;
      }}
    >
      <${Icon} name="gear" />
      <span>Settings</span>
    </button>
  `;
}

/** A button that opens and closes a panel. */
function PanelButton({ name, icon, words }) {
  const shown = panel.value?.name === name;
  return html`
    <button
      type="button"
      class=${cls("side-row", shown && "is-current")}
      aria-expanded=${shown ? "true" : "false"}
      onClick=${() => {
        panel.value = shown ? null : { name };
      }}
    >
      <${Icon} name=${icon} />
      <span>${words}</span>
    </button>
  `;
}

function Servers() {
  return html`
    <div class="side-part side-servers">
      <div class="side-head">
        <h2 id="servers">Servers</h2>
      </div>
      <ul aria-labelledby="servers">
        ${servers.value.map(
          (one) => html`
            <li key=${one.id}>
              <${ServerRow} one=${one} />
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}

function ServerRow({ one }) {
  const shown = panel.value?.name === "server" && panel.value.id === one.id;
  const offers = [...(one.tools ?? []), ...(one.prompts ?? [])];
  const blocked = offers.some((offer) => offer.blocked);
  const warned = offers.some((offer) => offer.warnings?.length);
  const state = stateOf(one);
  const about =
    state === "up" ? several((one.tools ?? []).length, "tool") : (STATES[state] ?? state);
  return html`
    <button
      type="button"
      class=${cls("side-row", shown && "is-current")}
      onClick=${() => {
        panel.value = { name: "server", id: one.id };
      }}
    >
      <${Dot} state=${state} />
      <span class="grow">
        <span class="side-title">
          <${Say} text=${one.id} />
        </span>
        <span class="side-about">${about}</span>
      </span>
      ${
        warned &&
        html`
          <span class="tag care" title="Warnings">
            <${Icon} name="warn" />
            <span class="hidden-text">has warnings</span>
          </span>
        `
      }
      ${
        blocked &&
        html`
          <span class="tag care" title="Blocked">
            <${Icon} name="lock" />
            <span class="hidden-text">has blocked tools</span>
          </span>
        `
      }
    </button>
  `;
}
