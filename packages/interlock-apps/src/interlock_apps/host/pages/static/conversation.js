// @ts-check
// The conversation in the middle: all its events in order, with new ones at the end.
import {
  Fold,
  From,
  Icon,
  Say,
  cls,
  html,
  several,
  useLayoutEffect,
  useRef,
  useState,
  visible,
  when,
  wordsOf,
} from "../kit/kit.js";
import { Settled, show } from "./ask.js";
import { GroupItem } from "./asked-groups.js";
import { CallCard } from "./call-card.js";
import { Content, Plain, Pointed, Value } from "../kit/content.js";
import { FirstSteps, isNew } from "./first-steps.js";
import { splitAtMarkers } from "./untrusted-text.js";
import { Markdown } from "../kit/markdown.js";
import { applyMode } from "./modes.js";
import { dollars } from "./meter.js";
import { AnswerActions, EditMessage, EmptyBranch, SaidActions } from "./message-actions.js";
import { Question } from "./question.js";
import { follow, revealItem, useItemWindow } from "./item-window.js";
import { barred, reachable } from "../kit/net.js";
import {
  attempt,
  current,
  draft,
  entitle,
  isLive,
  open,
  overlay,
  project,
  seek,
  servers,
  sessions,
  talk,
} from "./store.js";

const NEAR = 80;
/** The key in a block's `_meta` for the file that it comes from. */
const FILE = "io.interlock/file";
const fileOf = (block) => (block.block ?? block)._meta?.[FILE];
const list = (content) => (Array.isArray(content) ? content : [content]);

/** The person's message with its actions, or a box to edit it. */
function SaidItem({ item }) {
  const [editing, setEditing] = useState(false);
  if (editing) return html`<${EditMessage} item=${item} onDone=${() => setEditing(false)} />`;
  return html`
    <${Said} item=${item} />
    <${SaidActions} item=${item} onEdit=${() => setEditing(true)} />
  `;
}

/** The person's message, or the prompt they chose. */
function Said({ item }) {
  const { messages = [], attached = [], server, prompt, arguments: values = {} } = item.event;
  const beside = new Set(attached.map((one) => one.uri));
  const given = new Map(attached.map((one) => [one, /** @type {string[]} */ ([])]));
  const own = (content) =>
    list(content)
      .filter((block) => !(block.type === "resource" && beside.has(block.resource.uri)))
      .filter((block) => !fileOf(block)?.label)
      .flatMap((block) =>
        block.type === "text"
          ? splitAtMarkers(block.text).map((piece) => ({ type: "text", ...piece }))
          : [block],
      );
  // Attachments are shown below with their titles. Only an attachment known to the page itself is
  // attributed to its server.
  const rest = (block) => {
    const whose =
      block.what &&
      attached.find(
        (one) =>
          block.what === `resource ${one.uri} of ${one.server}` ||
          block.what === `what the app ${one.uri} of ${one.server} shows`,
      );
    if (whose) given.get(whose)?.push(block.text);
    return !whose;
  };
  const said = messages
    .map((message) => ({ role: message.role, blocks: own(message.content).filter(rest) }))
    .filter((message) => message.blocks.length);
  const shown = html`
    ${said.map((message, at) =>
      message.blocks.map(
        (block, place) => html`
          <div key=${`${at}.${place}`} class=${cls("prompt-part", message.role)}>
            ${
              block.what
                ? html`
                  <${Fold}
                    title=${html`
                      <${Icon} name="file" /> <${Say} text=${block.what} />
                    `}
                  >
                    <${Plain} text=${block.text} />
                  </${Fold}>
                `
                : block.type === "text"
                  ? html`
                    <p class="wrap">
                      <${Say} text=${block.text} />
                    </p>
                  `
                  : html`
                    <${Content} block=${block} server=${server} />
                  `
            }
          </div>
        `,
      ),
    )}
  `;
  return html`
    <article class="said" aria-label="You">
      ${
        prompt
          ? html`
            <p class="prompt-line">
              <${Icon} name="prompt" />
              <span>
                Prompt${" "}
                <strong>
                  <${Say} text=${titleOf(server, prompt)} />
                </strong>
              </span>
              <${From} server=${server} />
            </p>
            ${
              Object.keys(values).length > 0 &&
              html`
                <${Value}
                  value=${Object.fromEntries(
                    Object.entries(values).map(([name, value]) => [
                      argumentOf(server, prompt, name),
                      value,
                    ]),
                  )}
                />
              `
            }
            <${Fold} title=${`What it says, ${several(said.length, "message")}`}>${shown}</${Fold}>
          `
          : shown
      }
      ${
        attached.length > 0 &&
        html`
          <div class="attachments">
            ${attached.map(
              (one) => html`
                <${Fold}
                  key=${one.server + one.uri}
                  title=${html`
                    <${Icon} name="file" /> <${Say} text=${one.title || one.uri} />${" "}
                    <${From} server=${one.server} />
                  `}
                >
                  ${
                    given.get(one)?.length
                      ? html`
                        <code class="uri">
                          <${Say} text=${one.uri} />
                        </code>
                        ${given.get(one)?.map(
                          (text, at) => html`
                            <${Content}
                              key=${at}
                              block=${{ type: "text", text: bare(text, one.uri) }}
                            />
                          `,
                        )}
                      `
                      : html`
                        <${Pointed} ...${{ server: one.server, uri: one.uri, title: one.title }} />
                      `
                  }
                </${Fold}>
              `,
            )}
          </div>
        `
      }
      <time class="at" dateTime=${new Date(item.at * 1000).toISOString()}>
        ${when(item.at)}
      </time>
    </article>
  `;
}

