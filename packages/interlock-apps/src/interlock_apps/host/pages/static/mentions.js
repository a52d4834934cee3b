// @ts-check
// Inline suggestions of the composer: prompts after `/` and resources after `@`; the typed text
// stays.
import { From, Icon, Say, html, visible } from "../kit/kit.js";
import { fits } from "../kit/complete.js";
import { attached, overlay, servers } from "./store.js";

const MOST = 50;

/**
 * The text before the caret that asks for suggestions: `/` and words at the very beginning, or `@`
 * and a word after a space.
 * @param {string} text @param {number} caret
 * @returns {{sign: "/" | "@", start: number, words: string} | null}
 */
export function trigger(text, caret) {
  const before = text.slice(0, caret);
  if (/^\/[^\n]*$/.test(before)) return { sign: "/", start: 0, words: before.slice(1) };
  const mention = /(?:^|\s)@([^\s@]*)$/.exec(before);
  return mention && { sign: "@", start: caret - mention[1].length - 1, words: mention[1] };
}

/**
 * @typedef {{key: string, icon: any, title: string, about: string, server: string, take: () =>
 *   void}} Suggestion
 */

/** @param {string} words @returns {Suggestion[]} */
function prompts(words) {
  return servers.value.flatMap((server) =>
    (server.prompts ?? [])
      .filter((prompt) => !prompt.blocked)
      .filter((prompt) =>
        fits([prompt.title, prompt.name, prompt.description, server.id].join(" "), words),
      )
      .map((prompt) => ({
        key: `${server.id} ${prompt.name}`,
        icon: "prompt",
        title: prompt.title || prompt.name,
        about: `/${prompt.name}`,
        server: server.id,
        take: () => {
          overlay.value = { name: "prompts", server: server.id, prompt: prompt.name };
        },
      })),
  );
}

/** @param {string} server @param {any} resource */
function attach(server, resource) {
  const { uri } = resource;
  if (attached.value.some((one) => one.server === server && one.uri === uri)) return;
  attached.value = [
    ...attached.value,
    { server, uri, title: resource.title || resource.name || uri },
  ];
}

/** @param {string} words @returns {Suggestion[]} */
function resources(words) {
  return servers.value.flatMap((server) => {
    const plain = (server.resources ?? []).map((one) => ({
      key: `${server.id} ${one.uri}`,
      icon: "file",
      title: one.title || one.name,
      about: one.uri,
      server: server.id,
      take: () => attach(server.id, one),
    }));
    const templates = (server.templates ?? []).map((one) => ({
      key: `${server.id} ${one.uriTemplate}`,
      icon: "edit",
      title: one.title || one.name,
      about: one.uriTemplate,
      server: server.id,
      take: () => {
        overlay.value = { name: "resources", server: server.id, template: one };
      },
    }));
    return [...plain, ...templates].filter((one) =>
      fits([one.title, one.about, server.id].join(" "), words),
    );
  });
}

/**
 * All prompts, or all resources, in their own dialog.
 * @param {"/" | "@"} sign
 * @returns {Suggestion}
 */
const everything = (sign) => ({
  key: "everything",
  icon: "search",
  title: sign === "/" ? "Browse all prompts" : "Browse all resources",
  about: "",
  server: "",
  take: () => {
    overlay.value = { name: sign === "/" ? "prompts" : "resources" };
  },
});

/**
 * The suggestions; none if no prompt or resource matches the words.
 * @param {{sign: "/" | "@", words: string}} asked
 */
export function suggested({ sign, words }) {
  const found = (sign === "/" ? prompts : resources)(words).slice(0, MOST);
  return found.length && !words ? [...found, everything(sign)] : found;
}

/**
 * The list above the message box.
 * @param {{id: string, label: string, items: Suggestion[], at: number, onAt: (at: number) => void,
 *   onTake: (item: Suggestion) => void}} props
 */
export const Mentions = ({ id, label, items, at, onAt, onTake }) => html`
  <ul class="mentions" id=${id} role="listbox" aria-label=${label}>
    ${items.map(
      (item, index) => html`
        <li
          key=${item.key}
          id=${`${id}-${index}`}
          role="option"
          aria-selected=${index === at ? "true" : "false"}
          title=${visible(item.about)}
          onMouseMove=${() => onAt(index)}
          onMouseDown=${(event) => {
            event.preventDefault();
            onTake(item);
          }}
        >
          <${Icon} name=${item.icon} />
          <span class="grow">
            <${Say} text=${item.title} />${" "}
            <code class="quiet">
              <${Say} text=${item.about} />
            </code>
          </span>
          <${From} server=${item.server} />
        </li>
      `,
    )}
  </ul>
`;
