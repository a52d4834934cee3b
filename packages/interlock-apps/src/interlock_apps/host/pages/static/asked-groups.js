// @ts-check
// Questions about the calls of one step of the model, on one card: grouped by tool, equal calls
// once, with one answer for all that are chosen.
import {
  Clamped,
  Say,
  html,
  several,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../kit/kit.js";
import { Arguments } from "../kit/arguments.js";
import { act } from "../kit/net.js";
import { step, useSeen } from "../kit/seen.js";
import { Annotations, stageOf } from "./asked-calls.js";
import { Ask, LOOKING } from "./ask.js";
import { questions, talk } from "./store.js";

/**
 * Whether a question can be answered together with others. A call with a warning has a card of its
 * own.
 * @param {any} question
 */
export const isGroupable = (question) =>
  question.type === "call" &&
  !!question.group &&
  !question.flagged &&
  !question.risk &&
  !question.warnings?.length;

/**
 * The open questions that are answered together with this one; fewer than two are none.
 * @param {any} question
 * @returns {any[]}
 */
export function companions(question) {
  if (!isGroupable(question)) return [];
  const item = talk(question.session).groups.get(question.group);
  if (!item || item.apart.value) return [];
  const open = item.asked.value.filter((one) => !one.answer.value).map((one) => one.question);
  return open.length > 1 ? open : [];
}

/**
 * The calls of one tool: equal calls are one row.
 * @typedef {{key: string, server: string, question: any, rows: {id: string, ids: string[],
 *   arguments: any}[]}} ToolCalls
 */

/** @param {any[]} open @returns {ToolCalls[]} */
function byTool(open) {
  const tools = /** @type {Map<string, ToolCalls>} */ (new Map());
  for (const question of open) {
    const key = JSON.stringify([question.server, question.tool]);
    let found = tools.get(key);
    if (!found) tools.set(key, (found = { key, server: question.server, question, rows: [] }));
    const equal = JSON.stringify(question.arguments);
    const row = found.rows.find((one) => JSON.stringify(one.arguments) === equal);
    if (row) row.ids.push(question.id);
    else found.rows.push({ id: question.id, ids: [question.id], arguments: question.arguments });
  }
  return [...tools.values()];
}

const isEmpty = (value) => !Object.keys(value ?? {}).length;

/** The item of a conversation for the calls of one step. @param {{item: any}} props */
export function GroupItem({ item }) {
  const open = item.asked.value.filter((one) => !one.answer.value).map((one) => one.question);
  if (open.length < 2 || item.apart.value) return null;
  const apart = () => {
    item.apart.value = true;
  };
  return html`
    <article class="card is-asking" aria-label="Calls that wait for you">
      <div class="card-body">
        <${CallsQuestion} key=${item.group} group=${item.group} open=${open} onApart=${apart} />
      </div>
    </article>
  `;
}

/**
 * May these calls be made? `onApart`: each is asked about on a card of its own.
 * @param {{group: string, open: any[], onApart: () => void}} props
 */
export function CallsQuestion({ group, open, onApart }) {
  const box = useRef(/** @type {any} */ (null));
  const [left, setLeft] = useState(/** @type {Set<string>} */ (new Set()));
  const [all, setAll] = useState(false);
  const tools = byTool(open);
  const rows = tools.flatMap((tool) => tool.rows);
  const chosen = rows.filter((row) => !left.has(row.id));
  const ids = chosen.flatMap((row) => row.ids);
  const shown = JSON.stringify(chosen.map((row) => row.id));
  const values = useMemo(
    () =>
      Object.fromEntries(
        chosen.filter((row) => !isEmpty(row.arguments)).map((row) => [row.id, row.arguments]),
      ),
    [shown],
  );
  const seen = useSeen(box, values);
  // When the chosen calls are answered, the others are the question.
  const before = useRef(rows.length);
  useLayoutEffect(() => {
    if (rows.length < before.current && !chosen.length) setLeft(new Set());
    before.current = rows.length;
  }, [rows.length]);
  const turn = (row) => {
    const now = new Set(left);
    if (!now.delete(row.id)) now.add(row.id);
    setLeft(now);
  };
  const give = async (answer) => {
    await act("answers", { answers: Object.fromEntries(ids.map((id) => [id, answer])) });
    const rest = new Map(questions.value);
    for (const id of ids) rest.delete(id);
    questions.value = rest;
  };
  const count =
    ids.length === open.length ? `all ${open.length}` : `${ids.length} of ${open.length}`;
  const lasting = open.every((question) => question.mayRemember !== false);
  const showAll = () => {
    setAll(true);
    seen.seeAll();
  };
  const question = { id: group, server: tools.length === 1 ? tools[0].server : "" };
  return html`
    <${Ask}
      question=${question}
      title=${`Make ${several(open.length, "call")}?`}
      icon="tool"
      denial=${{ label: `Deny ${count}` }}
      stage=${seen.ready ? `${stageOf(seen)} ${open.length}` : LOOKING}
      give=${give}
      answers=${answersTo({ seen, count, none: !ids.length, lasting, showAll, onApart })}
    >
      <p class="ask-line">
        The model wants to make these calls in one step. Clear the ones that you do not answer now.
      </p>
      <div ref=${box} class="to-approve call-groups">
        ${tools.map(
          (tool) => html`
            <section
              key=${tool.key}
              class="call-group"
              aria-label=${`Calls of ${tool.question.tool}`}
            >
              <h4>
                <${Say} text=${tool.question.title || tool.question.tool} />
                ${" "}
                <span class="quiet">
                  on <${Say} text=${tool.server} />
                </span>
                ${" "}
                <${Annotations}
                  annotations=${tool.question.annotations}
                  trusted=${tool.question.trusted}
                />
              </h4>
              <ul>
                ${tool.rows.map(
                  (row, at) => html`
                    <li key=${row.id}>
                      <label class="call-choice">
                        <input
                          type="checkbox"
                          checked=${!left.has(row.id)}
                          onChange=${() => turn(row)}
                        />
                        <span>
                          Call ${at + 1}
                          ${row.ids.length > 1 ? `, ${row.ids.length} equal calls` : ""}
                        </span>
                      </label>
                      <${Row} row=${row} all=${all} seen=${seen} />
                    </li>
                  `,
                )}
              </ul>
            </section>
          `,
        )}
      </div>
    </${Ask}>
  `;
}

/** The arguments of one call. */
function Row({ row, all, seen }) {
  if (isEmpty(row.arguments)) return html`<p class="quiet">No arguments.</p>`;
  return html`
    <${Clamped} open=${all} onOpen=${() => seen.see(step(row.id))}>
      <${Arguments} value=${row.arguments} at=${step(row.id)} />
    </${Clamped}>
  `;
}

/** The answers to the chosen calls. With unseen values, only a button that says so allows them. */
function answersTo({ seen, count, none, lasting, showAll, onApart }) {
  const apart = { key: "o", label: "One by one", act: onApart };
  const allow = (remember) => (send) => send({ type: "decision", allow: true, remember });
  if (seen.ready && seen.unseen > 0) {
    const blind = `Allow without having seen ${seen.unseen} of ${several(seen.total, "value")}`;
    const words = seen.total === 1 ? "Show all of it" : `Show all ${seen.total} values`;
    return [
      { key: "v", label: words, main: true, act: showAll },
      { label: blind, off: none, act: allow("once") },
      apart,
    ];
  }
  const off = none || !seen.ready;
  const once = { key: "a", label: `Allow ${count}`, main: true, off, act: allow("once") };
  if (!lasting) return [once, apart];
  const session = { key: "s", label: "Allow for this session", off, act: allow("session") };
  return [once, session, apart];
}
