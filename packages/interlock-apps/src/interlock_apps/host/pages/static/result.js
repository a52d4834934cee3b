// @ts-check
// The result of a tool: its blocks and its structured content, without repetition.
import { html } from "../kit/kit.js";
import { Content } from "./content.js";
import { Structured, once } from "./structured.js";

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
 * @param {{result: any, server: string, of?: {session?: string, call: string}}} props `of`: the
 *   call whose result it is
 */
export function Result({ result, server, of }) {
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
        html`
          <${Structured} value=${structured} total=${result.structuredSize ?? 0} of=${of} />
        `
      }
      ${nothing && html`<p class="quiet">The result is empty.</p>`}
    </div>
  `;
}
