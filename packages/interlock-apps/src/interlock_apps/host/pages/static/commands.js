// @ts-check
// The command palette: tools, prompts, servers, panels and conversations, best match first.
import { Dialog, From, Icon, Say, html, useState } from "../kit/kit.js";
import { Picker, fits } from "../kit/complete.js";
import { stop } from "./composer.js";
import { looks, next } from "../kit/looks.js";
import { sections } from "./settings.js";
import { current, open, overlay, panel, servers, sessions, settings, talk } from "./store.js";

const MOST = 40; // entries in one group
const TALKS = 50;

/**
 * @typedef {{group: string, icon: any, title: string, take: () => void, server?: string, also?:
 *   string}} Command `also` is another text to search: the name of a tool beside its title.
 */

const show =
  (name, more = {}) =>
  () => {
    panel.value = { name, ...more };
  };
const over =
  (name, more = {}) =>
  () => {
    overlay.value = { name, ...more };
  };

/** @returns {Command[]} */
function tools() {
  return servers.value
    .filter((server) => server.state === "up")
    .flatMap((server) =>
      (server.tools ?? [])
        .filter((tool) => !tool.blocked)
        .map((tool) => ({
          group: "Call a tool",
          icon: "tool",
          title: tool.title || tool.tool,
          also: tool.tool,
          server: server.id,
          take: over("call", { server: server.id, tool: tool.tool }),
        })),
    );
}

/** @returns {Command[]} */
function prompts() {
  return servers.value.flatMap((server) =>
    (server.prompts ?? [])
      .filter((prompt) => !prompt.blocked)
      .map((prompt) => ({
        group: "Prompts",
        icon: "prompt",
        title: prompt.title || prompt.name,
        also: prompt.name,
        server: server.id,
        take: over("prompts", { server: server.id, prompt: prompt.name }),
      })),
  );
}

/** @returns {Command[]} */
function deeds() {
  const running = current.value && talk(current.value).running.value;
  const stopping = { group: "Do", icon: "stop", title: "Stop what is running", take: stop };
  return [
    ...(running ? [stopping] : []),
    { group: "Do", icon: "plus", title: "New conversation", take: () => open("") },
    { group: "Do", icon: "prompt", title: "Choose a prompt", take: over("prompts") },
    { group: "Do", icon: "at", title: "Choose resources", take: over("resources") },
  ];
}

/** @returns {Command[]} */
function places() {
  return [
    { group: "Show", icon: "folder", title: "Folders", take: show("roots") },
    { group: "Show", icon: "rule", title: "Rules", take: show("rules") },
    { group: "Show", icon: "play", title: "Runs", take: show("runs") },
    { group: "Show", icon: "clock", title: "Timeline", take: show("timeline") },
    { group: "Show", icon: "list", title: "Log", take: show("audit") },
    {
      group: "Show",
      icon: looks.value === "dark" ? "moon" : "sun",
      title: "Switch between light and dark",
      take: next,
    },
    ...sections().map((section) => ({
      group: "Settings",
      icon: section.icon,
      title: section.title,
      also: `Settings: ${section.title}`,
      take: () => {
        settings.value = section.id;
      },
    })),
    ...servers.value.map((server) => ({
      group: "Servers",
      icon: "server",
      title: server.id,
      also: server.title ?? "",
      take: show("server", { id: server.id }),
    })),
  ];
}

/** @returns {Command[]} */
function talks() {
  return sessions.value.slice(0, TALKS).map((session) => ({
    group: "Conversations",
    icon: "talk",
    title: session.title || "Untitled",
    also: session.model ?? "",
    take: () => open(session.id),
  }));
}

/**
 * How well a command matches: 0 for an exact match, more for weaker ones.
 * @param {Command} command
 * @param {string} words
 */
function distance(command, words) {
  const wanted = words.trim().toLowerCase();
  const names = [command.title, command.also ?? ""].map((name) => name.toLowerCase());
  if (names.includes(wanted)) return 0;
  if (names.some((name) => name.startsWith(wanted))) return 1;
  return fits(names.join(" "), words) ? 2 : 3;
}

/**
 * The matching commands by group: the group of the best match first, equal matches in the given
 * order. A conversation's title contains arbitrary words of the person, so a match is a weak sign,
 * and conversations come last.
 * @param {Command[]} commands @param {string} words
 */
export function ranked(commands, words) {
  const found = commands
    .filter((one) =>
      fits([one.group, one.title, one.server ?? "", one.also ?? ""].join(" "), words),
    )
    .map((command, place) => ({ command, place, far: distance(command, words) }));
  const groups = [...new Set(commands.map((one) => one.group))];
  const best = (group) =>
    Math.min(...found.filter((one) => one.command.group === group).map((one) => one.far));
  const last = (group) => (group === "Conversations" ? 1 : 0);
  return groups
    .filter((group) => found.some((one) => one.command.group === group))
    .sort(
      (one, other) =>
        last(one) - last(other) ||
        best(one) - best(other) ||
        groups.indexOf(one) - groups.indexOf(other),
    )
    .flatMap((group) =>
      found
        .filter((one) => one.command.group === group)
        .sort((one, other) => one.far - other.far || one.place - other.place)
        .slice(0, MOST),
    )
    .map((one) => one.command);
}

/** @param {{onClose: () => void}} props */
export function Commands({ onClose }) {
  const [words, setWords] = useState("");
  const searched = words.trim() !== "";
  const all = searched
    ? ranked([...tools(), ...prompts(), ...deeds(), ...places(), ...talks()], words)
    : [...deeds(), ...places(), ...talks(), ...prompts()];
  const items = all.map(({ group, icon, title, take, server }, at) => ({
    key: `${group} ${title} ${server ?? ""} ${at}`,
    group,
    take: () => {
      onClose();
      take();
    },
    render: () => html`
      <${Icon} name=${icon} />
      <span class="grow">
        <${Say} text=${title} />
      </span>
      <${From} server=${server} />
    `,
  }));
  return html`
    <${Dialog} title="Search" class="palette" onClose=${onClose}>
      <${Picker}
        label="Search everything"
        placeholder="Search tools, prompts, servers, commands, conversations"
        items=${items}
        words=${words}
        onWords=${setWords}
        empty="Nothing matches."
      />
    </${Dialog}>
  `;
}
