// @ts-check
// What stands beside the conversation: servers, folders, rules.
import { Dialog, Fold, From, Icon, Say, cls, html, several, useEffect, useId, useRef, useState, visible, when } from "./kit.js";
import { Annotations } from "./asked-calls.js";
import { ArgumentsEditor } from "./fields.js";
import { act } from "./net.js";
import { attempt, current, log, open, overlay, panel, roots, rules, servers, sessions } from "./store.js";

/** @type {Record<string, string>} */
export const STATES = { waiting: "waits for you", starting: "starting", up: "ready", down: "down, tried again", off: "stopped", refused: "not allowed" };

/** The state of a server, as a dot with words for those who do not see it. */
export const Dot = ({ state }) => html`<span class=${`dot is-${state}`} role="img" aria-label=${STATES[state] ?? state}></span>`;

/** A server: its state, what it offers, its log. @param {{id: string}} props */
export function ServerPanel({ id }) {
  const server = servers.value.find((one) => one.id === id);
  if (!server) return html`<p class="quiet">There is no server <${Say} text=${id} /> any more.</p>`;
  const on = !["off", "refused"].includes(server.state);
  const does = (what) => () => attempt("server", { server: id, what });
  const blocked = (server.tools ?? []).filter((tool) => tool.blocked).length;
  return html`<div class="panel-part"><p class="server-state"><${Dot} state=${server.state} /> <strong>${STATES[server.state] ?? server.state}</strong>${server.revision && html` <span class="tag">${server.revision}</span>`}${server.trusted && html` <span class="tag">trusted</span>`}</p>
      ${server.title && server.title !== id && html`<p>It calls itself “<${Say} text=${server.title} />”.</p>`}
      ${server.words && html`<p class=${server.state === "up" ? "quiet" : "wrong"}><${Say} text=${server.words} /></p>`}
      <div class="buttons">${on ? html`<button type="button" onClick=${does("restart")}>Restart</button><button type="button" onClick=${does("stop")}>Stop</button>` : html`<button type="button" class="main" onClick=${does("start")}>Start</button>`}</div></div>
    <${Fold} title="Command"><pre class="command wrap" tabindex="0">${visible(server.command)}</pre><//>
    ${server.instructions && html`<${Fold} title="What it tells the model"><p class="wrap"><${Say} text=${server.instructions} /></p><//>`}
    <${Fold} title=${html`${several((server.tools ?? []).length, "tool")}${blocked > 0 && html` <span class="tag care">${blocked} blocked</span>`}`} open=${true}><ul class="offers">${(server.tools ?? []).map((tool) => html`<${ToolRow} key=${tool.name} server=${server} tool=${tool} />`)}</ul><//>
    ${(server.prompts ?? []).length > 0 && html`<${Fold} title=${several(server.prompts.length, "prompt")}><ul class="offers">${server.prompts.map((prompt) => html`<li key=${prompt.name}><div class="offer-head"><strong><${Say} text=${prompt.title || prompt.name} /></strong><button type="button" class="small quiet" onClick=${() => { overlay.value = { name: "prompts", server: id, prompt: prompt.name }; }}>Use</button></div><${Say} class="quiet block" text=${prompt.description ?? ""} /></li>`)}</ul><//>`}
    ${(server.resources ?? []).length + (server.templates ?? []).length > 0 && html`<${Fold} title=${`${several((server.resources ?? []).length, "resource")}, ${several((server.templates ?? []).length, "template")}`}><ul class="offers">${(server.resources ?? []).slice(0, 200).map((one) => html`<li key=${one.uri}><div class="offer-head"><span><${Say} text=${one.title || one.name} /> <code class="uri"><${Say} text=${one.uri} /></code></span><button type="button" class="small quiet" onClick=${() => { overlay.value = { name: "resources", server: id, uri: one.uri }; }}>Look</button></div></li>`)}
      ${(server.templates ?? []).map((one) => html`<li key=${one.uriTemplate}><${Say} text=${one.title || one.name} /> <code class="uri"><${Say} text=${one.uriTemplate} /></code></li>`)}</ul><//>`}
    <${ServerLog} id=${id} />`;
}

/** A tool: what it says of itself, and a way to call it by hand. */
function ToolRow({ server, tool }) {
  return html`<li><div class="offer-head"><span><strong><${Say} text=${tool.title || tool.tool} /></strong> <code class="quiet"><${Say} text=${tool.tool} /></code></span>${!tool.blocked && server.state === "up" && html`<button type="button" class="small quiet" aria-label=${`Call ${visible(tool.title || tool.tool)}`} onClick=${() => { overlay.value = { name: "call", server: server.id, tool: tool.tool }; }}>Call</button>`}</div>
    ${tool.blocked && html`<p class="wrong"><${Icon} name="lock" /> <${Say} text=${tool.blocked} /></p>`}
    ${tool.description && html`<p class="quiet clamp wrap"><${Say} text=${tool.description} /></p>`}<${Annotations} annotations=${tool.annotations} trusted=${server.trusted} /></li>`;
}

/** What a server logged. */
function ServerLog({ id }) {
  const lines = log(id);
  const [words, setWords] = useState("");
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => {
    act("serverLog", { server: id }).then((answer) => {
      const known = lines.value.filter((line) => line.at); // what came over the stream since, with its time
      lines.value = [...answer.lines.slice(0, known.length ? answer.lines.length - known.length : undefined), ...known].slice(-1000);
    }, (bad) => setWords(bad.message));
  }, [id]);
  useEffect(() => { box.current.scrollTop = box.current.scrollHeight; }, [lines.value.length]);
  return html`<${Fold} title="Log" open=${true}>${words && html`<p class="wrong">${words}</p>`}<div ref=${box} class="server-log" tabindex="0" role="group" aria-label=${`Log of ${visible(id)}`}>
    ${lines.value.map((line, at) => html`<p key=${at} class=${`level-${line.level}`}><span class="level"><${Say} text=${line.level} /></span> <span class="wrap">${line.logger && html`<${Say} class="quiet" text=${line.logger} /> `}<${Say} text=${line.text} /></span></p>`)}${!lines.value.length && html`<p class="quiet">It has said nothing.</p>`}</div><//>`;
}

