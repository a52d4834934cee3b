// @ts-check
// The log of everything that happened: search, filters, entries, export.
import {
  Icon,
  Say,
  cls,
  exactly,
  html,
  json,
  several,
  useEffect,
  useId,
  useRef,
  useState,
  visible,
} from "../kit/kit.js";
import { asks, eventListeners, open, panel, servers } from "./store.js";
import { act } from "../kit/net.js";

const PAGE = 60;
const PAUSE = 200;

/** @type {Record<string, [any, string]>} */
const KINDS = {
  sessionBegan: ["talk", "Conversation started"],
  sessionResumed: ["talk", "Resumed"],
  modelChosen: ["talk", "Model chosen"],
  toolOfferChosen: ["tool", "Tools chosen"],
  sessionChanged: ["edit", "Conversation changed"],
  sessionDeleted: ["trash", "Conversation deleted"],
  branchChosen: ["branch", "Branch chosen"],
  personSaid: ["talk", "You said"],
  messageQueued: ["wait", "Message queued"],
  messageUnqueued: ["cross", "Queued message removed"],
  modelAsked: ["send", "Model asked"],
  modelSaid: ["talk", "Model said"],
  modelFailed: ["warn", "Model failed"],
  trimmed: ["list", "Trimmed"],
  turnEnded: ["check", "Turn ended"],
  callProposed: ["tool", "Call proposed"],
  callDecided: ["ask", "Call decided"],
  callEnded: ["tool", "Call ended"],
  taskBegan: ["tool", "Task began"],
  taskEnded: ["tool", "Task ended"],
  taskGiven: ["send", "Task result sent"],
  resultsGiven: ["send", "Results sent"],
  asked: ["ask", "Question"],
  answered: ["check", "Answer"],
  sampleEnded: ["talk", "Sampling"],
  resourceRead: ["file", "Resource read"],
  promptGot: ["prompt", "Prompt fetched"],
  serverState: ["server", "Server"],
  pinned: ["lock", "Pinned"],
  rootsChanged: ["folder", "Folders"],
  ruleRemembered: ["rule", "Rule"],
  settingsChanged: ["gear", "Settings"],
  notice: ["bell", "Notice"],
};

const blocks = (content) =>
  (Array.isArray(content) ? content : [content])
    .map((block) => block?.text ?? block?.name ?? block?.type ?? "")
    .join(" ");

/** An entry in one line. @param {any} event */
function summary(event) {
  switch (event.type) {
    case "sessionBegan":
      return `${event.title} · ${event.model}`;
    case "sessionChanged":
      return event.title ?? (event.pinned ? "pinned" : "no longer pinned");
    case "sessionDeleted":
      return `${event.conversation}: ${several(event.entries, "entry", "entries")} erased`;
    case "branchChosen":
      return `goes on after the entry ${event.after}`;
    case "personSaid":
      return event.prompt
        ? `/${event.prompt} of ${event.server}`
        : (event.messages ?? []).map((message) => blocks(message.content)).join(" ");
    case "modelChosen":
      return `${event.model} ${event.effort ?? ""}`;
    case "toolOfferChosen":
      return event.offer;
    case "messageQueued":
      return blocks(event.message.content);
    case "messageUnqueued":
      return event.id;
    case "modelAsked":
      return `${event.model}, step ${event.step}, about ${event.tokens} tokens`;
    case "modelSaid":
      return `${event.model}: ${blocks(event.result.content)}`;
    case "modelFailed":
    case "trimmed":
    case "notice":
      return event.words;
    case "turnEnded":
      return event.words || event.reason;
    case "callProposed":
      return `${event.tool || event.name} ${JSON.stringify(event.arguments ?? {})}`;
    case "callDecided":
      return [`${event.allow ? "allowed" : "denied"} by ${event.by}`, event.why]
        .filter(Boolean)
        .join(": ");
    case "taskBegan":
      return `${event.tool} is the task ${event.task}`;
    case "taskGiven":
      return (event.messages ?? []).map((message) => blocks(message.content)).join(" ");
    case "callEnded":
    case "taskEnded":
      return event.error || `${event.tool}: ${blocks(event.result?.content ?? [])}`;
    case "resultsGiven":
      return event.results.map((one) => blocks(one.content ?? [])).join(" ");
    case "asked":
      return asks(event.question);
    case "answered":
      return event.answer.type === "decision"
        ? event.answer.allow
          ? "yes"
          : `no ${event.answer.reason ?? ""}`
        : (event.answer.action ?? `nobody: ${event.answer.words ?? ""}`);
    case "sampleEnded":
      return event.error || event.model;
    case "resourceRead":
      return `${event.uri}${event.error ? `: ${event.error}` : ""}`;
    case "promptGot":
      return `${event.prompt}${event.error ? `: ${event.error}` : ""}`;
    case "serverState":
      return `${event.state} ${event.words ?? ""}`;
    case "pinned":
      return `${event.kind} ${event.name}: ${event.how}`;
    case "rootsChanged":
      return Object.values(event.folders).flat().join(", ");
    case "ruleRemembered":
      return `${event.remember}: ${JSON.stringify(event.rule)}`;
    case "settingsChanged":
      return `${event.what} ${event.name} ${event.how} in ${event.file}`;
    default:
      return "";
  }
}

const serverOf = (event) => event.server || event.question?.server || "";

