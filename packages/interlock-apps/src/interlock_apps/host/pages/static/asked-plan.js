// @ts-check
// The plan of a model: its steps, of which all or some are approved.
import {
  Clamped,
  From,
  Say,
  Warnings,
  html,
  several,
  useMemo,
  useRef,
  useState,
} from "../kit/kit.js";
import { Arguments } from "../kit/arguments.js";
import { step as pointer, useSeen } from "../kit/seen.js";
import { stageOf } from "./asked-calls.js";
import { Ask } from "./ask.js";

/** The planned arguments without those that are left open. @param {any} step */
function planned(step) {
  const open = new Set(step.open ?? []);
  return Object.fromEntries(
    Object.entries(step.arguments ?? {}).filter(([name]) => !open.has(name)),
  );
}

/** May the model make the calls of its plan? Steps with warnings are not preselected. */
export function PlanQuestion({ question }) {
  const steps = question.steps ?? [];
  const plain = () => new Set([...steps.keys()].filter((at) => !steps[at].warnings?.length));
  const box = useRef(/** @type {any} */ (null));
  const [chosen, setChosen] = useState(plain);
  const [all, setAll] = useState(false);
  const shown = [...chosen].sort((one, other) => one - other);
  const values = useMemo(
    () =>
      Object.fromEntries(
        shown
          .map((at) => [`s${at}`, planned(steps[at])])
          .filter(([, value]) => Object.keys(value).length),
      ),
    [shown.join()],
  );
  const seen = useSeen(box, values);
  const turn = (at) => {
    const now = new Set(chosen);
    if (!now.delete(at)) now.add(at);
    setChosen(now);
  };
  const whole = chosen.size === steps.length;
  const allow = (send) => send({ type: "decision", allow: true, only: shown });
  const label = whole
    ? `Approve ${steps.length === 1 ? "it" : `all ${steps.length}`}`
    : `Approve ${chosen.size} of ${steps.length}`;
  let answers = [{ key: "a", label, main: true, off: !chosen.size || !seen.ready, act: allow }];
  if (seen.ready && seen.unseen > 0) {
    const blind = `Approve without having seen ${seen.unseen} of ${several(seen.total, "value")}`;
    const show = () => {
      setAll(true);
      seen.seeAll();
    };
    answers = [
      { key: "v", label: `Show all ${seen.total} values`, main: true, off: false, act: show },
      { key: "", label: blind, main: false, off: !chosen.size, act: allow },
    ];
  }
  return html`
    <${Ask}
      question=${question}
      title=${`The model plans ${several(steps.length, "step")}`}
      icon="list"
      denial=${{ label: "Do not approve" }}
      stage=${stageOf(seen)}
      answers=${answers}
    >
      <p class="ask-line">
        Calls that are an approved step run without a question. You are asked about every other
        call.
      </p>
      <ol ref=${box} class="plan to-approve">
        ${steps.map(
          (step, at) => html`
            <li key=${at}>
              <label class="call-choice">
                <input type="checkbox" checked=${chosen.has(at)} onChange=${() => turn(at)} />
                <span class="grow">
                  <strong>
                    <${Say} text=${step.title || step.tool} />
                  </strong>
                  ${step.times > 1 ? ` up to ${step.times} times` : ""}
                </span>
                <${From} server=${step.server} />
              </label>
              ${
                step.why &&
                html`
                  <p class="quiet">
                    <${Say} text=${step.why} />
                  </p>
                `
              }
              <${Warnings} warnings=${step.warnings} />
              <${Step} step=${step} at=${at} all=${all} seen=${seen} />
            </li>
          `,
        )}
      </ol>
    </${Ask}>
  `;
}

/** The arguments of a step, and those for which any value fits. */
function Step({ step, at, all, seen }) {
  const values = planned(step);
  const open = step.open ?? [];
  return html`
    ${
      Object.keys(values).length > 0 &&
      html`
        <${Clamped} open=${all} onOpen=${() => seen.see(pointer(`s${at}`))}>
          <${Arguments} value=${values} at=${pointer(`s${at}`)} />
        </${Clamped}>
      `
    }
    ${
      open.length > 0 &&
      html`
        <p class="note">
          Any value fits:${" "}
          ${open.map(
            (name) => html`
              <code key=${name}>
                <${Say} text=${name} />
              </code>${" "}
            `,
          )}
        </p>
      `
    }
    ${!open.length && !Object.keys(values).length && html`<p class="quiet">No arguments.</p>`}
  `;
}
