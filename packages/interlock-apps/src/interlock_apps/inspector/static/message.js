// @ts-check
// One line of a tape, beside the timeline, with an editor that sends a request again.
import {
  Fold,
  IconButton,
  Say,
  cls,
  html,
  typing,
  useEffect,
  useRef,
  useState,
} from "../kit/kit.js";
import { act } from "../kit/net.js";
import { CopiedCode } from "../kit/code.js";
import { KINDS, MessageView } from "../kit/message-view.js";
import { attempt, connections, on, show, toast, view } from "./store.js";
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

/** What can be done with a request besides looking at it. @param {{message: any}} props */
function Tools({ message }) {
  const { row } = message;
  return html`
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
        ${
          message &&
          html`<${MessageView} key=${key} message=${message} onOpen=${open}>
          <${Tools} message=${message} />
        <//>`
        }
      </div>
    </aside>
  `;
}