/** A call by hand: the arguments, then the usual way over rules and questions. */
export function CallByHand({ server: id, tool: name, onClose }) {
  const tool = servers.value.find((one) => one.id === id)?.tools?.find((one) => one.tool === name);
  const [value, setValue] = useState(/** @type {any} */ ({}));
  const [wrong, setWrong] = useState(false);
  const call = async () => {
    let session = current.value;
    if (!session) {
      const begun = await attempt("newSession", {});
      if (!begun) return;
      session = begun.session;
      open(session);
    }
    attempt("callTool", { session, server: id, tool: name, arguments: value });
    onClose();
  };
  if (!tool) return null;
  return html`<${Dialog} title=${html`Call <${Say} text=${tool.title || name} />`} onClose=${onClose} foot=${html`<button type="button" class="main" disabled=${wrong} onClick=${call}>Call</button>`}>
    <p class="small-line"><${From} server=${id} /> <code class="quiet"><${Say} text=${name} /></code></p><p class="quiet wrap"><${Say} text=${tool.description ?? ""} /></p>
    <${ArgumentsEditor} schema=${tool.inputSchema} value=${value} onChange=${(made, bad) => { setValue(made); setWrong(bad); }} /><//>`;
}

/** Folders that servers may be told of. */
export function RootsPanel() {
  const [folder, setFolder] = useState("");
  const [server, setServer] = useState("");
  const id = useId();
  const grant = async (event) => {
    event.preventDefault();
    if (folder.trim() && (await attempt("grant", { folder: folder.trim(), ...(server ? { server } : {}) })) !== undefined) {
      setFolder("");
    }
  };
  const all = Object.entries(roots.value).flatMap(([who, folders]) => folders.map((path) => ({ who, path })));
  return html`<p class="quiet">Servers are told of these folders, as the place to work in. It is for them to keep to it: whoever runs a program as you can read what you can read.</p>
    <ul class="offers">${all.map(({ who, path }) => html`<li key=${who + path} class="offer-head"><span class="grow"><code class="wrap"><${Say} text=${path} /></code><span class="quiet block">${who ? html`for <${Say} text=${who} />` : "for all servers"}</span></span><button type="button" class="small" aria-label=${`Take back ${visible(path)}`} onClick=${() => attempt("revoke", { folder: path, ...(who ? { server: who } : {}) })}>Take back</button></li>`)}${!all.length && html`<li class="quiet">No folder is granted.</li>`}</ul>
    <form class="fields boxed" onSubmit=${grant}><div class="field"><label for=${id}>Folder</label><input id=${id} value=${folder} placeholder="A folder of this machine, whole path" autocomplete="off" spellcheck=${false} onInput=${(event) => setFolder(event.currentTarget.value)} /></div>
      <div class="field"><label for=${`${id}-who`}>For</label><select id=${`${id}-who`} value=${server} onChange=${(event) => setServer(event.currentTarget.value)}><option value="">all servers</option>${servers.value.map((one) => html`<option key=${one.id} value=${one.id}>${visible(one.id)}</option>`)}</select></div>
      <div class="buttons"><button type="submit" class="main" disabled=${!folder.trim()}>Grant</button></div></form>`;
}

