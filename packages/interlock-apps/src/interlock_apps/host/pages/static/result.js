// @ts-check
// The result of a call in a conversation: a long table is folded; a large result, and the rest of
// long structured content, are read from the log.
import { Clamped, Say, html, useEffect, useState } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { Result as WholeResult } from "../kit/result.js";
import { Structured, whole } from "./structured.js";

/**
 * A result of an earlier call, which the history has without its body.
 * @param {{server: string, of: {session?: string, call: string}, name: string}} props
 */
function DeferredResult({ server, of, name }) {
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
  return html`<${Result} result=${result} server=${server} of=${of} name=${name} />`;
}

/**
 * @param {{result: any, server: string, of?: {session?: string, call: string},
 *   name?: string}} props `of`: the call whose result it is. `name`: of a file with the result
 */
export function Result({ result, server, of, name = "" }) {
  if (result.deferred && of)
    return html`<${DeferredResult} server=${server} of=${of} name=${name} />`;
  const total = result.structuredSize ?? 0;
  const structured = (value) => {
    const shown = html`<${Structured} value=${value} total=${total} of=${of} />`;
    return name && !total ? html`<${Clamped}>${shown}</${Clamped}>` : shown;
  };
  return html`
    <${WholeResult}
      result=${result}
      server=${server}
      name=${name}
      whole=${of && total ? () => whole(of, result) : undefined}
      structured=${structured}
    />
  `;
}