/**
 * The text of a resource, without the line that names it for the model.
 * @param {string} text
 * @param {string} uri
 */
const bare = (text, uri) =>
  text.startsWith(`Resource ${uri}`) ? text.replace(/^[^\n]*:\n/, "") : text;
const argumentOf = (server, prompt, name) =>
  servers.value
    .find((one) => one.id === server)
    ?.prompts?.find((one) => one.name === prompt)
    ?.arguments?.find((one) => one.name === name)?.title || wordsOf(name);
const titleOf = (server, prompt) =>
  servers.value.find((one) => one.id === server)?.prompts?.find((one) => one.name === prompt)
    ?.title || prompt;

/** The model's text, during and after streaming. */
function ModelItem({ item }) {
  const text = item.text.value;
  const thought = item.thought.value;
  const done = item.done.value;
  const doing = item.doing.value;
  const notes = item.notes.value;
  const others = list(item.result.value?.content ?? []).filter(
    (block) => block && !["text", "tool_use"].includes(block.type),
  );
  if (done && !text && !thought && !notes.length && !others.length) return null;
  return html`
    <article
      class=${cls("answer", !done && "streaming")}
      aria-label="Model"
      aria-busy=${done ? "false" : "true"}
    >
      ${
        thought &&
        html`
          <${Fold} class="thought" title=${done ? "Thoughts" : "Thinking …"}>
            <p class="wrap">
              <${Say} text=${thought} />
            </p>
          </${Fold}>
        `
      }
      ${notes.map(
        (words, at) => html`
          <p key=${at} class="quiet small-line note-line">
            <${Icon} name=${done ? "list" : "wait"} /> <${Say} text=${words} />
          </p>
        `,
      )}
      ${text && html`<${Markdown} text=${text} />`}
      ${others.map(
        (block, at) => html`
          <${Content} key=${at} block=${block} />
        `,
      )}
      ${
        !done &&
        (doing
          ? html`
            <p class="quiet small-line">
              <span class="dots" aria-hidden="true"></span> is preparing a call to${" "}
              <code>
                <${Say} text=${doing} />
              </code>
            </p>
          `
          : !text &&
            html`
              <p class="quiet small-line">
                <span class="dots" aria-hidden="true"></span>${" "}
                <span class="hidden-text">The model is working.</span>
              </p>
            `)
      }
    </article>
    ${done && (text || others.length > 0) && html`<${AnswerActions} item=${item} />`}
  `;
}

/** A question that belongs to no call, and its outcome. */
function QuestionItem({ item }) {
  const { asked } = item;
  return asked.answer.value
    ? html`
      <${Settled} asked=${asked} />
    `
    : html`
      <div class="card is-asking">
        <div class="card-body">
          <${Question} question=${asked.question} />
        </div>
      </div>
    `;
}

