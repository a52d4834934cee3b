// @ts-check
// The palette of everything, by words: conversations, prompts, servers, tools, panels, looks.
import { Dialog, From, Icon, Say, html, useState } from "./kit.js";
import { Picker, fits } from "./complete.js";
import { stop } from "./composer.js";
import { looks, next } from "./looks.js";
import { current, open, overlay, panel, servers, sessions, talk } from "./store.js";

const TOOLS = 40;

/** @param {{onClose: () => void}} props */
export function Commands({ onClose }) {
  const [words, setWords] = useState("");
  const show = (name, more = {}) => () => { panel.value = { name, ...more }; };
  const over = (name, more = {}) => () => { overlay.value = { name, ...more }; };
  const running = current.value && talk(current.value).running.value;
  const tools = servers.value.flatMap((server) => (server.state === "up" ? (server.tools ?? []).filter((tool) => !tool.blocked).map((tool) => ["Call a tool", "tool", tool.title || tool.tool, over("call", { server: server.id, tool: tool.tool }), server.id, tool.tool]) : []));
  const all = [
    ...(running ? [["Do", "stop", "Stop what is running", stop]] : []),
    ["Do", "plus", "New conversation", () => open("")],
    ["Do", "prompt", "Choose a prompt", over("prompts")],
    ["Do", "at", "Choose resources", over("resources")],
    ["Show", "folder", "Folders", show("roots")],
    ["Show", "rule", "Rules", show("rules")],
    ["Show", "list", "Log", show("audit")],
    ["Show", looks.value === "dark" ? "moon" : "sun", "Switch between light and dark", next],
    ...servers.value.map((server) => ["Servers", "server", server.id, show("server", { id: server.id }), "", server.title ?? ""]),
    ...sessions.value.slice(0, 50).map((session) => ["Conversations", "talk", session.title || "Untitled", () => open(session.id), "", session.model ?? ""]),
    ...servers.value.flatMap((server) => (server.prompts ?? []).map((prompt) => ["Prompts", "prompt", prompt.title || prompt.name, over("prompts", { server: server.id, prompt: prompt.name }), server.id, prompt.name])),
  ];
  const fitting = [...all, ...(words.trim() ? tools : [])].filter(([group, , title, , server, more]) => fits(`${group} ${title} ${server ?? ""} ${more ?? ""}`, words));
  const calls = fitting.filter(([group]) => group === "Call a tool").length;
  const items = fitting.slice(0, fitting.length - Math.max(0, calls - TOOLS)).map(([group, icon, title, take, server], at) => ({
    key: `${group} ${title} ${server ?? ""} ${at}`, group,
    take: () => { onClose(); take(); },
    render: () => html`<${Icon} name=${icon} /><span class="grow"><${Say} text=${title} /></span><${From} server=${server} />`,
  }));
  return html`<${Dialog} title="Everything" class="palette" onClose=${onClose}><${Picker} label="Search everything" placeholder="Search commands, servers, conversations, prompts, tools" items=${items} words=${words} onWords=${setWords} empty="Nothing fits these words." /><//>`;
}
