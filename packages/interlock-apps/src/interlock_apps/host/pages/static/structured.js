// @ts-check
// Structured content of results: whether texts only repeat it, and the whole of it if the page has
// only its beginning.
import { Icon, html, size, useState, visible } from "../kit/kit.js";
import { Looked } from "./content.js";
import { act } from "../kit/net.js";

/**
 * Whether two JSON values are equal, independent of key order.
 * @param {any} one
 * @param {any} other
 * @returns {boolean}
 */
function equal(one, other) {
  if (one === other) return true;
  if (!one || !other || typeof one !== "object" || typeof other !== "object") return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => key in other && equal(one[key], other[key]))
  );
}

/**
 * Whether a text is a value, as JSON or as plain text.
 * @param {string} text
 * @param {any} value
 */
function says(text, value) {
  if (text === value) return true;
  try {
    return equal(JSON.parse(text), value);
  } catch {
    return false;
  }
}

/**
 * Unwrap `{"result": value}`, in which a server wraps a value that is not an object.
 * @param {any} structured
 */
function wrapped(structured) {
  const keys = Object.keys(structured);
  return keys.length === 1 && keys[0] === "result" ? structured.result : undefined;
}

/**
 * The parts of a result to show, without repetition: its blocks, and its structured content. An
 * object with a single text is shown as that text.
 * @param {any} result @returns {{blocks: any[], structured: any}}
 */
export function once(result) {
  const blocks = result.content ?? [];
  const structured = result.structuredContent ?? undefined;
  if (structured === undefined) return { blocks, structured };
  const inner = wrapped(structured);
  const texts = blocks.filter((block) => block.type === "text");
  if (typeof inner === "string" && texts.some((block) => block.text === inner))
    return { blocks, structured: undefined };
  const each =
    Array.isArray(inner) &&
    texts.length === inner.length &&
    texts.every((block, at) => says(block.text, inner[at]));
  const again = (block) =>
    block.type === "text" &&
    (each || says(block.text, structured) || (inner !== undefined && says(block.text, inner)));
  return { blocks: blocks.filter((block) => !again(block)), structured };
}

/**
 * @param {string} session
 * @param {string} call
 * @param {number} page
 * @returns {Promise<{text: string, pages: number}>}
 */
const read = (session, call, page) => act("readStructured", { session, call, page });

/**
 * The whole result: what was cut for the page is read from the log.
 * @param {{session?: string, call: string}} of @param {any} result
 */
export async function whole({ session = "", call }, result) {
  if (!result?.structuredSize) return result;
  const first = await read(session, call, 0);
  const texts = [first.text];
  while (texts.length < first.pages) texts.push((await read(session, call, texts.length)).text);
  const { structuredSize, ...rest } = result;
  return { ...rest, structuredContent: JSON.parse(texts.join("")) };
}

/**
 * Structured content, and the rest of it in pages.
 * @param {{value: any, total?: number, of?: {session?: string, call: string}}} props
 */
export function Structured({ value, total = 0, of }) {
  const shown = html`<${Looked} value=${value} label="How the result is shown" />`;
  if (!total) return shown;
  return html`
    <div class="structured">
      <p class="note">
        <${Icon} name="list" /> This is the beginning of ${size(total)}.
      </p>
      ${shown}
      ${of && html`<${Pages} ...${of} />`}
    </div>
  `;
}

/**
 * The whole content as JSON, one page at a time.
 * @param {{session?: string, call: string}} props
 */
function Pages({ session = "", call }) {
  const [shown, setShown] = useState(
    /** @type {{text: string, pages: number, at: number} | null} */ (null),
  );
  const [words, setWords] = useState("");
  const go = (at) => async () => {
    try {
      setShown({ ...(await read(session, call, at)), at });
      setWords("");
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
  };
  const wrong =
    words &&
    html`
      <p class="wrong" role="alert">
        ${visible(words)}
      </p>
    `;
  if (!shown) {
    return html`
      <div class="buttons">
        <button type="button" class="small" onClick=${go(0)}>
          Show all as JSON
        </button>
        ${wrong}
      </div>
    `;
  }
  const { at, pages, text } = shown;
  return html`
    <div class="json">
      <div class="buttons">
        <button type="button" class="small" disabled=${at === 0} onClick=${go(at - 1)}>
          Previous page
        </button>
        <span class="quiet" aria-live="polite">
          Page ${at + 1} of ${pages}
        </span>
        <button type="button" class="small" disabled=${at + 1 >= pages} onClick=${go(at + 1)}>
          Next page
        </button>
        ${wrong}
      </div>
      <pre class="wrap structured-page" tabindex="0">
        ${visible(text)}
      </pre>
    </div>
  `;
}