/** @type {Record<string, string>} */
const REASONS = {
  cancelled: "You stopped it.",
  steps: "Stopped: one turn may not take more steps.",
  tokens: "Stopped: one turn may not take more tokens.",
  seconds: "Stopped: one turn may not take longer.",
  failed: "The turn failed.",
  refused: "The model refused.",
};

/** The host's words for a turn that the person cancelled; the person is the reader here. */
const CANCELLED = "Cancelled by the user.";

/** The tokens of a turn, and its price if the model has prices. @param {any} event */
function tokens({ usage, price }) {
  if (!usage || !(usage.input || usage.output)) return "";
  const [sent, got] = [usage.input ?? 0, usage.output ?? 0].map((count) =>
    count.toLocaleString("en"),
  );
  return `${sent} tokens in, ${got} out${costOf({ price })}`;
}

/** A price after a comma; "" if there is none. @param {any} event */
const costOf = ({ price }) => (price === undefined || price === null ? "" : `, ${dollars(price)}`);

/**
 * The end of a turn: the reason unless it is obvious, its usage, and a retry button after a
 * failure.
 */
function EndedItem({ item }) {
  const { session, reason, words } = item.event;
  const took = tokens(item.event);
  const ok = reason === "done";
  const why = words && words !== CANCELLED ? html`<${Say} text=${words} />` : REASONS[reason];
  const retriable = !ok && talk(session).retriable.value === item;
  if (!took && !retriable && (ok || item.alreadyShown)) return null;
  return html`
    <div class=${cls("turn-end", !ok && "stopped")}>
      ${!ok && !item.alreadyShown && html`<span class="why">${why}</span>`}
      ${took && html`<span class="quiet">${took}</span>`}
      ${retriable && html`<${TryAgain} session=${session} />`}
    </div>
  `;
}

/**
 * A button that asks the model again, and what happens to the unanswered message.
 * @param {{session: string}} props
 */
function TryAgain({ session }) {
  const listed = sessions.value.find((one) => one.id === session);
  if (!listed || listed.past) return null;
  return html`
    <button type="button" class="small" onClick=${() => attempt("retry", { session })}>
      Try again
    </button>
    <span class="quiet">
      What you write next goes to the model along with what it has not answered.
    </span>
  `;
}

/** The model gave no answer. */
const FailedItem = ({ item }) => html`
  <p class="line wrong" role="alert">
    <${Icon} name="warn" />
    <span>
      <strong>
        <${Say} text=${item.event.model} />
      </strong>${" "}
      gave no answer. <${Say} text=${item.event.words} />
    </span>
  </p>
`;

const KINDS = {
  said: SaidItem,
  model: ModelItem,
  call: CallCard,
  group: GroupItem,
  question: QuestionItem,
  ended: EndedItem,
  failed: FailedItem,
  chosen: ({ item }) => html`
    <p class="line quiet">
      <${Icon} name="talk" />
      <span>
        From here on <${Say} text=${item.event.model} />${" "}
        answers${item.event.effort ? `, with ${item.event.effort} effort` : ""}.
      </span>
    </p>
  `,
  resumed: ({ item }) => html`
    <p class="line quiet">
      <${Icon} name="talk" />
      <span>Resumed, ${when(item.at)}</span>
    </p>
  `,
  trimmed: ({ item }) => html`
    <p class="line quiet">
      <${Icon} name="list" />
      <span>
        Not sent to the model: <${Say} text=${item.event.words} />
      </span>
    </p>
  `,
  sampled: ({ item }) => html`
    <p class=${cls("line", item.event.error ? "wrong" : "quiet")}>
      <${Icon} name="talk" />
      <span>
        ${
          item.event.error
            ? html`
              <${Say} text=${item.event.server} /> got no answer from a model:${" "}
              <${Say} text=${item.event.error} />
            `
            : html`
              <${Say} text=${item.event.model} /> answered for${" "}
              <${Say} text=${item.event.server} />${costOf(item.event)}
            `
        }
      </span>
    </p>
  `,
  notice: ({ item }) => html`
    <p class=${cls("line", item.event.level === "error" ? "wrong" : "quiet")}>
      <${Icon} name="bell" />
      <span>
        <${Say} text=${item.event.words} />
      </span>
    </p>
  `,
};

