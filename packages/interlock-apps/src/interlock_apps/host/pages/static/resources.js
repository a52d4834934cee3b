// @ts-check
// The resource browser: a tree by server and address, search, templates to fill in, a preview, and
// attachments.
import {
  Dialog,
  From,
  Icon,
  Say,
  cls,
  html,
  size,
  useEffect,
  useMemo,
  useRef,
  useState,
  visible,
  wordsOf,
} from "../kit/kit.js";
import { Suggested, fits, suggestions } from "../kit/complete.js";
import { Contents } from "../kit/content.js";
import { toFirstWrong } from "../kit/fields.js";
import { act } from "../kit/net.js";
import { variables } from "../kit/templates.js";
import { attached, eventListeners, overlay, servers } from "./store.js";

/**
 * @typedef {{label: string, key: string, leaf?: any, children: Map<string, Node>}} Node
 */

/**
 * Resources by the parts of their addresses; a node with a single child is merged with it.
 * @param {any[]} resources
 * @returns {Node}
 */
export function tree(resources) {
  const root = { label: "", key: "", children: new Map() };
  for (const resource of resources) {
    const split = /^([a-z][\w+.-]*:\/{0,3})(.*)$/i.exec(resource.uri);
    const names = split ? [split[1], ...split[2].split("/").filter(Boolean)] : [resource.uri];
    let node = /** @type {Node} */ (root);
    names.forEach((name, at) => {
      const last = at === names.length - 1;
      const key = last ? `leaf ${resource.uri}` : name;
      let next = node.children.get(key);
      if (!next)
        node.children.set(
          key,
          (next = {
            label: name,
            key: `${node.key}/${key}`,
            children: new Map(),
            ...(last ? { leaf: resource } : {}),
          }),
        );
      node = next;
    });
  }
  return joined(root);
}

/** @param {Node} node @returns {Node} */
function joined(node) {
  const children = new Map();
  for (const [key, child] of node.children) {
    let one = joined(child);
    while (!one.leaf && one.children.size === 1) {
      const [only] = one.children.values();
      one = {
        ...only,
        label: `${one.label}${one.label.endsWith("/") ? "" : "/"}${only.label}`,
      };
    }
    children.set(key, one);
  }
  return { ...node, children };
}

const same = (one, other) => one.server === other.server && one.uri === other.uri;

/**
 * `uri` or `template` is shown first. `back` names where the Back button leads, if not to the
 * composer.
 * @param {{onClose: () => void, server?: string, uri?: string, template?: any, back?: string}}
 *   props
 */
