// @ts-check
// Content of servers and models as elements: texts, images, sounds, links, resources, and values as
// tables or JSON.
import {
  Choice,
  Copy,
  Fold,
  Icon,
  Say,
  cls,
  createContext,
  html,
  json,
  several,
  size,
  useContext,
  useEffect,
  useMemo,
  useState,
  visible,
} from "./kit.js";
import { CodeBlock } from "./highlight.js";
import { Save, bytesOf, extensionOf, languageOfFile, safeName } from "./download.js";
import { Link, Markdown, safe } from "./markdown.js";

const PICTURES = /^image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)$/i;
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;
const LONG = 1600;
const ROWS = 60;
const COLUMNS = 12;
const DEEPEST = 5;

/** @param {string} data base64 */
const bytes = (data) => Math.floor((data.length * 3) / 4);

/** Foreign text, folded if it is long. */
export function Plain({ text, limit = LONG }) {
  const [all, setAll] = useState(false);
  const long = text.length > limit * 1.25;
  return html`
    <div class="plain">
      <pre class="wrap">
        ${visible(long && !all ? text.slice(0, limit) : text)}
        ${long && !all ? " …" : ""}
      </pre>
      ${
        long &&
        html`
          <button
            type="button"
            class="small quiet"
            aria-expanded=${all ? "true" : "false"}
            onClick=${() => setAll(!all)}
          >
            ${all ? "Show less" : `Show all, ${size(text.length)}`}
          </button>
        `
      }
    </div>
  `;
}

/** JSON as text. */
export const Json = ({ value }) => {
  const text = useMemo(() => json(value), [value]);
  return html`
    <div class="json">
      <${Plain} text=${text} limit=${4000} />
      <${Copy} text=${text} />
    </div>
  `;
};

const simple = (value) => value === null || typeof value !== "object";
export const flat = (value) =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every(
    (row) =>
      row && typeof row === "object" && !Array.isArray(row) && Object.values(row).every(simple),
  );

/** A value in readable form. @param {{value: any, depth?: number}} props */
export function Value({ value, depth = 0 }) {
  if (value === null || value === undefined) return html`<span class="quiet">nothing</span>`;
  if (typeof value === "boolean") return html`<span>${value ? "yes" : "no"}</span>`;
  if (typeof value === "number") return html`<span class="number">${String(value)}</span>`;
  if (typeof value === "string")
    return value === ""
      ? html`
        <span class="quiet">empty text</span>
      `
      : value.length > 300
        ? html`
          <${Plain} text=${value} limit=${300} />
        `
        : html`
          <${Say} class="wrap" text=${value} />
        `;
  if (depth >= DEEPEST) return html`<code class="wrap">${visible(JSON.stringify(value))}</code>`;
  if (flat(value)) return html`<${Rows} rows=${value} />`;
  if (Array.isArray(value)) {
    if (!value.length) return html`<span class="quiet">empty list</span>`;
    if (value.every(simple) && value.length <= 12)
      return html`
        <span class="wrap">
          ${value.map(
            (one, at) => html`
              <span key=${at} class="bit">
                <${Say} text=${one} />
              </span>
            `,
          )}
        </span>
      `;
    return html`
      <ol class="values">
        ${value.slice(0, ROWS).map(
          (one, at) => html`
            <li key=${at}>
              <${Value} value=${one} depth=${depth + 1} />
            </li>
          `,
        )}
        ${value.length > ROWS && html`<li class="quiet">and ${value.length - ROWS} more</li>`}
      </ol>
    `;
  }
  const entries = Object.entries(value);
  if (!entries.length) return html`<span class="quiet">nothing</span>`;
  return html`
    <dl class=${cls("table-list", depth > 0 && "inner")}>
      ${entries.slice(0, ROWS).map(
        ([name, one]) => html`
          <div key=${name}>
            <dt>
              <${Say} text=${name} />
            </dt>
            <dd>
              <${Value} value=${one} depth=${depth + 1} />
            </dd>
          </div>
        `,
      )}
      ${entries.length > ROWS && html`<div class="quiet">and ${entries.length - ROWS} more</div>`}
    </dl>
  `;
}

/**
 * The alignment of a cell: numbers to the right, long texts in a wide column.
 * @param {unknown} value
 */
function alignment(value) {
  if (typeof value === "number") return "right";
  return typeof value === "string" && value.length > 60 ? "long" : "";
}

