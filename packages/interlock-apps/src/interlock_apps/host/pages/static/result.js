// @ts-check
// The result of a call in a conversation: a large result, and the rest of long structured content,
// are read from the log.
import { Say, html, useEffect, useState } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { Result as WholeResult } from "../kit/result.js";
import { Structured } from "./structured.js";

/**
 * A result of an earlier call, which the history has without its body.
 * @param {{server: string, of: {session?: string, call: string}}} props
 */
function DeferredResult({ server, of }) {
  const [result, setResult] = useState(/** @type {any} */ (null));
  const [words, setWords] = useState("");
  useEffect(() => {
    act("readResult", { session: of.session, call: of.call }).then(setResult, (bad) =>
      setWords(bad instanceof Error ? bad.message : String(bad)),
    );
  }, [of.session, of.call]);
  if (words)
    return html`
      <p class="wrong" role="alert">
        <${Say} text=${words} />
      </p>
    `;
  if (!result) return html`<p class="quiet">Reading the result …</p>`;
  return html`<${Result} result=${result} server=${server} of=${of} />`;
}

/**
 * @param {{result: any, server: string, of?: {session?: string, call: string}}} props `of`: the
 *   call whose result it is
 */
export function Result({ result, server, of }) {
  if (result.deferred && of) return html`<${DeferredResult} server=${server} of=${of} />`;
  const structured = (value) => html`
    <${Structured} value=${value} total=${result.structuredSize ?? 0} of=${of} />
  `;
  return html`<${WholeResult} result=${result} server=${server} structured=${structured} />`;
}
