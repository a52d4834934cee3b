// @ts-check
// The result of a call in a conversation: the rest of long structured content is read from the log.
import { html } from "../kit/kit.js";
import { Result as WholeResult } from "../kit/result.js";
import { Structured } from "./structured.js";

/**
 * @param {{result: any, server: string, of?: {session?: string, call: string}}} props `of`: the
 *   call whose result it is
 */
export function Result({ result, server, of }) {
  const structured = (value) => html`
    <${Structured} value=${value} total=${result.structuredSize ?? 0} of=${of} />
  `;
  return html`<${WholeResult} result=${result} server=${server} structured=${structured} />`;
}
