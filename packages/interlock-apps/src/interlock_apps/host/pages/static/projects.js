// @ts-check
// Projects: the choice in the side bar, and the dialog that changes one.
import { Dialog, IconButton, Say, html, useEffect, useId, useState, visible } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { attempt, chooseProject, open, overlay, project, projects, servers } from "./store.js";

/** Which project is shown, and the way to change it. */
export function ProjectChoice() {
  const edit = (name) => {
    overlay.value = { name: "project", project: name };
  };
  if (!projects.value.length)
    return html`
      <button type="button" class="small quiet project-new" onClick=${() => edit("")}>
        New project
      </button>
    `;
  const choose = (event) => {
    const name = event.currentTarget.value;
    if (name === "+") {
      event.currentTarget.value = project.value;
      return edit("");
    }
    chooseProject(name);
    open("");
  };
  const chosen = projects.value.find((one) => one.name === project.value);
  return html`
    <div class="project-choice">
      <select class="small" aria-label="Project" value=${project.value} onChange=${choose}>
        <option value="">All projects</option>
        ${projects.value.map(
          (one) => html`
            <option key=${one.name} value=${one.name}>${visible(one.name)}</option>
          `,
        )}
        <option value="+">New project …</option>
      </select>
      ${
        chosen?.file &&
        html`
          <${IconButton}
            name="edit"
            label="Change the project"
            onClick=${() => edit(chosen.name)}
          />
        `
      }
    </div>
  `;
}

const EXAMPLE = `[[rules]]
decision = "allow"
server = "travel"
tool = "search_*"`;

/** @param {string} text */
const lines = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** @param {{project: string, onClose: () => void}} props `project`: its name; "" for a new one */
export function ProjectDialog({ project: was, onClose }) {
  const known = projects.value.find((one) => one.name === was);
  const [name, setName] = useState(was);
  const [instructions, setInstructions] = useState(known?.instructions ?? "");
  const [some, setSome] = useState(/** @type {string[] | null} */ (known?.servers ?? null));
  const [folders, setFolders] = useState((known?.folders ?? []).join("\n"));
  const [rules, setRules] = useState("");
  const [wrong, setWrong] = useState("");
  const id = useId();
  useEffect(() => {
    if (was)
      act("readProject", { name: was }).then(
        (read) => setRules(read.rules),
        (bad) => setWrong(bad.message),
      );
  }, []);
  const save = async (event) => {
    event.preventDefault();
    try {
      const saved = await act("saveProject", {
        name,
        was,
        instructions,
        servers: some,
        folders: lines(folders),
        rules,
      });
      onClose();
      chooseProject(saved.name);
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
    }
  };
  const remove = async () => {
    if (await attempt("removeProject", { name: was })) onClose();
  };
  const field = (key, words, box, note = "") => html`
    <div class="field">
      <label for=${`${id}-${key}`}>${words}</label>
      ${box}
      ${note && html`<p class="quiet small-line">${note}</p>`}
    </div>
  `;
  return html`
    <${Dialog} title=${was ? "Project" : "New project"} onClose=${onClose}>
      <form class="project-form" onSubmit=${save}>
        ${field(
          "name",
          "Name",
          html`
            <input
              id=${`${id}-name`}
              value=${name}
              maxlength="80"
              required
              autofocus
              onInput=${(event) => setName(event.currentTarget.value)}
            />
          `,
        )}
        ${field(
          "instructions",
          "Instructions for the model",
          html`
            <textarea
              id=${`${id}-instructions`}
              rows="4"
              value=${instructions}
              onInput=${(event) => setInstructions(event.currentTarget.value)}
            ></textarea>
          `,
        )}
        <${ServerChoice} some=${some} onChange=${setSome} />
        ${field(
          "folders",
          "Folders",
          html`
            <textarea
              id=${`${id}-folders`}
              rows="2"
              placeholder="~/Trips"
              value=${folders}
              onInput=${(event) => setFolders(event.currentTarget.value)}
            ></textarea>
          `,
          "One a line. The servers of the project may work in them as soon as it has a " +
            "conversation.",
        )}
        ${field(
          "rules",
          "Rules",
          html`
            <textarea
              id=${`${id}-rules`}
              class="code"
              rows="6"
              spellcheck="false"
              placeholder=${EXAMPLE}
              value=${rules}
              onInput=${(event) => setRules(event.currentTarget.value)}
            ></textarea>
          `,
          "In the form of a policy file. They apply in addition to the rules of the host.",
        )}
        ${
          known?.file &&
          html`
            <p class="quiet small-line">
              File: <code><${Say} text=${known.file} /></code>
            </p>
          `
        }
        ${
          wrong &&
          html`
            <p class="wrong" role="alert">
              <${Say} text=${wrong} />
            </p>
          `
        }
        <div class="buttons">
          <button type="submit" class="main">Save</button>
          <button type="button" onClick=${onClose}>Cancel</button>
          ${
            was &&
            html`
              <span class="grow"></span>
              <button type="button" class="deny" onClick=${remove}>Remove the project</button>
            `
          }
        </div>
      </form>
    </${Dialog}>
  `;
}

/**
 * Which servers the model gets.
 * @param {{some: string[] | null, onChange: (servers: string[] | null) => void}} props
 */
function ServerChoice({ some, onChange }) {
  const all = servers.value.map((one) => one.id);
  const listed = [...new Set([...all, ...(some ?? [])])];
  const turn = (server) => (event) =>
    onChange(
      event.currentTarget.checked
        ? [...(some ?? []), server]
        : (some ?? []).filter((one) => one !== server),
    );
  return html`
    <fieldset class="project-servers">
      <legend>Servers</legend>
      <label>
        <input
          type="checkbox"
          checked=${some === null}
          onChange=${(event) => onChange(event.currentTarget.checked ? null : all)}
        />
        All servers
      </label>
      ${
        some !== null &&
        listed.map(
          (server) => html`
            <label key=${server}>
              <input type="checkbox" checked=${some.includes(server)} onChange=${turn(server)} />
              <${Say} text=${server} />
            </label>
          `,
        )
      }
    </fieldset>
  `;
}
