// @ts-check
// The result of a tool: its blocks and its structured content, without repetition.
import { Copy, html } from "./kit.js";
import { Content, Looked, flat } from "./content.js";
import { Save, csv, safeName } from "./download.js";

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

/** The rows of a result that is a table, or has one as its only value. @param {any} result */
function rowsOf(result) {
  const { blocks, structured } = once(result);
  const texts = blocks.filter((block) => block.type === "text");
  const value = structured ?? (texts.length === 1 ? parsed(texts[0].text) : undefined);
  if (flat(value)) return value;
  const values = value && typeof value === "object" ? Object.values(value) : [];
  return values.length === 1 && flat(values[0]) ? values[0] : null;
}

/** The value of a JSON text. @param {string} text @returns {any} */
function parsed(text) {
  if (!/^\s*[[{]/.test(text) || text.length > 200_000) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Whether a result is shown without a click: it has pictures or sounds, or is a table.
 * @param {any} result
 */
export const isShownOpen = (result) => !!result && (hasMedia(result) || rowsOf(result) !== null);

/** A result as text: its structured content as JSON, else its texts. @param {any} result */
function textOf(result) {
  const { blocks, structured } = once(result);
  const texts = blocks.filter((block) => block.type === "text").map((block) => block.text);
  return structured === undefined ? texts.join("\n\n") : JSON.stringify(structured, null, 2);
}

/**
 * Buttons that copy and save a result.
 * @param {{result: any, name: string, whole?: () => Promise<any>}} props `whole` returns the whole
 *   result if the page has only its beginning
 */
function ResultActions({ result, name, whole }) {
  const text = textOf(result);
  if (!text) return null;
  const json = result.structuredContent !== undefined || parsed(text) !== undefined;
  const all = async () => (whole ? await whole() : result);
  const rows = rowsOf(result);
  return html`
    <div class="buttons result-actions">
      ${!whole && html`<${Copy} text=${text} />`}
      <${Save}
        name=${safeName(name, json ? "json" : "txt")}
        content=${async () => textOf(await all())}
        label=${rows ? "Save as JSON" : "Save"}
        what="the result"
      />
      ${
        rows &&
        html`
          <${Save}
            name=${safeName(name, "csv")}
            content=${async () => csv(rowsOf(await all()) ?? rows)}
            label="Save as CSV"
            what="the table"
          />
        `
      }
    </div>
  `;
}

/**
 * @param {{result: any, server: string, name?: string, whole?: () => Promise<any>,
 *   structured?: (value: any) => any}} props `structured` shows the structured content, if not as a
 *   value with two views. `name`: the name of a file with the result, which can then be copied and
 *   saved; see `ResultActions` for `whole`
 */
export function Result({ result, server, name = "", whole, structured: show }) {
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
      ${name && html`<${ResultActions} result=${result} name=${name} whole=${whole} />`}
      ${nothing && html`<p class="quiet">The result is empty.</p>`}
    </div>
  `;
}