export function Resources({ onClose, server: only = "", uri = "", template = null, back = "" }) {
  const [words, setWords] = useState("");
  const first = uri || template ? { server: only, ...(template ? { template } : { uri }) } : null;
  const [shown, setShown] = useState(/** @type {any} */ (first));
  const [chosen, setChosen] = useState(attached.value);
  const toggle = (one) =>
    setChosen((before) =>
      before.some((each) => same(each, one))
        ? before.filter((each) => !same(each, one))
        : [...before, one],
    );
  const done = () => {
    attached.value = chosen;
    onClose();
    if (!back) window.setTimeout(() => document.getElementById("say")?.focus(), 0);
  };
  const found = servers.value
    .map((server) => ({
      id: server.id,
      resources: (server.resources ?? []).filter((one) =>
        fits([one.title, one.name, one.uri, one.description, server.id].join(" "), words),
      ),
      templates: (server.templates ?? []).filter((one) =>
        fits([one.title, one.name, one.uriTemplate, one.description, server.id].join(" "), words),
      ),
    }))
    .filter((server) => server.resources.length || server.templates.length);
  const foot = html`
    <button type="button" class="main" onClick=${done}>
      ${chosen.length ? `Attach ${chosen.length}` : "Done"}
    </button>
    ${
      back &&
      html`
        <button type="button" class="quiet" onClick=${onClose}>
          Back to ${back}
        </button>
      `
    }
    <div class="chips">
      ${chosen.map(
        (one) => html`
          <${Chip} key=${one.server + one.uri} one=${one} onRemove=${() => toggle(one)} />
        `,
      )}
    </div>
  `;
  return html`
    <${Dialog} title="Resources" class="wide" onClose=${onClose} foot=${foot}>
      <div class=${cls("browser", shown && "has-shown")}>
        <div class="browser-list">
          <input
            autofocus=${!first}
            type="text"
            role="searchbox"
            class="picker-search"
            placeholder="Search resources and templates"
            aria-label="Search resources and templates"
            value=${words}
            onInput=${(event) => setWords(event.currentTarget.value)}
            autocomplete="off"
          />
          <div class="tree" role="tree" aria-label="Resources" onKeyDown=${walk}>
            ${found.map(
              (server) => html`
                <${ServerBranch}
                  key=${server.id}
                  server=${server}
                  open=${true}
                  shown=${shown}
                  chosen=${chosen}
                  onShow=${setShown}
                  onToggle=${toggle}
                />
              `,
            )}
          </div>
          ${
            !found.length &&
            html`
              <p class="quiet center">
                ${words ? "No resource matches." : "No running server offers resources."}
              </p>
            `
          }
        </div>
        <div class="browser-shown" aria-live="polite">
          ${
            shown
              ? html`
                <button type="button" class="small quiet back" onClick=${() => setShown(null)}>
                  <${Icon} name="chevron" />
                  Back
                </button>
                ${
                  shown.template
                    ? html`
                      <${Template}
                        key=${shown.server + shown.template.uriTemplate}
                        server=${shown.server}
                        template=${shown.template}
                        onFilled=${(one) => setShown({ ...one, server: shown.server })}
                      />
                    `
                    : html`
                      <${Look}
                        key=${shown.server + shown.uri}
                        one=${shown}
                        taken=${chosen.some((each) => same(each, shown))}
                        onToggle=${toggle}
                      />
                    `
                }
              `
              : html`
                <p class="quiet center">Choose a resource to view it.</p>
              `
          }
        </div>
      </div>
    </${Dialog}>
  `;
}

/** An attachment. */
export const Chip = ({ one, onRemove }) => html`
  <span class="chip">
    <${Icon} name="file" />
    <span class="chip-text" title=${visible(`${one.server}: ${one.uri}`)}>
      <${Say} text=${one.title || one.uri} />
    </span>
    <span class="chip-from">
      <${Say} text=${one.server} />
    </span>
    <button
      type="button"
      aria-label=${`Remove ${visible(one.title || one.uri)}`}
      onClick=${onRemove}
    >
      <${Icon} name="close" />
    </button>
  </span>
`;

/** Arrow keys move through the tree as in a file list. @param {any} event */
function walk(event) {
  const rows = [...event.currentTarget.querySelectorAll("[role=treeitem]")].filter(
    (one) => one.offsetParent,
  );
  const at = rows.indexOf(document.activeElement);
  if (at < 0) return;
  const row = rows[at];
  const expanded = row.getAttribute("aria-expanded");
  const level = (one) => Number(one.getAttribute("aria-level"));
  const to = (one) => {
    if (!one) return;
    event.preventDefault();
    one.focus();
  };
  if (event.key === "ArrowDown") to(rows[at + 1]);
  else if (event.key === "ArrowUp") to(rows[at - 1]);
  else if (event.key === "Home") to(rows[0]);
  else if (event.key === "End") to(rows.at(-1));
  else if (event.key === "ArrowRight" && expanded === "false")
    (event.preventDefault(), row.click());
  else if (event.key === "ArrowRight" && expanded === "true") to(rows[at + 1]);
  else if (event.key === "ArrowLeft" && expanded === "true") (event.preventDefault(), row.click());
  else if (event.key === "ArrowLeft")
    to(
      rows
        .slice(0, at)
        .reverse()
        .find((one) => level(one) < level(row)),
    );
  else if (event.key === " " || event.key === "Enter") {
    event.preventDefault();
    if (event.key === " " && row.dataset.leaf) row.parentElement.querySelector("input").click();
    else row.click();
  }
}

const INDENT = ["in0", "in1", "in2", "in3", "in4", "in5", "in6"];
const indent = (level) => INDENT[Math.min(level, INDENT.length - 1)];

