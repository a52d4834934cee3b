// @ts-check
// The arguments of a call to approve: all of them are in the page, and only folding hides any.
import { Choice, Copy, Say, cls, html, json, useMemo, useState, visible } from "./kit.js";
import { isLeaf, leaves, step } from "./seen.js";

/**
 * With more values than this, or more characters of JSON, arguments are shown as JSON: a page could
 * not lay out more elements.
 */
const MOST = 2000;
const LONGEST = 200_000;
/** Wider tables would scroll sideways or break words. */
const COLUMNS = 6;

const isRow = (row) =>
  row && typeof row === "object" && !Array.isArray(row) && Object.values(row).every(isLeaf);

/** The columns of a list of flat objects that can be a table. @param {any} value */
function columnsOf(value) {
  if (!Array.isArray(value) || value.length < 2 || !value.every(isRow)) return null;
  const names = [...new Set(value.flatMap((row) => Object.keys(row)))];
  return names.length > 0 && names.length <= COLUMNS ? names : null;
}

/** A value without parts. */
function Leaf({ value }) {
  if (value === null) return html`<span class="quiet">nothing</span>`;
  if (typeof value === "boolean") return html`<span>${value ? "yes" : "no"}</span>`;
  if (typeof value === "number") return html`<span class="number">${String(value)}</span>`;
  if (value === "") return html`<span class="quiet">empty text</span>`;
  if (typeof value === "string") return html`<${Say} class="wrap" text=${value} />`;
  return html`<span class="quiet">${Array.isArray(value) ? "empty list" : "empty object"}</span>`;
}

/** The mark of an element: which value it shows completely. */
const marked = (value, at) => (isLeaf(value) ? { "data-leaf": at } : {});

function Table({ rows, columns, at }) {
  const cell = (row, name, place) => html`
    <td
      key=${name}
      class=${typeof row[name] === "number" ? "right" : ""}
      ...${Object.hasOwn(row, name) ? marked(row[name], at + step(place) + step(name)) : {}}
    >
      ${Object.hasOwn(row, name) && html`<${Leaf} value=${row[name]} />`}
    </td>
  `;
  return html`
    <div class="table is-whole">
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
          ${rows.map(
            (row, place) => html`
              <tr key=${place}>${columns.map((name) => cell(row, name, place))}</tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

/**
 * A value with all of its parts. `root`: it is all of the arguments.
 * @param {{value: any, at: string, root?: boolean}} props
 */
function Whole({ value, at, root = false }) {
  if (isLeaf(value)) return html`<${Leaf} value=${value} />`;
  const columns = columnsOf(value);
  if (columns) return html`<${Table} rows=${value} columns=${columns} at=${at} />`;
  if (Array.isArray(value)) {
    return html`
      <ol class="values">
        ${value.map(
          (one, place) => html`
            <li key=${place} ...${marked(one, at + step(place))}>
              <${Whole} value=${one} at=${at + step(place)} />
            </li>
          `,
        )}
      </ol>
    `;
  }
  return html`
    <dl class=${cls("table-list", !root && "inner")}>
      ${Object.entries(value).map(
        ([name, one]) => html`
          <div key=${name} ...${marked(one, at + step(name))}>
            <dt>
              <${Say} text=${name} />
            </dt>
            <dd>
              <${Whole} value=${one} at=${at + step(name)} />
            </dd>
          </div>
        `,
      )}
    </dl>
  `;
}

/**
 * The arguments, as a table or as JSON. `at` is the pointer of the arguments, where those of
 * several calls are shown.
 * @param {{value: any, at?: string}} props
 */
export function Arguments({ value, at = "" }) {
  const text = useMemo(() => json(value), [value]);
  const many = useMemo(() => leaves(value).size > MOST || text.length > LONGEST, [value]);
  const [way, setWay] = useState("table");
  const asJson = many || way === "json";
  return html`
    <div class="looked">
      ${
        !many &&
        !at &&
        html`
          <${Choice}
            label="How the arguments are shown"
            value=${way}
            options=${[
              ["table", "Table"],
              ["json", "JSON"],
            ]}
            onChange=${setWay}
          />
        `
      }
      ${
        asJson &&
        html`
          <div class="json">
            <${Copy} text=${text} />
            <pre class="wrap" data-leaf=${at}>
              ${visible(text)}
            </pre>
          </div>
        `
      }
      ${!asJson && html`<${Whole} value=${value} at=${at} root=${true} />`}
    </div>
  `;
}