// One element for each item, created once, so that later items do not touch earlier ones.
const made = new WeakMap();
function element(item) {
  let found = made.get(item);
  if (!found) made.set(item, (found = html`<${Item} key=${item.key} item=${item} />`));
  return found;
}
const Item = ({ item }) => {
  const Kind = KINDS[item.kind];
  return html`
    <div
      class=${`item item-${item.kind}`}
      role="listitem"
      data-item=${item.key}
      data-message=${item.seq || undefined}
    >
      <${Kind} item=${item} />
    </div>
  `;
};

/**
 * The items of a conversation that have elements.
 * @param {{items: any, first: number, last: number}} props
 */
function Items({ items, first, last }) {
  return items.value.slice(first, last).map(element);
}

/**
 * Scroll to a message, and read earlier turns until it is there.
 * @param {any} of @param {number} message
 */
async function showMessage(of, message) {
  while (of.first.value > message && (await of.loadEarlier()) > 0);
  const item = of.items.value.find((/** @type {any} */ one) => one.seq === message);
  // Without it, the branch with the message is still being read.
  if (!item) return;
  seek.value = null;
  revealItem(of, item);
}

/** @param {{id: string}} props */
export function Conversation({ id }) {
  const shown = talk(id);
  const box = useRef(/** @type {any} */ (null));
  const inner = useRef(/** @type {any} */ (null));
  const stuck = useRef(true);
  const before = useRef(0);
  const [away, setAway] = useState(false);
  const { first, last, scrolled: moved } = useItemWindow(shown, box, stuck);
  const down = () => {
    follow(shown);
    box.current.scrollTop = box.current.scrollHeight;
  };
  const toEnd = () => {
    stuck.current = true;
    down();
  };
  useLayoutEffect(() => {
    // Unless an entry of the timeline was opened together with the conversation.
    if (stuck.current) down();
    const grown = new ResizeObserver(() => {
      const question = document.activeElement?.closest(".log [data-question]");
      if (stuck.current && question && question === document.activeElement)
        show(/** @type {HTMLElement} */ (question));
      else if (stuck.current && question) question.scrollIntoView({ block: "nearest" });
      else if (stuck.current) down();
    });
    grown.observe(inner.current);
    grown.observe(box.current);
    return () => grown.disconnect();
  }, [id]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    const near = last >= shown.items.value.length && scrollHeight - scrollTop - clientHeight < NEAR;
    if (!document.activeElement?.closest(".log [data-question]"))
      // Neither a question that scrolled itself into view nor growing content is a scroll by the
      // person.
      stuck.current = near || (stuck.current && scrollTop >= before.current);
    before.current = scrollTop;
    setAway(!near);
    moved();
  };
  const loaded = shown.loaded.value;
  const sought = seek.value?.session === id && loaded === "yes" ? seek.value.message : 0;
  useLayoutEffect(() => {
    if (sought) showMessage(shown, sought);
  }, [sought, shown.items.value]);
  const empty = !shown.items.value.length;
  return html`
    <div class="log-frame">
      <h2 class="hidden-text">Conversation</h2>
      <div
        ref=${box}
        class="log"
        onScroll=${scrolled}
        role="log"
        aria-label="Conversation"
        aria-live="polite"
        tabindex="0"
      >
        <div ref=${inner} class="log-inner" role="list">
          ${
            loaded === "loading" &&
            empty &&
            html`
              <p class="quiet center">Reading the conversation …</p>
            `
          }
          ${loaded === "failed" && html`<${Unread} of=${shown} />`}
          ${
            (first > 0 || shown.earlier.value) &&
            html`<p class="quiet center">Scroll up for earlier messages.</p>`
          }
          <${Items} items=${shown.items} first=${first} last=${last} />
          <${EmptyBranch} session=${id} />
        </div>
      </div>
      ${
        away &&
        html`
          <button type="button" class="to-end" onClick=${toEnd}>
            To the end
          </button>
        `
      }
    </div>
  `;
}