function ServerBranch({ server, ...rest }) {
  const nodes = useMemo(
    () => tree(server.resources),
    [server.resources.map((one) => one.uri).join("\n")],
  );
  return html`
    <${Branch} label=${server.id} icon="server" level=${1} open=${true}>
      ${[...nodes.children.values()].map(
        (node) => html`
          <${Leaf} key=${node.key} server=${server.id} node=${node} level=${2} ...${rest} />
        `,
      )}
      ${server.templates.map(
        (template) => html`
          <div key=${template.uriTemplate} role="none" class=${cls("row-frame", indent(1))}>
            <div
              role="treeitem"
              aria-level="2"
              tabindex="-1"
              class=${cls("row", rest.shown?.template === template && "is-shown")}
              onClick=${() => rest.onShow({ server: server.id, template })}
            >
              <${Icon} name="edit" />
              <span class="grow">
                <${Say} text=${template.title || template.name} />${" "}
                <code class="quiet">
                  <${Say} text=${template.uriTemplate} />
                </code>
              </span>
            </div>
          </div>
        `,
      )}
    </${Branch}>
  `;
}

/** A node with children. */
function Branch({ label, icon, level, open: begin, children }) {
  const [open, setOpen] = useState(begin);
  return html`
    <div role="none">
      <div
        role="treeitem"
        aria-level=${level}
        aria-expanded=${open ? "true" : "false"}
        tabindex=${level === 1 ? 0 : -1}
        class=${cls("row branch", indent(level - 1))}
        onClick=${() => setOpen(!open)}
      >
        <${Icon} name="chevron" />
        <${Icon} name=${icon} />
        <${Say} text=${label} />
      </div>
      ${open && html`<div role="group">${children}</div>`}
    </div>
  `;
}

/** A resource, or a folder of resources. */
function Leaf({ server, node, level, shown, chosen, onShow, onToggle }) {
  const rest = { server, shown, chosen, onShow, onToggle };
  if (!node.leaf)
    return html`
      <${Branch} label=${node.label} icon="folder" level=${level} open=${node.children.size <= 12}>
        ${[...node.children.values()].map(
          (child) => html`
            <${Leaf} key=${child.key} node=${child} level=${level + 1} ...${rest} />
          `,
        )}
      </${Branch}>
    `;
  const { uri, name, title } = node.leaf;
  const one = { server, uri, title: title || name || uri };
  const taken = chosen.some((each) => same(each, one));
  const isShown = shown && same(shown, one);
  // The checkbox is for the pointer. The row announces its state, and Space toggles it.
  return html`
    <div role="none" class=${cls("row-frame", indent(level - 1))}>
      <input
        type="checkbox"
        checked=${taken}
        tabindex="-1"
        aria-hidden="true"
        aria-label=${`Attach ${visible(one.title)}`}
        onChange=${() => onToggle(one)}
      />
      <div
        role="treeitem"
        aria-level=${level}
        data-leaf="yes"
        tabindex="-1"
        aria-selected=${isShown ? "true" : "false"}
        aria-checked=${taken ? "true" : "false"}
        class=${cls("row", isShown && "is-shown")}
        title=${visible(uri)}
        onClick=${() => onShow(one)}
      >
        <${Icon} name="file" />
        <span class="grow">
          <${Say} text=${one.title} />${" "}
          <code class="quiet">
            <${Say} text=${node.label} />
          </code>
        </span>
      </div>
    </div>
  `;
}