/** Objects with the same keys, as a table. */
function Rows({ rows }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns = names.slice(0, COLUMNS);
  const left = [
    rows.length > ROWS && several(rows.length - ROWS, "row"),
    names.length > COLUMNS && several(names.length - COLUMNS, "column"),
  ].filter(Boolean);
  return html`
    <div class="table" tabindex="0" role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            ${columns.map(
              (name) => html`
                <th key=${name} scope="col">
                  <${Say} text=${name} />
                </th>
              `,
            )}
          </tr>
        </thead>
        <tbody>
          ${rows.slice(0, ROWS).map(
            (row, at) => html`
              <tr key=${at}>
                ${columns.map(
                  (name) => html`
                    <td key=${name} class=${alignment(row[name])}>
                      ${name in row ? html`<${Value} value=${row[name]} depth=${4} />` : ""}
                    </td>
                  `,
                )}
              </tr>
            `,
          )}
        </tbody>
      </table>
      ${
        left.length > 0 &&
        html`
          <p class="quiet">Not shown here, but as JSON: ${left.join(" and ")}</p>
        `
      }
    </div>
  `;
}

/** A value with a switch between the two views. */
export function Looked({ value, label }) {
  const [way, setWay] = useState("table");
  return html`
    <div class="looked">
      <${Choice}
        label=${label}
        value=${way}
        options=${[
          ["table", "Table"],
          ["json", "JSON"],
        ]}
        onChange=${setWay}
      />
      ${way === "table" ? html`<${Value} value=${value} />` : html`<${Json} value=${value} />`}
    </div>
  `;
}

/** An image; one that cannot be shown is replaced by a text. */
function Picture({ data, mimeType, label, name = "picture" }) {
  const [broken, setBroken] = useState(false);
  const [whole, setWhole] = useState(false);
  if (broken || !PICTURES.test(mimeType) || !BASE64.test(data))
    return html`
      <p class="quiet">
        A picture that cannot be shown (<${Say} text=${mimeType} />, ${size(bytes(data))}).
      </p>
    `;
  return html`
    <div class="picture-box">
      <button
        type="button"
        class=${cls("picture", whole && "whole")}
        aria-label=${whole ? `${label}, shown whole: make it small` : `${label}: show it whole`}
        onClick=${() => setWhole(!whole)}
      >
        <img
          src=${`data:${mimeType};base64,${data}`}
          alt=${label}
          onError=${() => setBroken(true)}
        />
      </button>
      <${SaveData} data=${data} mimeType=${mimeType} name=${name} what="the picture" />
    </div>
  `;
}

/** Save base64 data as a file; its type decides the extension. */
function SaveData({ data, mimeType, name, what }) {
  if (!BASE64.test(data)) return null;
  const file = safeName(name, extensionOf(mimeType));
  return html`
    <${Save} name=${file} content=${() => bytesOf(data.replace(/\s/g, ""))} what=${what} />
  `;
}

/**
 * The content of a resource: a text, an image, a sound, or bytes.
 * @param {{contents: any}} props
 */
