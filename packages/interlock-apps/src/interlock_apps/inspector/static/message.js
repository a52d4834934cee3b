// @ts-check
// One line of a tape, beside the timeline: its text, its problems, its HTTP headers, the message as
// each revision would have it, and an editor that sends a request again.
import {
  Choice,
  Fold,
  Icon,
  IconButton,
  Say,
  cls,
  exactly,
  html,
  size,
  took,
  typing,
  useEffect,
  useRef,
  useState,
} from "../kit/kit.js";
import { act } from "../kit/net.js";
import { CopiedCode } from "./code.js";
import { attempt, connections, on, show, toast, view } from "./store.js";
import { isRetry } from "./tape-rows.js";

/** @typedef {import("./tape-rows.js").Row} Row */

const close = () => show({ row: "", in: "" });
const open = (/** @type {number} */ row) => show({ row: String(row) });

/** The line that the address names, read again when more of the tape is known. */
function useMessage() {
  const { row, in: recording } = view.value;
  const [message, setMessage] = useState(/** @type {any} */ (null));
  const [refused, setRefused] = useState("");
  useEffect(() => {
    let gone = false;
    let waits = false;
    const read = async () => {
      waits = false;
      try {
        const found = await act("message", { recording, row: Number(row) });
        if (!gone) {
          setMessage(found);
          setRefused("");
        }
      } catch (bad) {
        if (!gone) setRefused(bad instanceof Error ? bad.message : String(bad));
      }
    };
    read();
    const stop = on("rows", (event) => {
      // A request gets its response later, and questions before that.
      if (event.data.recording !== recording || waits) return;
      waits = true;
      window.setTimeout(() => !gone && read(), 200);
    });
    return () => {
      gone = true;
      stop();
    };
  }, [row, recording]);
  return { message, refused };
}

/** The message as each revision would have it. */
function Revisions({ message }) {
  const all = Object.keys(message.under).reverse();
  const [chosen, setChosen] = useState(message.revision);
  const text = message.under[chosen];
  return html`
    <${Choice}
      label="Revision"
      value=${chosen}
      options=${all.map((one) => [
        one,
        one === message.revision ? html`${one}<span class="hidden-text"> (used)</span> •` : one,
      ])}
      onChange=${setChosen}
    />
    ${
      text
        ? html`<${CopiedCode} text=${text} label=${`the message under ${chosen}`} />`
        : html`<p class="quiet">${chosen} has no such message, or the types do not fit.</p>`
    }
  `;
}

/** The heads of the HTTP exchange. */
const Headers = ({ heads }) =>
  heads.map(
    (head, at) => html`
      <section key=${at} class="head">
        <h3><${Say} text=${head.request ?? `Status ${head.status}`} /></h3>
        <dl class="pairs">
          ${head.headers.map(
            ([name, value], number) => html`
              <div key=${number}>
                <dt><${Say} text=${name} /></dt>
                <dd><${Say} text=${value} /></dd>
              </div>
            `,
          )}
        </dl>
      </section>
    `,
  );

/** Links to the lines that belong to a line. */
function Related({ message }) {
  const { row, partner, parent, retries, children } = message;
  const found = [
    ...(parent ? [[isRetry(row) ? "Retry of" : "Belongs to", parent]] : []),
    ...retries.map((one) => ["Retried by", one]),
    ...(partner ? [[row.kind === "request" ? "Answered by" : "Answer to", partner]] : []),
    ...children.map((one) => ["During the call", one]),
  ];
  if (!found.length) return null;
  return html`
    <ul class="related" aria-label="Related messages">
      ${found.map(
        ([words, one]) => html`
          <li key=${`${words} ${one.number}`}>
            <span class="quiet">${words}</span>
            <button type="button" class="small quiet" onClick=${() => open(one.number)}>
              <${Say} text=${[one.method || one.kind, one.name].filter(Boolean).join(" ")} />
              ${one.summary && html`<${Say} class="related-words" text=${one.summary} />`}
            </button>
          </li>
        `,
      )}
    </ul>
  `;
}

/** A request to edit and send again. @param {{message: any}} props */
function Editor({ message }) {
  const { request, row } = message;
  const home = connections.value.find((one) => one.name === row.connection);
  const ready = connections.value.filter((one) => one.status === "open");
  const [to, setTo] = useState(home?.status === "open" ? home.name : (ready[0]?.name ?? ""));
  const [method, setMethod] = useState(request.method);
  const [params, setParams] = useState(request.params);
  const [name, setName] = useState("");
  const [sending, setSending] = useState(false);
  const status = wrong(params);
  const send = async () => {
    setSending(true);
    const sent = await attempt("send", { connection: to, method, params });
    setSending(false);
    if (sent) show({ row: String(sent.row), in: sent.recording });
  };
  const save = async () => {
    if (await attempt("saveCall", { name, connection: to || row.connection, method, params })) {
      toast("info", `Saved as ${name.trim()}.`);
      setName("");
    }
  };
  return html`
    <${Fold} title="Edit and send again">
      ${
        ready.length === 0
          ? html`<p class="quiet">No server is connected. The request can be saved.</p>`
          : html`
            <label>
              Connection
              <select value=${to} onChange=${(event) => setTo(event.target.value)}>
                ${ready.map((one) => html`<option key=${one.name}>${one.name}</option>`)}
              </select>
            </label>
          `
      }
      <label>
        Method
        <input
          class="mono"
          spellcheck=${false}
          value=${method}
          onInput=${(event) => setMethod(event.target.value)}
        />
      </label>
      <label>
        Params
        <textarea
          class="mono"
          rows="10"
          spellcheck=${false}
          value=${params}
          aria-invalid=${status ? "true" : "false"}
          aria-describedby="params-status"
          onInput=${(event) => setParams(event.target.value)}
        ></textarea>
      </label>
      <p id="params-status" class="bad small-line" role="status">${status}</p>
      <div class="buttons">
        <button
          type="button"
          class="main"
          disabled=${!to || Boolean(status) || sending}
          onClick=${send}
        >
          Send
        </button>
        <span class="grow"></span>
        <label class="save-name">
          <span class="hidden-text">Name of the saved call</span>
          <input
            placeholder="Name"
            value=${name}
            onInput=${(event) => setName(event.target.value)}
          />
        </label>
        <button type="button" disabled=${!name.trim() || Boolean(status)} onClick=${save}>
          Save
        </button>
      </div>
    <//>
  `;
}

