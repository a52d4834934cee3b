// @ts-check
// Markdown as elements: a third-party lexer splits the text, and our code renders the tokens. HTML
// is never parsed or inserted.
import { Lexer } from "./vendor/marked.js";
import { CodeBlock } from "./highlight.js";
import { Component, html, visible } from "./kit.js";

const SCHEMES = /^(?:https?:\/\/|mailto:)/i;
const NAMED = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  copy: "©",
  euro: "€",
  rarr: "→",
  larr: "←",
};
const ENTITY = /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi;
const FENCE = /^ {0,3}(?:`{3,}|~{3,})/;
const CLOSED = /\n {0,3}(?:`{3,}|~{3,})\s*$/;
const LONGEST = 200_000;
const DEEPEST = 24;

/** Decode an entity; the result is only ever shown as text. @param {string} text */
const decoded = (text) =>
  visible(
    text.replace(ENTITY, (whole, decimal, hex, name) => {
      const code = decimal ? parseInt(decimal, 10) : hex ? parseInt(hex, 16) : 0;
      return code
        ? code <= 0x10ffff
          ? String.fromCodePoint(code)
          : whole
        : (NAMED[/** @type {keyof typeof NAMED} */ (name)] ?? whole);
    }),
  );

/** The address of a link if it is allowed, or nothing. @param {string} href */
export function safe(href) {
  if (!SCHEMES.test(href)) return "";
  try {
    return new URL(href).href;
  } catch {
    return "";
  }
}

/** A link to the web, with its whole address shown on hover. */
export function Link({ href, children }) {
  const address = safe(href);
  if (!address)
    return html`
      <span class="no-link">
        ${children} <code>${visible(href)}</code>
      </span>
    `;
  return html`
    <a class="link" href=${address} target="_blank" rel="noopener noreferrer">
      ${children}
      <span class="address" aria-hidden="true">
        ${visible(address)}
      </span>
    </a>
  `;
}

const plain = (tokens) =>
  tokens.map((token) => (token.tokens ? plain(token.tokens) : (token.text ?? token.raw))).join("");

/** @type {Record<string, (token: any, depth: number) => any>} */
const MAKE = {
  space: () => null,
  def: () => null,
  hr: () => html`<hr />`,
  br: () => html`<br />`,
  html: (token) =>
    token.block ? html`<p class="raw">${visible(token.raw.trim())}</p>` : visible(token.raw),
  escape: (token) => visible(token.text),
  codespan: (token) => html`<code>${visible(token.text)}</code>`,
  strong: (token, depth) => html`<strong>${all(token.tokens, depth)}</strong>`,
  em: (token, depth) => html`<em>${all(token.tokens, depth)}</em>`,
  del: (token, depth) => html`<del>${all(token.tokens, depth)}</del>`,
  text: (token, depth) => (token.tokens ? all(token.tokens, depth) : decoded(token.text)),
  checkbox: () => null,
  link: (token, depth) => html`<${Link} href=${token.href}>${all(token.tokens, depth)}</${Link}>`,
  image: (token) =>
    html`<${Link} href=${token.href}>Picture: ${decoded(token.text || token.href)}</${Link}>`,
  paragraph: (token, depth) => html`<p>${all(token.tokens, depth)}</p>`,
  blockquote: (token, depth) => html`<blockquote>${all(token.tokens, depth)}</blockquote>`,
  code: (token) => {
    const language = (token.lang ?? "").split(/[\s{:,]/)[0];
    // A block that is still being written is plain: it would be split again with every word.
    const growing = FENCE.test(token.raw) && !CLOSED.test(token.raw);
    return html`<${CodeBlock} text=${token.text} language=${language} plain=${growing} />`;
  },
  heading: (token, depth) => {
    const level = `h${Math.min(6, token.depth + 2)}`;
    return html`<${level}>${all(token.tokens, depth)}</${level}>`;
  },
  list: (token, depth) => {
    const items = token.items.map(
      (item, at) => html`
        <li key=${at} class=${item.task ? "task" : ""}>
          ${
            item.task &&
            html`
              <input
                type="checkbox"
                disabled
                checked=${item.checked}
                aria-label=${item.checked ? "done" : "open"}
              />
            `
          }
          ${all(item.tokens, depth)}
        </li>
      `,
    );
    return token.ordered
      ? html`<ol start=${token.start || 1}>${items}</ol>`
      : html`<ul>${items}</ul>`;
  },
  table: (token, depth) => {
    const kind = (cell) => `${cell.align ?? ""} ${cell.text.length > 60 ? "long" : ""}`.trim();
    const heads = token.header.map(
      (cell, at) => html`
        <th key=${at} scope="col" class=${cell.align ?? ""}>
          ${all(cell.tokens, depth)}
        </th>
      `,
    );
    const cells = (row) =>
      row.map(
        (cell, at) => html`
          <td key=${at} class=${kind(cell)}>
            ${all(cell.tokens, depth)}
          </td>
        `,
      );
    return html`
      <div class="table" tabindex="0" role="group" aria-label="Table">
        <table>
          <thead>
            <tr>${heads}</tr>
          </thead>
          <tbody>
            ${token.rows.map(
              (row, at) => html`
                <tr key=${at}>${cells(row)}</tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    `;
  },
};

/** @param {any[]} tokens @param {number} depth */
function all(tokens, depth) {
  if (depth > DEEPEST) return visible(plain(tokens));
  return tokens.map((token) => {
    const make = MAKE[token.type];
    return make ? make(token, depth + 1) : visible(token.raw);
  });
}

/** One block; it is not rendered again while its text is the same. */
class Block extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    return next.raw !== this.props.raw;
  }
  /** @param {any} props */
  render({ token }) {
    return html`${all([token], 0)}`;
  }
}

/** @param {{text: string}} props */
export function Markdown({ text }) {
  let tokens;
  try {
    if (text.length > LONGEST) throw new RangeError("too long to be cut up");
    tokens = new Lexer({ gfm: true }).lex(text);
  } catch {
    return html`
      <div class="prose">
        <p class="raw">${visible(text)}</p>
      </div>
    `; // text that cannot be tokenized is shown as it is
  }
  return html`
    <div class="prose">
      ${tokens.map(
        (token, at) =>
          token.type !== "space" && html`<${Block} key=${at} raw=${token.raw} token=${token} />`,
      )}
    </div>
  `;
}
