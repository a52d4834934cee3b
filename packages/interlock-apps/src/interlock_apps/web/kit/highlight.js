// @ts-check
// Code in colours: a third-party highlighter splits the text into tokens, and our code renders them
// as elements. It is loaded when the first code appears.
import { Save, extensionOfLanguage, safeName } from "./download.js";
import { Copy, html, signal, useEffect, useMemo, visible } from "./kit.js";

const LONGEST = 50_000;
const highlighter = signal(/** @type {any} */ (null));
let loading = false;

/** The tokens of one text: strings, and lists of tokens with a kind. */
class Tokens {
  constructor() {
    this.root = /** @type {any} */ ({ kind: "", children: [] });
    this.open = [this.root];
  }
  addText(text) {
    if (text) this.open[this.open.length - 1].children.push(text);
  }
  startScope(kind) {
    const token = { kind: String(kind), children: [] };
    this.open[this.open.length - 1].children.push(token);
    this.open.push(token);
  }
  endScope() {
    if (this.open.length > 1) this.open.pop();
  }
  openNode(kind) {
    this.startScope(kind);
  }
  closeNode() {
    this.endScope();
  }
  __addSublanguage(tokens) {
    this.open[this.open.length - 1].children.push(...tokens.root.children);
  }
  finalize() {
    this.open.length = 1;
  }
  toHTML() {
    return ""; // the tokens are the result
  }
}

async function load() {
  if (loading) return;
  loading = true;
  const { default: found } = await import("./vendor/highlight.js");
  found.configure({ __emitter: Tokens });
  highlighter.value = found;
}

/** The name of a language in a class: only its first word, of letters. @param {string} kind */
const first = (kind) => /^[a-z_]+/.exec(kind)?.[0] ?? "";

/** @param {any} token @returns {any} */
const element = (token) =>
  typeof token === "string"
    ? visible(token)
    : html`<span class=${`code-${first(token.kind)}`}>${token.children.map(element)}</span>`;

/**
 * The tokens of a code as elements, or its plain text: without a known language, while the
 * highlighter is loading, and for long code.
 * @param {{text: string, language: string}} props
 */
export function HighlightedCode({ text, language }) {
  const wanted = language !== "" && text.length <= LONGEST;
  useEffect(() => {
    if (wanted) load();
  }, [wanted]);
  const found = highlighter.value;
  const tokens = useMemo(() => {
    if (!found || !wanted || !found.getLanguage(language)) return null;
    try {
      const result = found.highlight(text, { language, ignoreIllegals: true });
      return result.errorRaised ? null : result._emitter.root.children;
    } catch {
      return null;
    }
  }, [found, text, language, wanted]);
  return html`${tokens ? tokens.map(element) : visible(text)}`;
}

/**
 * A block of code with its language, and buttons that copy and save it.
 * @param {{text: string, language: string, name?: string, plain?: boolean}} props `name`: of a file
 *   with the code. `plain`: without colours, because it is still being written
 */
export function CodeBlock({ text, language, name = "code", plain = false }) {
  const file = safeName(name, extensionOfLanguage(language));
  return html`
    <figure class="code">
      <figcaption>
        <span class="grow">${visible(language || "text")}</span>
        <${Copy} text=${text} />
        <${Save} name=${file} content=${() => text} what="the code" />
      </figcaption>
      <pre tabindex="0">
        <code><${HighlightedCode} text=${text} language=${plain ? "" : language} /></code>
      </pre>
    </figure>
  `;
}
