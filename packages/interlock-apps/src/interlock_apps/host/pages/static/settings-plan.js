// @ts-check
// A planned change of a configuration file: the whole command, the difference, a test, and the
// button that writes it.
import { Fold, Icon, Say, Warnings, html, several, useState, visible } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { StartFacts } from "./asked-servers.js";
import { useJob } from "./setup-job.js";

const SIGNS = { "+": "came", "-": "went" };

/** A unified diff of a file. @param {{text: string}} props */
export function FileDifference({ text }) {
  // The first two lines name the file; further lines without a sign are not of the file.
  const lines = text
    .split("\n")
    .slice(2)
    .filter((line) => /^[ +-]/.test(line));
  if (!lines.length) return html`<p class="quiet">The file does not change.</p>`;
  return html`
    <div class="diff-box" tabindex="0" role="group" aria-label="The change of the file">
      <table class="diff">
        <caption class="hidden-text">What changes in the file, line by line</caption>
        <tbody>
          ${lines.map(
            (line, at) => html`
              <tr key=${at} class=${SIGNS[/** @type {"+" | "-"} */ (line[0])] ?? ""}>
                <td class="sign">${line[0]}</td>
                <td class="text">${visible(line.slice(1))}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

/** What a test of a server printed and found. @param {{job: import("./setup-job.js").Job}} props */
export function TestResult({ job }) {
  const lines = job.events.filter((event) => event.kind === "stderr");
  const last = job.events.findLast((event) => event.kind !== "stderr");
  if (!job.running && !job.events.length && !job.wrong) return null;
  return html`
    <div class="test-result" role="group" aria-label="Result of the test">
      <p role="status" class="small-line">
        ${
          job.running &&
          html`
            <span class="dots" aria-hidden="true"></span> The server is starting …
          `
        }
        ${last?.kind === "offers" && html`<${Icon} name="check" /> ${offerWords(last)}`}
      </p>
      ${
        ["failed", "login"].includes(last?.kind) &&
        html`
          <p class="wrong" role="alert">
            <${Say} text=${last.words} />
            ${last.kind === "login" && " Save the server; then you can log in."}
          </p>
        `
      }
      ${job.wrong && html`<p class="wrong" role="alert"><${Say} text=${job.wrong} /></p>`}
      ${last?.kind === "offers" && html`<${Tools} tools=${last.tools} />`}
      ${
        lines.length > 0 &&
        html`
          <${Fold}
            title=${`Its messages on stderr (${lines.length})`}
            open=${last?.kind !== "offers"}
          >
            <div class="server-log" tabindex="0" role="group" aria-label="Messages on stderr">
              ${lines.map((line, at) => html`<p key=${at} class="wrap">${visible(line.text)}</p>`)}
            </div>
          </${Fold}>
        `
      }
    </div>
  `;
}

const offerWords = (found) =>
  `${visible(found.name || "The server")} works (${found.revision}): ${[
    several(found.toolCount, "tool"),
    found.prompts && several(found.prompts, "prompt"),
    found.resources && several(found.resources, "resource"),
  ]
    .filter(Boolean)
    .join(", ")}.`;

/** @param {{tools: any[]}} props */
const Tools = ({ tools }) =>
  !tools.length
    ? null
    : html`
      <${Fold} title=${several(tools.length, "tool")} open=${tools.length <= 12}>
        <ul class="offers">
          ${tools.map(
            (tool) => html`
              <li key=${tool.name}>
                <strong>
                  <${Say} text=${tool.title || tool.name} />
                </strong>${" "}
                <code class="quiet">
                  <${Say} text=${tool.name} />
                </code>
                <${Warnings} warnings=${tool.warnings} />
                <p class="quiet clamp wrap">
                  <${Say} text=${tool.description} />
                </p>
              </li>
            `,
          )}
        </ul>
      </${Fold}>
    `;

/**
 * A planned change of a server, which the person reads, tests and confirms.
 * @param {{
 *   plan: any, title: any, label: string, children?: any,
 *   onDone: (server: string) => void, onBack: () => void,
 * }} props `onDone` gets the server, or "" if it was removed
 */
export function ServerPlan({ plan, title, label, children, onDone, onBack }) {
  const job = useJob();
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const write = async () => {
    setBusy(true);
    setWrong("");
    try {
      const { server } = await act("applyPlan", { plan: plan.plan });
      onDone(plan.start ? server : "");
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
      setBusy(false);
    }
  };
  return html`
    <div class="plan" role="group" aria-label="Review the change">
      <h3>${title}</h3>
      ${plan.start && html`<${StartFacts} question=${{ ...plan.start, source: "" }} />`}
      ${plan.start && html`<${Warnings} warnings=${plan.start.warnings} />`}
      ${children}
      ${plan.problems.map(
        (words) => html`
          <p key=${words} class="quiet small-line">
            <${Icon} name="warn" /> <${Say} text=${words} />
          </p>
        `,
      )}
      <p class="quiet">
        ${plan.isNew ? "This file is created:" : "This file changes:"}${" "}
        <code class="wrap">
          <${Say} text=${plan.file} />
        </code>
      </p>
      <${FileDifference} text=${plan.difference} />
      <${TestResult} job=${job} />
      ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
      <div class="buttons">
        <button type="button" class="main" disabled=${busy} onClick=${write}>${label}</button>
        ${
          plan.start &&
          html`
            <button
              type="button"
              disabled=${busy}
              onClick=${() =>
                job.running ? job.cancel() : job.start("tryPlan", { plan: plan.plan })}
            >
              ${job.running ? "Cancel the test" : "Test it once"}
            </button>
          `
        }
        <button type="button" class="quiet" disabled=${busy} onClick=${onBack}>Back</button>
      </div>
    </div>
  `;
}