/** The log, in the panel. */
export function AuditPanel() {
  const [words, setWords] = useState("");
  const [server, setServer] = useState("");
  const [kind, setKind] = useState("");
  const [session, setSession] = useState(panel.value?.session ?? "");
  const [notes, setNotes] = useState(/** @type {any[]} */ ([]));
  const [more, setMore] = useState(false);
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(true);
  const [fresh, setFresh] = useState(0);
  const wanted = useRef(0);
  const id = useId();
  const ask = async (before) => {
    const turn = (wanted.current += 1);
    setBusy(true);
    try {
      const answer = await act("searchLog", {
        words,
        ...(session ? { session } : {}),
        ...(server ? { server } : {}),
        ...(kind ? { kinds: [kind] } : {}),
        ...(before ? { before } : {}),
        limit: PAGE,
      });
      if (turn !== wanted.current) return;
      const found = [...answer.notes].sort((one, other) => other.seq - one.seq);
      setNotes((was) => (before ? [...was, ...found] : found));
      setMore(found.length === PAGE);
      setWrong("");
      if (!before) setFresh(0);
    } catch (bad) {
      if (turn === wanted.current) setWrong(bad instanceof Error ? bad.message : String(bad));
    }
    if (turn === wanted.current) setBusy(false);
  };
  useEffect(() => {
    const timer = window.setTimeout(() => ask(0), PAUSE);
    return () => window.clearTimeout(timer);
  }, [words, server, kind, session]);
  useEffect(() => {
    const receive = (noted) => noted.seq && setFresh((count) => count + 1);
    eventListeners.add(receive);
    return () => eventListeners.delete(receive);
  }, []);
  return html`
    <div class="fields audit-filter">
      <input
        type="search"
        class="picker-search"
        placeholder="Search the log"
        aria-label="Search the log"
        value=${words}
        onInput=${(event) => setWords(event.currentTarget.value)}
        autocomplete="off"
      />
      <div class="field-row">
        <label for=${`${id}-server`} class="hidden-text">
          Server
        </label>
        <select
          id=${`${id}-server`}
          value=${server}
          onChange=${(event) => setServer(event.currentTarget.value)}
        >
          <option value="">All servers</option>
          ${servers.value.map(
            (one) => html`
              <option key=${one.id} value=${one.id}>
                ${visible(one.id)}
              </option>
            `,
          )}
        </select>
        <label for=${`${id}-kind`} class="hidden-text">
          Kind
        </label>
        <select
          id=${`${id}-kind`}
          value=${kind}
          onChange=${(event) => setKind(event.currentTarget.value)}
        >
          <option value="">All kinds</option>
          ${Object.entries(KINDS).map(
            ([name, [, title]]) => html`
              <option key=${name} value=${name}>
                ${title}
              </option>
            `,
          )}
        </select>
      </div>
      <div class="buttons">
        ${
          session &&
          html`
            <span class="chip">
              One conversation
              <button
                type="button"
                aria-label="All conversations"
                onClick=${() => setSession("")}
              >
                <${Icon} name="close" />
              </button>
            </span>
          `
        }
        <a
          class="button small"
          href=${`api/log.jsonl${session ? `?session=${encodeURIComponent(session)}` : ""}`}
          download="interlock-log.jsonl"
        >
          <${Icon} name="out" />
          Export
        </a>
        ${
          fresh > 0 &&
          html`
            <button type="button" class="small" onClick=${() => ask(0)}>
              ${several(fresh, "new entry", "new entries")}
            </button>
          `
        }
      </div>
    </div>
    ${
      wrong &&
      html`
        <p class="wrong" role="alert">
          <${Say} text=${wrong} />
        </p>
      `
    }
    <ol class="audit" aria-label="Entries of the log" aria-busy=${busy ? "true" : "false"}>
      ${notes.map(
        (noted) => html`
          <${Entry} key=${noted.seq} noted=${noted} />
        `,
      )}
    </ol>
    ${!notes.length && !busy && !wrong && html`<p class="quiet center">No entry matches.</p>`}
    ${
      more &&
      html`
        <div class="buttons">
          <button type="button" disabled=${busy} onClick=${() => ask(notes.at(-1).seq)}>
            Show older
          </button>
        </div>
      `
    }
  `;
}

/** One entry: a line that unfolds. */
function Entry({ noted }) {
  const { event, at, seq } = noted;
  const [icon, title] = KINDS[event.type] ?? ["list", event.type];
  const [whole, setWhole] = useState(false);
  return html`
    <li class=${cls("entry", whole && "whole")}>
      <button
        type="button"
        class="entry-head"
        aria-expanded=${whole ? "true" : "false"}
        onClick=${() => setWhole(!whole)}
      >
        <${Icon} name=${icon} />
        <span class="grow">
          <span class="entry-line">
            <strong>${title}</strong>
            ${
              serverOf(event) &&
              html`
                ${" "}
                <span class="tag">
                  <${Say} text=${serverOf(event)} />
                </span>
              `
            }${" "}
            <time class="quiet" dateTime=${new Date(at * 1000).toISOString()}>
              ${exactly(at)}
            </time>
          </span>
          <span class="entry-text">
            <${Say} text=${summary(event)} />
          </span>
        </span>
      </button>
      ${
        whole &&
        html`
          <div class="entry-body">
            <p class="quiet small-line">
              Number ${seq}
              ${
                event.session &&
                html`
                  ${" "}
                  ·${" "}
                  <button type="button" class="small quiet" onClick=${() => open(event.session)}>
                    Open the conversation
                  </button>
                `
              }
            </p>
            <pre class="wrap">${visible(json(event))}</pre>
          </div>
        `
      }
    </li>
  `;
}