/** A preview of a resource. */
function Look({ one, taken, onToggle }) {
  const [state, setState] = useState(/** @type {any} */ ({ reading: true }));
  useEffect(() => {
    const aborting = new AbortController();
    let last = 0; // the newest request; the answers to older ones are outdated
    const read = () => {
      const turn = ++last;
      act("read", { server: one.server, uri: one.uri }, aborting.signal).then(
        (answer) => turn === last && setState(answer),
        (bad) => aborting.signal.aborted || turn !== last || setState({ words: bad.message }),
      );
    };
    const receive = ({ event }) =>
      event.type === "resourceUpdated" &&
      event.server === one.server &&
      event.uri === one.uri &&
      read();
    const about = { server: one.server, uri: one.uri };
    eventListeners.add(receive);
    // Some servers do not support subscriptions; the preview is still correct.
    act("watch", about).catch(() => {});
    read();
    return () => {
      aborting.abort();
      eventListeners.delete(receive);
      act("unwatch", about).catch(() => {});
    };
  }, []);
  const listed = servers.value
    .find((server) => server.id === one.server)
    ?.resources?.find((resource) => resource.uri === one.uri);
  return html`
    <div class="look">
      <h3>
        <${Say} text=${one.title || listed?.title || listed?.name || one.uri} />
      </h3>
      <p class="small-line">
        <${From} server=${one.server} />${" "}
        <code class="uri">
          <${Say} text=${one.uri} />
        </code>
      </p>
      ${
        listed?.description &&
        html`
          <p class="quiet">
            <${Say} text=${listed.description} />
          </p>
        `
      }
      <div class="buttons">
        <button
          type="button"
          class=${taken ? "" : "main"}
          aria-pressed=${taken ? "true" : "false"}
          onClick=${() =>
            onToggle({
              server: one.server,
              uri: one.uri,
              title: one.title || listed?.title || listed?.name || one.uri,
            })}
        >
          <${Icon} name=${taken ? "check" : "plus"} />
          ${taken ? "Attached" : "Attach"}
        </button>
        ${state.size !== undefined && html`<span class="quiet">${size(state.size)}</span>`}
      </div>
      ${state.reading && html`<p class="quiet">Reading …</p>`}
      ${
        state.words &&
        html`
          <p class="wrong" role="alert">
            <${Say} text=${state.words} />
          </p>
        `
      }
      ${state.contents?.map(
        (contents, at) => html`
          <div key=${at} class="boxed">
            ${
              state.contents.length > 1 &&
              html`
                <code class="uri">
                  <${Say} text=${contents.uri} />
                </code>
              `
            }
            <${Contents} contents=${contents} />
          </div>
        `,
      )}
    </div>
  `;
}

/** A template: with its variables filled in it is an ordinary resource. */
function Template({ server, template, onFilled }) {
  const names = variables(template.uriTemplate);
  const [values, setValues] = useState(
    /** @type {Record<string, string>} */ (Object.fromEntries(names.map((name) => [name, ""]))),
  );
  const [wrong, setWrong] = useState(/** @type {Record<string, string>} */ ({}));
  const [words, setWords] = useState("");
  const form = useRef(/** @type {any} */ (null));
  const completes = servers.value.find((one) => one.id === server)?.completions;
  const expand = async (event) => {
    event.preventDefault();
    const missing = Object.fromEntries(
      names
        .filter((name) => !values[name].trim() && !template.uriTemplate.includes(`{?`))
        .map((name) => [name, "This field is required."]),
    );
    setWrong(missing);
    toFirstWrong(form.current, missing);
    if (Object.keys(missing).length) return;
    try {
      const { uri } = await act("expand", {
        template: template.uriTemplate,
        values: Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "")),
      });
      const given = Object.values(values).filter(Boolean).join(", ");
      onFilled({ uri, title: `${template.title || template.name}: ${given}` });
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
  };
  return html`
    <form ref=${form} class="look fields" noValidate onSubmit=${expand}>
      <h3>
        <${Say} text=${template.title || template.name} />
      </h3>
      <p class="small-line">
        <${From} server=${server} />${" "}
        <code class="uri">
          <${Say} text=${template.uriTemplate} />
        </code>
      </p>
      ${
        template.description &&
        html`
          <p class="quiet">
            <${Say} text=${template.description} />
          </p>
        `
      }
      ${names.map(
        (name, at) => html`
          <${Suggested}
            key=${name}
            focus=${at === 0}
            field=${{
              name,
              title: wordsOf(name),
              kind: "text",
              required: !template.uriTemplate.includes("{?"),
            }}
            value=${values[name]}
            words=${wrong[name]}
            onChange=${(value) => {
              setValues((before) => ({ ...before, [name]: value }));
              setWrong((before) => ({ ...before, [name]: "" }));
            }}
            ask=${
              completes
                ? suggestions(
                    server,
                    { type: "ref/resource", uri: template.uriTemplate },
                    name,
                    values,
                  )
                : undefined
            }
          />
        `,
      )}
      ${
        words &&
        html`
          <p class="wrong" role="alert">
            <${Say} text=${words} />
          </p>
        `
      }
      <div class="buttons">
        <button type="submit" class="main">
          View
        </button>
      </div>
    </form>
  `;
}

/** Open the browser. */
export const chooseResources = () => {
  overlay.value = { name: "resources" };
};
