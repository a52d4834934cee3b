// @ts-check
// The result of a tool: its blocks and its structured content, without repetition.
import { html } from "./kit.js";
import { Content, Looked } from "./content.js";

/**
 * Whether two JSON values are equal, independent of key order.
 * @param {any} one
 * @param {any} other
 * @returns {boolean}
 */
export function equal(one, other) {
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
 * Whether a result has media, which is shown without a click.
 * @param {any} result
 */
export const hasMedia = (result) =>
  (result?.content ?? []).some(
    (block) =>
      ["image", "audio"].includes(block.type) ||
      /^(?:image|audio)\//i.test(block.resource?.mimeType ?? ""),
  );

/**
 * @param {{result: any, server: string, structured?: (value: any) => any}} props `structured` shows
 *   the structured content, if not as a value with two views
 */
export function Result({ result, server, structured: show }) {
  const { blocks, structured } = once(result);
  const nothing = !blocks.length && structured === undefined;
  return html`
    <div class="result">
      ${blocks.map(
        (block, at) => html`
          <${Content} key=${at} block=${block} server=${server} />
        `,
      )}
      ${
        structured !== undefined &&
        (show?.(structured) ??
          html`
            <${Looked} value=${structured} label="How the result is shown" />
          `)
      }
      ${nothing && html`<p class="quiet">The result is empty.</p>`}
    </div>
  `;
}
