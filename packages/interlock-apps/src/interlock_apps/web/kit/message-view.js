// @ts-check
// One message of the protocol: what is known of it, its problems, related messages, its text, its
// HTTP headers, and the message as each revision would have it.
import { Choice, Icon, Say, exactly, html, size, took, useState } from "./kit.js";
import { CopiedCode } from "./code.js";

/**
 * One line of a tape; members that say nothing are missing.
 * @typedef {object} Row
 * @property {number} number
 * @property {string} kind
 * @property {"client" | "server"} [sender]
 * @property {string} [connection]
 * @property {number} at
 * @property {string} [method]
 * @property {string} [name]
 * @property {number | string} [id]
 * @property {number} [duration] seconds
 * @property {boolean} [failed]
 * @property {number} [partner]
 * @property {number} [parent]
 * @property {string} [summary]
 */

/**
 * Whether a request goes on after its first request was answered with questions.
 * @param {Row} row
 */
export const isRetry = (row) =>
  row.kind === "request" && row.sender === "client" && row.parent !== undefined;

/** @type {Record<string, string>} */
export const KINDS = {
  request: "Request",
  response: "Response",
  error: "Error response",
  notification: "Notification",
  batch: "Batch",
  bytes: "Not a message",
  stderr: "stderr",
  http: "HTTP head",
  exit: "End of the connection",
};

/** What is known of a line in one list. */
function Facts({ message }) {
  const { row, revision } = message;
  const facts = [
    ["From", row.sender],
    ["Connection", row.connection],
    ["At", exactly(row.at)],
    ["Took", row.duration === undefined ? "" : took(row.duration)],
    ["Id", row.id === undefined ? "" : JSON.stringify(row.id)],
    ["Size", size(row.size)],
    ["Revision", revision],
  ].filter(([, value]) => value);
  return html`
    <dl class="facts">
      ${facts.map(
        ([name, value]) => html`
          <div key=${name}>
            <dt>${name}</dt>
            <dd><${Say} text=${value} /></dd>
          </div>
        `,
      )}
    </dl>
  `;
}

/** The message as each revision would have it. */
function Revisions({ message }) {
  const all = Object.keys(message.under).reverse();
  const [chosen, setChosen] = useState(message.revision);
  const text = message.under[chosen];
  return html`
    <${Choice}
      label="Revision"
      value=${chosen}
      options=${all.map((one) => [
        one,
        one === message.revision ? html`${one}<span class="hidden-text"> (used)</span> •` : one,
      ])}
      onChange=${setChosen}
    />
    ${
      text
        ? html`<${CopiedCode} text=${text} label=${`the message under ${chosen}`} />`
        : html`<p class="quiet">${chosen} has no such message, or the types do not fit.</p>`
    }
  `;
}

/** The heads of the HTTP exchange. */
const Headers = ({ heads }) =>
  heads.map(
    (head, at) => html`
      <section key=${at} class="head">
        <h3><${Say} text=${head.request ?? `Status ${head.status}`} /></h3>
        <dl class="pairs">
          ${head.headers.map(
            ([name, value], number) => html`
              <div key=${number}>
                <dt><${Say} text=${name} /></dt>
                <dd><${Say} text=${value} /></dd>
              </div>
            `,
          )}
        </dl>
      </section>
    `,
  );

/**
 * Links to the lines that belong to a line.
 * @param {{message: any, onOpen: (row: number) => void}} props
 */
function Related({ message, onOpen }) {
  const { row, partner, parent, retries, children } = message;
  const found = [
    ...(parent ? [[isRetry(row) ? "Retry of" : "Belongs to", parent]] : []),
    ...retries.map((one) => ["Retried by", one]),
    ...(partner ? [[row.kind === "request" ? "Answered by" : "Answer to", partner]] : []),
    ...children.map((one) => ["During the call", one]),
  ];
  if (!found.length) return null;
  return html`
    <ul class="related" aria-label="Related messages">
      ${found.map(
        ([words, one]) => html`
          <li key=${`${words} ${one.number}`}>
            <span class="quiet">${words}</span>
            <button type="button" class="small quiet" onClick=${() => onOpen(one.number)}>
              <${Say} text=${[one.method || one.kind, one.name].filter(Boolean).join(" ")} />
              ${one.summary && html`<${Say} class="related-words" text=${one.summary} />`}
            </button>
          </li>
        `,
      )}
    </ul>
  `;
}

/**
 * A line of a tape, in several ways.
 * @param {{message: any, onOpen: (row: number) => void, children?: any}} props `onOpen` opens a
 *   related line
 */
export function MessageView({ message, onOpen, children }) {
  const { row } = message;
  const ways = [
    ...(message.text ? [["text", "Message"]] : []),
    ["raw", message.text ? "Raw" : "Text"],
    ...(message.under ? [["under", "Revisions"]] : []),
    ...(message.headers.length ? [["http", "HTTP"]] : []),
  ];
  const [wanted, setWay] = useState(ways[0][0]);
  const way = ways.some(([key]) => key === wanted) ? wanted : ways[0][0];
  return html`
    <${Facts} message=${message} />
    ${
      message.problems?.length > 0 &&
      html`
        <ul class="warnings" aria-label="Problems">
          ${message.problems.map(
            (words) => html`
              <li key=${words}>
                <${Icon} name="warn" />
                <span><${Say} text=${words} /></span>
              </li>
            `,
          )}
        </ul>
      `
    }
    <${Related} message=${message} onOpen=${onOpen} />
    <${Choice} label="View" value=${way} options=${ways} onChange=${setWay} />
    ${way === "text" && html`<${CopiedCode} text=${message.text} label="the message" />`}
    ${way === "raw" && html`<${CopiedCode} text=${message.raw} label="the raw text" />`}
    ${way === "under" && html`<${Revisions} key=${row.number} message=${message} />`}
    ${way === "http" && html`<${Headers} heads=${message.headers} />`}
    ${message.isCut && html`<p class="quiet">Only the beginning is shown.</p>`}
    ${children}
  `;
}
