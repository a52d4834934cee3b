// @ts-check
// Skills: what the server lists, the files, and whether they match the digests of their entries.
import { Icon, Say, html, several, size, useState } from "../../kit/kit.js";
import { Json, Plain } from "../../kit/content.js";
import { act } from "../../kit/net.js";
import { show, view } from "../store.js";
import {
  Closed,
  ListBeside,
  NotOpen,
  Wrong,
  hasExtension,
  isOpen,
  keyOf,
  useAct,
} from "./common.js";

const SKILLS = "io.modelcontextprotocol/skills";

/** @param {{connection: any}} props */
function Skills({ connection }) {
  const loaded = useAct("listSkills", { connection: connection.name }, keyOf(connection));
  if (!isOpen(connection)) return html`<${NotOpen} connection=${connection} />`;
  const { skills = [], refused = [] } = loaded.value ?? {};
  const chosen = view.value.skill ?? "";
  const skill = skills.find((one) => one.uri === chosen);
  const items = skills.map((one) => ({ key: one.uri, title: one.name, about: one.description }));
  return html`
    <${ListBeside}
      label="Skills"
      items=${items}
      chosen=${chosen}
      onChoose=${(uri) => show({ skill: uri })}
      loaded=${loaded}
      empty="The server lists no skills."
    >
      ${
        refused.length > 0 &&
        html`
          <div class="error-box" role="alert">
            <p class="wrong">
              <${Icon} name="warn" /> ${several(refused.length, "entry", "entries")} of the list
              cannot be used:
            </p>
            <ul>${refused.map((one) => html`<li key=${one}><${Say} text=${one} /></li>`)}</ul>
          </div>
        `
      }
      ${skill && html`<${Skill} key=${chosen} connection=${connection} skill=${skill} />`}
    </${ListBeside}>
  `;
}

/** One skill: its files, each with whether it matches its digest. */
function Skill({ connection, skill }) {
  const [checked, setChecked] = useState(/** @type {any} */ (null));
  const [file, setFile] = useState(/** @type {any} */ (null));
  const [words, setWords] = useState("");
  const run = (name, body, done) => async () => {
    setWords("");
    try {
      done(await act(name, { connection: connection.name, uri: skill.uri, ...body }));
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
  };
  const files = skill.files.length ? skill.files : ["SKILL.md"];
  const fits = (path) => checked?.files.find((one) => one.path === path);
  return html`
    <article class="look">
      <h2><${Say} text=${skill.name} /></h2>
      <p class="small-line"><code class="wrap"><${Say} text=${skill.uri} /></code></p>
      <p class="wrap"><${Say} text=${skill.description} /></p>
      <p class="quiet small-line wrap">
        ${
          skill.dynamic
            ? "The content is generated. There are no digests; only the frontmatter can be checked."
            : html`
              ${several(skill.files.length, "file")}, ${size(skill.size)}. Fingerprint
              ${" "}<code><${Say} text=${skill.fingerprint} /></code>
            `
        }
      </p>
      <div class="buttons">
        <button type="button" class="main" onClick=${run("checkSkill", {}, setChecked)}>
          Check all files
        </button>
      </div>
      <${Wrong} words=${words} />
      <ul class="files" aria-live="polite">
        ${files.map((path) => {
          const one = fits(path);
          return html`
            <li key=${path}>
              <div class="call-head">
                <code class="grow wrap"><${Say} text=${path} /></code>
                ${
                  one?.fits &&
                  html`<span class="tag"><${Icon} name="check" /> matches its digest</span>`
                }
                <button
                  type="button"
                  class="small"
                  onClick=${run("readSkill", { path }, setFile)}
                >
                  Read
                </button>
              </div>
              ${one && !one.fits && html`<${Wrong} words=${one.words} />`}
              ${file?.path === path && html`<${Plain} text=${file.text} />`}
            </li>
          `;
        })}
      </ul>
      <${Closed} title="Frontmatter"><${Json} value=${skill.frontmatter} /></${Closed}>
    </article>
  `;
}

/** @type {import("./index.js").FeaturePanel} */
export const panel = {
  id: "skills",
  title: "Skills",
  available: (connection) => hasExtension(connection, SKILLS),
  Panel: Skills,
};