export function Contents({ contents }) {
  const { uri, mimeType = "", text, blob } = contents;
  if (text !== undefined && text !== null) {
    if (/json/i.test(mimeType)) {
      try {
        return html`<${Looked} value=${JSON.parse(text)} label="How the resource is shown" />`;
      } catch {
        return html`<${Plain} text=${text} />`;
      }
    }
    if (/markdown/i.test(mimeType)) return html`<${Markdown} text=${text} />`;
    const language = languageOfFile(nameIn(uri));
    return language
      ? html`<${CodeBlock} text=${text} language=${language} name=${nameIn(uri)} />`
      : html`<${Plain} text=${text} />`;
  }
  if (/^image\//i.test(mimeType))
    return html`
      <${Picture}
        data=${blob ?? ""}
        mimeType=${mimeType}
        label=${visible(uri)}
        name=${nameIn(uri)}
      />
    `;
  if (/^audio\//i.test(mimeType)) return html`<${Sound} data=${blob ?? ""} mimeType=${mimeType} />`;
  return html`
    <p class="quiet">
      ${size(bytes(blob ?? ""))} of <${Say} text=${mimeType || "an unknown kind"} />.
    </p>
    ${
      blob &&
      html`
        <div class="buttons">
          <${SaveData} data=${blob} mimeType=${mimeType} name=${nameIn(uri)} what="the file" />
        </div>
      `
    }
  `;
}

/** The last part of a URI, as a name for a file. @param {string} uri */
function nameIn(uri) {
  const last = uri.split(/[?#]/)[0].replace(/\/+$/, "").split("/").at(-1) ?? "";
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

const Sound = ({ data, mimeType }) =>
  /^audio\/[\w.+-]+$/i.test(mimeType) && BASE64.test(data)
    ? html`
      <audio
        controls
        preload="metadata"
        src=${`data:${mimeType};base64,${data}`}
        aria-label="Sound"
      ></audio>
    `
    : html`
      <p class="quiet">A sound of an unknown kind.</p>
    `;

/**
 * What the page does with a resource that content refers to. `read` returns the contents;
 * `attach` adds the resource to the person's message, where a page has messages.
 * @typedef {{read: (server: string, uri: string) => Promise<any[]>,
 *   attach?: (one: {server: string, uri: string, title: string}) => void}} ResourceActions
 */

/** Provides a page's actions to all content below it. */
export const ResourceActionsContext = createContext(/** @type {ResourceActions | null} */ (null));

/** A resource that a result or the person refers to: it is read on demand. */
export function Pointed({
  server,
  uri,
  title = "",
  description = "",
  mimeType = "",
  open = false,
}) {
  const actions = useContext(ResourceActionsContext);
  const [state, setState] = useState(/** @type {any} */ (null));
  const read = async () => {
    setState({ reading: true });
    try {
      setState({ contents: await actions?.read(server, uri) });
    } catch (bad) {
      setState({ words: bad instanceof Error ? bad.message : String(bad) });
    }
  };
  useEffect(() => {
    if (open) read();
  }, []);
  const attach = () => actions?.attach?.({ server, uri, title: title || uri });
  return html`
    <div class="pointed">
      <div class="pointed-head">
        <${Icon} name="file" />
        <span class="grow">
          <${Say} class="strong" text=${title || uri} />
          <code class="uri">
            ${safe(uri) ? html`<${Link} href=${uri}>${visible(uri)}</${Link}>` : visible(uri)}
          </code>
          ${description && html`<${Say} class="quiet" text=${description} />`}
        </span>
        ${
          mimeType &&
          html`
            <span class="tag">
              <${Say} text=${mimeType} />
            </span>
          `
        }
      </div>
      ${
        server &&
        actions &&
        html`
          <div class="buttons">
            <button type="button" class="small quiet" onClick=${read} disabled=${state?.reading}>
              ${state?.contents ? "Read again" : "Read"}
            </button>
            ${
              actions.attach &&
              html`
                <button type="button" class="small quiet" onClick=${attach}>
                  Attach
                </button>
              `
            }
          </div>
        `
      }
      ${
        state?.words &&
        html`
          <p class="wrong" role="alert">
            <${Say} text=${state.words} />
          </p>
        `
      }
      ${state?.contents?.map(
        (one, at) => html`
          <${Contents} key=${at} contents=${one} />
        `,
      )}
    </div>
  `;
}

/** The name of the person's file that a block comes from. @param {any} block */
const named = (block) => visible(block._meta?.["io.interlock/file"]?.name ?? "");

/**
 * A block of content. `rich`: a text is Markdown of a model. `whole`: it is not folded here.
 * @param {{block: any, server?: string, rich?: boolean, whole?: boolean}} props */
export function Content({ block, server = "", rich = false, whole = false }) {
  switch (block?.type) {
    case "text":
      return rich
        ? html`<${Markdown} text=${block.text} />`
        : html`<${ToolText} text=${block.text} whole=${whole} />`;
    case "image":
      return html`
        <${Picture}
          data=${block.data}
          mimeType=${block.mimeType}
          label=${named(block) || (server ? `Picture of ${visible(server)}` : "Picture")}
          name=${named(block) || "picture"}
        />
      `;
    case "audio":
      return html`<${Sound} data=${block.data} mimeType=${block.mimeType} />`;
    case "resource_link":
      return html`
        <${Pointed}
          server=${server}
          uri=${block.uri}
          title=${block.title || block.name}
          description=${block.description}
          mimeType=${block.mimeType}
        />
      `;
    case "resource":
      return html`
        <${Fold}
          open=${/^(?:image|audio)\//i.test(block.resource.mimeType ?? "")}
          title=${html`
            <${Icon} name="file" />${" "}
            ${
              named(block) ||
              html`
                <code>
                  <${Say} text=${block.resource.uri} />
                </code>
              `
            }
          `}
        >
          <${Contents} contents=${block.resource} />
        </${Fold}>
      `;
    case "interlock/unknown":
      return html`<${Content} block=${block.block} server=${server} />`;
    case "tool_use":
      return html`
        <${Fold}
          title=${html`
            Calls${" "}
            <code>
              <${Say} text=${block.name} />
            </code>
          `}
        >
          <${Looked} value=${block.input ?? {}} label="How the arguments are shown" />
        </${Fold}>
      `;
    case "tool_result":
      return html`
        <${Fold} title="Result of a tool">
          ${(block.content ?? []).map(
            (one, at) => html`
              <${Content} key=${at} block=${one} server=${server} />
            `,
          )}
        </${Fold}>
      `;
    default:
      return html`
        <${Fold} title="Content of an unknown kind">
          <${Json} value=${block} />
        </${Fold}>
      `;
  }
}

/** A text of a tool: JSON as a value, other text unchanged. */
function ToolText({ text, whole = false }) {
  const value = useMemo(() => {
    if (!/^\s*[[{]/.test(text) || text.length > 200_000) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }, [text]);
  return value === undefined
    ? html`
      <${Plain} text=${text} limit=${whole ? Infinity : LONG} />
    `
    : html`
      <${Looked} value=${value} label="How the text is shown" />
    `;
}