/** The conversation could not be read. */
const Unread = ({ of }) => html`
  <div class="center">
    <p class="wrong" role="alert">
      <${Say} text=${of.words.value} />
    </p>
    <div class="buttons">
      <button type="button" onClick=${() => of.load()}>
        Try again
      </button>
      <button type="button" class="quiet" onClick=${() => open("")}>
        New conversation
      </button>
    </div>
  </div>
`;

/** An overview before the first message: what servers offer, and when the person is asked. */
function Readiness() {
  if (barred.value)
    return html`
      <p class="wrap">
        <${Say} text=${barred.value} />
      </p>
    `;
  if (!reachable.value) return null; // the banner says so
  if (!servers.value.length) return html`<p class="quiet">No server is configured yet.</p>`;
  const up = servers.value.filter((server) => server.state === "up");
  const total = up.reduce((sum, server) => sum + (server.tools?.length ?? 0), 0);
  const trusted = up.filter((server) => server.trusted).map((server) => visible(server.id));
  const ready = `${up.length} of ${several(servers.value.length, "server")} ready`;
  const names = trusted.join(", ");
  return html`
    <p class="quiet">
      ${ready}, with ${several(total, "tool")}. You are asked before a tool is called, unless a rule
      decides.${" "}
      ${trusted.length > 0 && `Read-only tools of servers you trust are not asked about: ${names}.`}
    </p>
  `;
}

/** A suggested prompt. */
function Starter({ server, prompt }) {
  const choose = () => {
    overlay.value = { name: "prompts", server, prompt: prompt.name };
  };
  return html`
    <div role="listitem">
      <button type="button" class="starter" onClick=${choose}>
        <strong>
          <${Say} text=${prompt.title || prompt.name} />
        </strong>
        <span class="quiet">
          <${Say} text=${prompt.description ?? ""} />
        </span>
        <${From} server=${server} />
      </button>
    </div>
  `;
}

const STARTERS = 6;

/** The page before the first message. */
export function Welcome() {
  const prompts = servers.value
    .filter((server) => server.state === "up")
    .flatMap((server) => (server.prompts ?? []).map((prompt) => ({ server: server.id, prompt })))
    .filter(({ prompt }) => !prompt.blocked)
    .slice(0, STARTERS);
  return html`
    <div class="log-frame">
      <div class="log welcome" tabindex="-1">
        <div class="welcome-inner">
          <h2>${isNew() ? "Welcome" : "How can I help?"}</h2>
          ${isNew() ? html`<${FirstSteps} />` : html`<${Readiness} />`}
          ${
            prompts.length > 0 &&
            html`
              <div class="starters" role="list" aria-label="Prompts to begin with">
                ${prompts.map(
                  (one) => html`
                    <${Starter} key=${one.server + one.prompt.name} ...${one} />
                  `,
                )}
              </div>
            `
          }
          <p class="quiet keys">
            <kbd>/</kbd> prompts <kbd>@</kbd> resources
            <kbd>${/Mac/.test(navigator.platform) ? "⌘" : "Ctrl"} K</kbd> search
          </p>
        </div>
      </div>
    </div>
  `;
}

/**
 * Send a message in the open conversation, or in a new one.
 * @param {string} act
 * @param {any} body
 * @param {string} model of a new conversation
 * @param {string} effort of a new conversation
 */
export async function speak(act, body, model = "", effort = "") {
  let session = isLive(current.value) ? current.value : "";
  if (!session) {
    const begun = await attempt("newSession", { model, effort, project: project.value });
    if (!begun) return false;
    session = begun.session;
    if (!sessions.value.some((one) => one.id === session))
      sessions.value = [
        {
          id: session,
          title: "",
          model,
          effort,
          running: false,
          began: Date.now() / 1000,
          project: project.value,
        },
        ...sessions.value,
      ];
    const before = current.value;
    const written = draft(before).value;
    draft(before).value = "";
    draft(session).value = written; // text written in the meantime moves to the new conversation
    open(session);
    await applyMode(session);
  }
  entitle(session, act === "prompt" ? titleOf(body.server, body.name) : body.text);
  const shown = talk(session);
  shown.running.value = true;
  const done = await attempt(act, { session, ...body });
  if (done === undefined) {
    const listed = sessions.value.find((one) => one.id === session);
    shown.running.value = listed?.running ?? false; // an earlier turn may still run
  }
  return done !== undefined;
}