/** A rule in words. @param {any} rule */
function told(rule) {
  const where = [rule.tool && rule.tool !== "*" ? rule.tool : "every tool", rule.server && rule.server !== "*" ? `of ${rule.server}` : "of every server"].join(" ");
  const hints = [["readOnly", "changes nothing"], ["destructive", "may destroy"], ["idempotent", "again does no harm"], ["openWorld", "reaches outside"]].filter(([name]) => rule[name] !== undefined && rule[name] !== null).map(([name, words]) => `${rule[name] ? "" : "not: "}${words}`);
  return { where, hints };
}

const DECISIONS = { allow: ["check", "Allow"], deny: ["cross", "Deny"], ask: ["ask", "Ask"] };

/** @param {number} at the place of the rule in the list */
async function forget(at) {
  if ((await attempt("forget", { rule: at })) !== undefined) rules.value = rules.value.filter((_, place) => place !== at);
}

/** What the person's answers hold for. */
export function RulesPanel() {
  return html`<p class="quiet">What you let hold for longer than one call. A rule that denies always comes before one that allows.</p>
    <ul class="offers">${rules.value.map((each, at) => {
      const rule = each.rule ?? each;
      const { where, hints } = told(rule);
      const [icon, word] = DECISIONS[rule.decision] ?? ["ask", rule.decision];
      const fixed = each.forgettable === false || rule.source === "file";
      return html`<li key=${at}><div class="offer-head"><span class="grow"><span class=${cls("decision", rule.decision)}><${Icon} name=${icon} />${word}</span> <${Say} text=${where} />${hints.length > 0 && html` <span class="quiet">${hints.join(", ")}</span>`}
        ${rule.session && html`<span class="tag">this session</span>`}${rule.reason && html`<span class="quiet block"><${Say} text=${rule.reason} /></span>`}
        ${Object.keys(rule.arguments ?? {}).length > 0 && html`<code class="block wrap"><${Say} text=${JSON.stringify(rule.arguments)} /></code>`}</span>
        ${!fixed && html`<button type="button" class="small" aria-label=${`Forget: ${word} ${visible(where)}`} onClick=${() => forget(at)}>Forget</button>`}</div></li>`;
    })}${!rules.value.length && html`<li class="quiet">No rule is remembered.</li>`}</ul>`;
}

/** The servers and conversations at the left. */
export function Side() {
  return html`<div class="side-part"><div class="side-head"><h2 id="talks">Conversations</h2></div>
      <button type="button" class=${cls("side-row new", !current.value && "is-current")} aria-current=${current.value ? undefined : "page"} onClick=${() => open("")}><${Icon} name="plus" /><span>New conversation</span></button>
      <ul aria-labelledby="talks">${sessions.value.map((one) => html`<li key=${one.id}><button type="button" class=${cls("side-row", one.id === current.value && "is-current")} aria-current=${one.id === current.value ? "page" : undefined} onClick=${() => open(one.id)}>
        <span class="grow"><span class="side-title"><${Say} text=${one.title || "Untitled"} /></span><span class="side-about">${[one.began ? when(one.began) : "", visible(one.model ?? "")].filter(Boolean).join(" · ")}</span></span>${one.running && html`<span class="dots" role="img" aria-label="running"></span>`}</button></li>`)}</ul></div>
    <div class="side-part"><div class="side-head"><h2 id="servers">Servers</h2></div>
      <ul aria-labelledby="servers">${servers.value.map((one) => html`<li key=${one.id}><button type="button" class=${cls("side-row", panel.value?.name === "server" && panel.value.id === one.id && "is-current")} onClick=${() => { panel.value = { name: "server", id: one.id }; }}><${Dot} state=${one.state} /><span class="grow"><span class="side-title"><${Say} text=${one.id} /></span><span class="side-about">${one.state === "up" ? several((one.tools ?? []).length, "tool") : STATES[one.state] ?? one.state}</span></span>${(one.tools ?? []).some((tool) => tool.blocked) && html`<span class="tag care"><${Icon} name="lock" /></span>`}</button></li>`)}</ul></div>
    <div class="side-part side-foot">${[["roots", "folder", "Folders"], ["rules", "rule", "Rules"], ["audit", "list", "Log"]].map(([name, icon, words]) => html`<button key=${name} type="button" class=${cls("side-row", panel.value?.name === name && "is-current")} aria-expanded=${panel.value?.name === name ? "true" : "false"} onClick=${() => { panel.value = panel.value?.name === name ? null : { name }; }}><${Icon} name=${icon} /><span>${words}</span></button>`)}</div>`;
}