/** The call as a test for `interlock test`. @param {{message: any}} props */
function Test({ message }) {
  const [text, setText] = useState("");
  const read = async () => {
    const found = await attempt("rowTest", {
      recording: message.recording,
      row: message.row.number,
    });
    if (found) setText(found);
  };
  return html`
    <section class="message-part">
      <h3>A test with this result</h3>
      ${
        text
          ? html`<${CopiedCode} text=${text} label="the test" />`
          : html`<button type="button" class="small" onClick=${read}>Show the test</button>`
      }
    </section>
  `;
}

/** What is wrong with the text of params; "" if nothing is. @param {string} text */
function wrong(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" && !Array.isArray(value)
      ? ""
      : "The params must be a JSON object.";
  } catch (bad) {
    return `Not JSON: ${bad instanceof Error ? bad.message : bad}`;
  }
}

const KINDS = {
  request: "Request",
  response: "Response",
  error: "Error response",
  notification: "Notification",
  batch: "Batch",
  bytes: "Not a message",
  stderr: "stderr",
  http: "HTTP head",
  exit: "End of the connection",
};

/** What is known of a line in one list. */
function Facts({ message }) {
  const { row, revision } = message;
  const facts = [
    ["From", row.sender],
    ["Connection", row.connection],
    ["At", exactly(row.at)],
    ["Took", row.duration === undefined ? "" : took(row.duration)],
    ["Id", row.id === undefined ? "" : JSON.stringify(row.id)],
    ["Size", size(row.size)],
    ["Revision", revision],
  ].filter(([, value]) => value);
  return html`
    <dl class="facts">
      ${facts.map(
        ([name, value]) => html`
          <div key=${name}>
            <dt>${name}</dt>
            <dd><${Say} text=${value} /></dd>
          </div>
        `,
      )}
    </dl>
  `;
}

/** The line, in several ways. */
function Body({ message }) {
  const { row } = message;
  const ways = [
    ...(message.text ? [["text", "Message"]] : []),
    ["raw", message.text ? "Raw" : "Text"],
    ...(message.under ? [["under", "Revisions"]] : []),
    ...(message.headers.length ? [["http", "HTTP"]] : []),
  ];
  const [wanted, setWay] = useState(ways[0][0]);
  const way = ways.some(([key]) => key === wanted) ? wanted : ways[0][0];
  return html`
    <${Facts} message=${message} />
    ${
      message.problems?.length > 0 &&
      html`
        <ul class="warnings" aria-label="Problems">
          ${message.problems.map(
            (words) => html`
              <li key=${words}>
                <${Icon} name="warn" />
                <span><${Say} text=${words} /></span>
              </li>
            `,
          )}
        </ul>
      `
    }
    <${Related} message=${message} />
    <${Choice} label="View" value=${way} options=${ways} onChange=${setWay} />
    ${way === "text" && html`<${CopiedCode} text=${message.text} label="the message" />`}
    ${way === "raw" && html`<${CopiedCode} text=${message.raw} label="the raw text" />`}
    ${way === "under" && html`<${Revisions} key=${row.number} message=${message} />`}
    ${way === "http" && html`<${Headers} heads=${message.headers} />`}
    ${message.isCut && html`<p class="quiet">Only the beginning is shown.</p>`}
    ${
      message.request?.command &&
      html`
        <section class="message-part">
          <h3>The same in a shell</h3>
          <${CopiedCode} text=${message.request.command} label="the command" />
        </section>
      `
    }
    ${message.request && message.partner && html`<${Test} key=${row.number} message=${message} />`}
    ${message.request && html`<${Editor} key=${row.number} message=${message} />`}
  `;
}

/** The panel beside the timeline. */
export function MessagePanel() {
  const { message, refused } = useMessage();
  const box = useRef(/** @type {any} */ (null));
  const row = message?.row;
  const key = message && `${message.recording} ${row.number}`;
  const heading = row ? [row.method || KINDS[row.kind], row.name].filter(Boolean).join(" ") : "…";
  return html`
    <aside
      ref=${box}
      class="panel message"
      tabindex="-1"
      aria-label="Message"
      onKeyDown=${(event) => {
        // Not while a request is being edited: it would be lost.
        if (event.key === "Escape" && !event.defaultPrevented && !typing(event.target)) {
          close();
          /** @type {HTMLElement | null} */ (document.querySelector(".timeline-box"))?.focus();
        }
      }}
    >
      <header class="panel-head">
        <h2>
          <${Say} text=${heading} />
          ${row && html`<span class=${cls("kind", row.failed && "bad")}>${KINDS[row.kind]}</span>`}
        </h2>
        <${IconButton} name="close" label="Close the message" onClick=${close} />
      </header>
      <div class="panel-body">
        ${refused && html`<p class="bad"><${Say} text=${refused} /></p>`}
        ${message && html`<${Body} key=${key} message=${message} />`}
      </div>
    </aside>
  `;
}
