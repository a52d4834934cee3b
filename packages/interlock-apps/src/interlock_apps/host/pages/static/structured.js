// @ts-check
// Structured content of results: the whole of it if the page has only its beginning.
import { Icon, html, size, useState, visible } from "../kit/kit.js";
import { Looked } from "../kit/content.js";
import { act } from "../kit/net.js";

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
