// @ts-check
// Form fields, for servers' forms and the arguments of calls, each with its input, its limits and
// its errors.
import { Choice, Say, cls, html, json, several, useId, useState, visible } from "./kit.js";
import { parseExact } from "./exact.js";
import { step } from "./seen.js";

/**
 * A field, as `interlock.typed.form_fields` describes it. Only arguments of calls have `json`,
 * `lines` and `several` (one text, or several separated by commas).
 * @typedef {{name: string, title: string, description?: string, kind: "text" | "number" | "integer"
 *   | "boolean" | "choice" | "choices" | "json" | "lines" | "several", required?: boolean,
 *   nullable?: boolean, long?: boolean, default?: any, format?: string, pattern?: string, least?:
 *   number | null, most?: number | null, options?: [string, string][]}} Field
 */

const MULTILINE = /^(?:textarea|multiline|markdown|text)$/i;
const LENGTHY = /\b(?:text|body|markdown|paragraphs?|lines)\b/i;
const ONE_LINE = /\b(?:one|single) line\b/i;
/** A longer text gets several lines, unless its schema says otherwise. */
const LINE = 1000;

/**
 * The fields of an object's schema; a property that is not flat becomes a JSON field.
 * @param {any} schema
 * @returns {Field[]}
 */
export function fieldsOf(schema) {
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  return Object.entries(schema?.properties ?? {}).map(([name, node]) => ({
    ...fieldOf(node && typeof node === "object" ? node : {}),
    name,
    title: node?.title || name,
    description: node?.description ?? "",
    required: required.has(name),
    default: node?.default,
  }));
}

const nothing = (one) => one?.type === "null" || one?.const === null;

/**
 * The schema without its null alternative.
 * @param {any} node
 * @returns {any}
 */
function otherwise(node) {
  const among = node.anyOf ?? node.oneOf;
  if (Array.isArray(among) && among.some(nothing)) {
    const { anyOf, oneOf, ...rest } = node;
    const left = among.filter((one) => !nothing(one));
    return { ...rest, ...(left.length === 1 ? left[0] : { anyOf: left }) };
  }
  if (Array.isArray(node.type) && node.type.includes("null")) {
    const left = node.type.filter((one) => one !== "null");
    return { ...node, type: left.length === 1 ? left[0] : left };
  }
  return node;
}

/** @param {any} node @returns {any} */
function fieldOf(node) {
  const inner = otherwise(node);
  if (inner !== node) return { ...fieldOf(inner), nullable: true };
  const two = node.anyOf ?? node.oneOf;
  if (
    Array.isArray(two) &&
    two.length === 2 &&
    two.some((one) => one?.type === "string" && !one.enum)
  ) {
    const list = two.find(
      (one) => one?.type === "array" && one.items?.type === "string" && !one.items.enum,
    );
    if (list) return { kind: "several", least: list.minItems, most: list.maxItems };
  }
  const texts = (list) =>
    Array.isArray(list) && list.length > 0 && list.every((one) => typeof one === "string");
  if (texts(node.enum))
    return {
      kind: "choice",
      options: node.enum.map((value, at) => [value, node.enumNames?.[at] ?? value]),
    };
  const titled = node.oneOf ?? node.anyOf;
  if (Array.isArray(titled) && texts(titled.map((one) => one?.const)))
    return {
      kind: "choice",
      options: titled.map((one) => [one.const, one.title ?? one.const]),
    };
  switch (node.type) {
    case "string":
      return {
        kind: "text",
        format: node.format ?? "",
        pattern: node.pattern ?? "",
        least: node.minLength,
        most: node.maxLength,
        long:
          MULTILINE.test(node.format ?? "") ||
          (!ONE_LINE.test(node.description ?? "") && LENGTHY.test(node.description ?? "")),
      };
    case "number":
    case "integer":
      return { kind: node.type, least: node.minimum, most: node.maximum };
    case "boolean":
      return { kind: "boolean" };
    case "array": {
      const items = fieldOf(node.items ?? {});
      if (items.kind === "choice")
        return {
          kind: "choices",
          options: items.options,
          least: node.minItems,
          most: node.maxItems,
        };
      if (items.kind === "text" && node.items?.type === "string")
        return { kind: "lines", least: node.minItems, most: node.maxItems };
      return { kind: "json" };
    }
    default:
      return { kind: "json" };
  }
}

/**
 * The initial content of a form: texts as typed, by name.
 * @param {Field[]} fields
 * @param {any} values
 */
export function typed(fields, values = {}) {
  return Object.fromEntries(
    fields.map((field) => [
      field.name,
      shown(field, Object.hasOwn(values, field.name) ? values[field.name] : field.default),
    ]),
  );
}

/** @param {Field} field @param {any} value */
function shown(field, value) {
  if (field.kind === "boolean")
    return value === undefined || value === null ? "" : value ? "yes" : "no";
  if (field.kind === "choices") return Array.isArray(value) ? value : [];
  if (value === undefined || value === null) return "";
  if (field.kind === "lines") return Array.isArray(value) ? value.join("\n") : String(value);
  if (field.kind === "several") return Array.isArray(value) ? value.join(", ") : String(value);
  if (field.kind === "json") return json(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const EMAIL = /^[^\s@]+@[^\s@]+\.?[^\s@]*$/;

/**
 * The values of a form, and its errors, by name.
 * @param {Field[]} fields
 * @param {Record<string, any>} form
 */
export function checked(fields, form) {
  // Without a prototype: a field may be named "__proto__".
  const content = /** @type {Record<string, any>} */ (Object.create(null));
  const wrong = /** @type {Record<string, string>} */ (Object.create(null));
  for (const field of fields) {
    const raw = form[field.name];
    if (raw === "" || raw === undefined || (Array.isArray(raw) && !raw.length && !field.least)) {
      if (field.required && field.nullable) content[field.name] = null;
      else if (field.required && !(field.kind === "choices" || field.kind === "lines"))
        wrong[field.name] = "This field is required.";
      else if (field.required) content[field.name] = [];
      continue;
    }
    const [value, words] = read(field, raw);
    if (words) wrong[field.name] = words;
    else content[field.name] = value;
  }
  return { content, wrong };
}

/** Split a text at commas outside quotation marks. @param {string} text */
const apart = (text) =>
  (text.match(/(?:"[^"]*"?|[^,"])+/g) ?? []).map((one) => one.trim()).filter(Boolean);

/**
 * The limits of a number in words.
 * @param {number | null | undefined} least
 * @param {number | null | undefined} most
 */
function between(least, most) {
  if (least == null) return `at most ${most}`;
  return most == null ? `at least ${least}` : `from ${least} to ${most}`;
}

/** @param {Field} field @param {any} raw @returns {[any, string]} */
function read(field, raw) {
  const { least, most } = field;
  const few = least !== undefined && least !== null;
  const much = most !== undefined && most !== null;
  switch (field.kind) {
    case "boolean":
      return [raw === "yes", ""];
    case "choice":
      return [raw, ""];
    case "number":
    case "integer": {
      const number = Number(
        String(raw)
          .trim()
          .replace(/^([+-]?\d+),(\d+)$/, "$1.$2"),
      );
      if (!Number.isFinite(number)) return [null, "This must be a number."];
      if (field.kind === "integer" && !Number.isInteger(number))
        return [null, "This must be a whole number."];
      if (field.kind === "integer" && !Number.isSafeInteger(number))
        return [null, "This number is too large: a browser would round it."];
      if ((few && number < least) || (much && number > most))
        return [null, `This must be ${between(least, most)}.`];
      return [number, ""];
    }
    case "choices":
    case "several":
    case "lines": {
      const list = Array.isArray(raw)
        ? raw
        : field.kind === "several"
          ? apart(String(raw))
          : String(raw)
              .split("\n")
              .filter((one) => one.trim());
      if (few && list.length < least) return [null, `Choose at least ${least}.`];
      if (much && list.length > most) return [null, `Choose at most ${most}.`];
      return [field.kind === "several" && list.length === 1 ? list[0] : list, ""];
    }
    case "json":
      try {
        return [parseExact(raw), ""];
      } catch (bad) {
        return [null, `This is not JSON: ${bad instanceof Error ? bad.message : bad}`];
      }
    default: {
      const length = [...raw].length;
      if (few && length < least)
        return [null, `This must have at least ${several(least, "character")}.`];
      if (much && length > most)
        return [null, `This must have at most ${several(most, "character")}.`];
      if (field.format === "email" && !EMAIL.test(raw))
        return [null, "This must be an e-mail address, such as name@example.com."];
      if (field.format === "uri" && !URL.canParse(raw))
        return [null, "This must be an address of the web, such as https://example.com/."];
      if (field.format === "date" && !/^\d{4}-\d\d-\d\d$/.test(raw))
        return [null, "This must be a date, such as 2026-12-31."];
      if (field.format === "date-time") {
        const date = new Date(raw);
        return Number.isNaN(date.getTime())
          ? [null, "This must be a date with time, such as 2026-12-31T18:30:00Z."]
          : [
              /(?:Z|[+-]\d\d:\d\d)$/i.test(raw) ? raw : date.toISOString().replace(".000Z", "Z"),
              "",
            ];
      }
      return [raw, ""];
    }
  }
}

const HINTS = {
  email: "E-mail address",
  uri: "Web address",
  date: "Date",
  "date-time": "Date and time",
};
const TYPES = { email: "email", uri: "url", date: "date" };

/**
 * The limits of a value, if they matter now: for a text, how much room is left once it is little.
 * @param {Field} field
 * @param {any} value
 */
function bounds(field, value) {
  const { least, most, kind } = field;
  if (kind === "several") return "separate several with commas";
  if (kind === "text") {
    const length = [...String(value ?? "")].length;
    return most && length > most * 0.9 && length > most - 200 && length > 1
      ? `${length.toLocaleString("en")} of at most ${several(most, "character")}`
      : "";
  }
  const few = least !== undefined && least !== null;
  const much = most !== undefined && most !== null;
  if (!few && !much) return "";
  const unit = kind === "choices" || kind === "lines" ? " of them" : "";
  return few && much
    ? `${least} to ${most}${unit}`
    : few
      ? `at least ${least}${unit}`
      : `at most ${most}${unit}`;
}

/**
 * One field.
 * @param {{field: Field, value: any, words?: string, onChange: (value: any) => void, compact?:
 *   boolean}} props
 */
export function Input({ field, value, words = "", onChange }) {
  const id = useId();
  const about = cls(field.description && `${id}-about`, words && `${id}-wrong`) || undefined;
  const shared = {
    id,
    "aria-describedby": about,
    "aria-invalid": words ? "true" : undefined,
    "aria-required": field.required ? "true" : undefined,
    "data-field": field.name,
  };
  const change = (event) => onChange(event.currentTarget.value);
  const hint = [
    HINTS[/** @type {keyof typeof HINTS} */ (field.format ?? "")],
    bounds(field, value),
    field.kind === "lines" && "one per line",
    field.kind === "json" && "JSON",
  ]
    .filter(Boolean)
    .join(" · ");
  const grouped =
    field.kind === "choices" ||
    field.kind === "boolean" ||
    (field.kind === "choice" && (field.options ?? []).length <= 4);
  const label = html`
    <${Say} text=${field.title || field.name} />
    ${
      field.required
        ? html`
          <span class="needed" title="needed" aria-hidden="true">
            ${" "}
            *
          </span>
        `
        : html`
          <span class="optional"> optional</span>
        `
    }
  `;
  const notes = html`
    ${
      field.description &&
      html`
        <p class="about" id=${`${id}-about`}>
          <${Say} text=${field.description} />
        </p>
      `
    }
  `;
  const wrong = html`
    ${
      words &&
      html`
        <p class="wrong" id=${`${id}-wrong`} role="alert">
          ${visible(words)}
        </p>
      `
    }
  `;
  if (grouped)
    return html`
      <fieldset class=${cls("field", words && "is-wrong")} aria-describedby=${about}>
        <legend>
          ${label}
          ${hint && html`<span class="hint">${hint}</span>`}
        </legend>
        ${notes}
        ${options(field, value, onChange, shared)}
        ${wrong}
      </fieldset>
    `;
  const tall =
    field.kind !== "text"
      ? 3
      : field.long || /\n/.test(value ?? "")
        ? Math.min(12, Math.max(4, String(value ?? "").split("\n").length))
        : 1;
  const control =
    field.kind === "choice"
      ? html`
        <select ...${shared} value=${value} onChange=${change}>
          <option value="">${field.required ? "Choose …" : "Nothing chosen"}</option>
          ${(field.options ?? []).map(
            ([key, name]) => html`
              <option key=${key} value=${key}>
                ${visible(name)}
              </option>
            `,
          )}
        </select>
      `
      : field.kind === "json" ||
          field.kind === "lines" ||
          (field.kind === "text" && (tall > 1 || (field.most ?? 0) > LINE))
        ? html`
          <textarea
            ...${shared}
            rows=${tall}
            class=${field.kind === "json" ? "mono" : ""}
            spellcheck=${field.kind === "text"}
            value=${value}
            onInput=${change}
          ></textarea>
        `
        : html`
          <input
            ...${shared}
            type=${TYPES[/** @type {keyof typeof TYPES} */ (field.format ?? "")] ?? "text"}
            inputmode=${
              field.kind === "integer" ? "numeric" : field.kind === "number" ? "decimal" : undefined
            }
            autocomplete="off"
            value=${value}
            onInput=${change}
          />
        `;
  return html`
    <div class=${cls("field", words && "is-wrong")}>
      <label for=${id}>
        ${label}
        ${hint && html`<span class="hint">${hint}</span>`}
      </label>
      ${notes}
      ${control}
      ${wrong}
    </div>
  `;
}

/** The choices of a field, each with a box or a button of its own. */
function options(field, value, onChange, shared) {
  const many = field.kind === "choices";
  const list =
    field.kind === "boolean"
      ? [
          ["yes", "Yes"],
          ["no", "No"],
        ]
      : (field.options ?? []);
  const toggle = (key) =>
    onChange(
      many
        ? value.includes(key)
          ? value.filter((one) => one !== key)
          : [...list.map(([each]) => each).filter((each) => each === key || value.includes(each))]
        : key,
    );
  return html`
    <div class="options">
      ${list.map(
        ([key, name], at) => html`
          <label key=${key} class="option">
            <input
              type=${many ? "checkbox" : "radio"}
              name=${shared.id}
              data-field=${at ? undefined : field.name}
              checked=${many ? value.includes(key) : value === key}
              onChange=${() => toggle(key)}
            />
            <${Say} text=${name} />
          </label>
        `,
      )}
      ${
        !many &&
        !field.required &&
        value !== "" &&
        html`
          <button type="button" class="small quiet" onClick=${() => onChange("")}>
            Clear
          </button>
        `
      }
    </div>
  `;
}

/** Kinds of fields that show their whole value while it is edited. */
const SHORT = new Set(["boolean", "choice", "choices", "integer", "number", "several", "text"]);

/**
 * Move the focus to the first field with an error.
 * @param {Element | null} form
 * @param {Record<string, string>} wrong
 */
export function toFirstWrong(form, wrong) {
  const name = Object.keys(wrong)[0];
  const found = name && form?.querySelector(`[data-field=${CSS.escape(name)}]`);
  if (found instanceof HTMLElement) found.focus();
}

const equal = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * Whether a field can show a value and return it after an edit.
 * @param {Field} field
 * @param {any} value
 */
function isFaithful(field, value) {
  if (value === undefined || value === null) return true;
  const keys = (field.options ?? []).map(([key]) => key);
  switch (field.kind) {
    case "boolean":
      return typeof value === "boolean";
    case "choice":
      return keys.includes(value);
    case "choices":
      return (
        Array.isArray(value) &&
        equal(
          value,
          keys.filter((key) => value.includes(key)),
        )
      );
    case "number":
    case "integer":
      return typeof value === "number";
    case "text":
      return typeof value === "string" && !value.includes("\r");
    case "lines":
    case "several": {
      if (typeof value === "string") return field.kind === "several"; // written as people write it
      return (
        Array.isArray(value) &&
        value.every((one) => typeof one === "string") &&
        equal(read({ ...field, least: null, most: null }, shown(field, value))[0], value)
      );
    }
    default:
      return true;
  }
}

/**
 * The arguments of a call while they are edited, as a form and as JSON. Both ways show the same
 * arguments: a member that the form has no field for, and a value that its field cannot show, stay
 * as they are. Each edit returns a new draft.
 */
export class ArgumentsDraft {
  /**
   * @param {any} schema
   * @param {any} value the arguments
   * @param {boolean} [withDefaults] whether fields without a value show their default
   */
  constructor(schema, value, withDefaults = true) {
    this.schema = schema;
    /** The arguments that the form was made from. */
    this.before = value ?? {};
    this.value = this.before;
    /** @type {Field[]} */
    this.fields = fieldsOf(schema).map((field) => {
      const own = Object.hasOwn(this.before, field.name) ? this.before[field.name] : undefined;
      const fitting = isFaithful(field, own)
        ? field
        : { ...field, kind: /** @type {const} */ ("json") };
      return withDefaults ? fitting : { ...fitting, default: undefined };
    });
    this.form = typed(this.fields, this.before);
    this.text = json(value);
    /** @type {Record<string, string>} errors by field; that of the JSON text by "" */
    this.wrong = {};
  }

  /** Whether the arguments have errors. */
  get isWrong() {
    return Object.keys(this.wrong).length > 0;
  }

  /**
   * The draft after an edit of a field.
   * @param {string} name
   * @param {any} raw
   */
  withField(name, raw) {
    const next = this.copy();
    next.form = { ...this.form, [name]: raw };
    const found = checked(this.fields, next.form);
    const came = typed(this.fields, this.before);
    const members = new Map(Object.entries(this.before));
    for (const field of this.fields) {
      const now = next.form[field.name];
      if (members.has(field.name) && equal(now, came[field.name])) continue; // untouched
      if (Object.hasOwn(found.content, field.name))
        members.set(field.name, found.content[field.name]);
      else if (found.wrong[field.name] && now !== "" && now !== undefined)
        members.set(field.name, now); // as it was typed
      else members.delete(field.name);
    }
    const known = this.fields.map((field) => field.name).filter((each) => members.has(each));
    const order = new Set([...known, ...members.keys()]);
    next.value = Object.fromEntries([...order].map((each) => [each, members.get(each)]));
    next.text = json(next.value);
    next.wrong = found.wrong;
    return next;
  }

  /**
   * The draft after an edit of the JSON text. Text that is not an object keeps the arguments.
   * @param {string} text
   */
  withText(text) {
    try {
      const made = parseExact(text);
      if (!made || typeof made !== "object" || Array.isArray(made))
        throw new SyntaxError("the arguments are an object");
      const next = new ArgumentsDraft(this.schema, made, false);
      next.text = text;
      return next;
    } catch (bad) {
      const next = this.copy();
      next.text = text;
      next.wrong = { "": `This is not JSON: ${bad instanceof Error ? bad.message : bad}` };
      return next;
    }
  }

  copy() {
    return Object.assign(Object.create(ArgumentsDraft.prototype), this);
  }
}

/**
 * An editor for the arguments of a call, as a form or as JSON. It reports every change: the
 * arguments, whether they have errors, and the pointer of the value just written.
 * @param {{schema: any, value: any,
 *   onChange: (value: any, wrong: boolean, pointer?: string) => void}} props
 */
export function ArgumentsEditor({ schema, value, onChange }) {
  const [draft, setDraft] = useState(() => new ArgumentsDraft(schema, value));
  const { fields, form, text, wrong } = draft;
  const [way, setWay] = useState(fields.length ? "form" : "json");
  const change = (name, raw) => {
    const next = draft.withField(name, raw);
    setDraft(next);
    const short = SHORT.has(fields.find((field) => field.name === name)?.kind ?? "");
    onChange(next.value, next.isWrong, short ? step(name) : "");
  };
  const write = (event) => {
    const next = draft.withText(event.currentTarget.value);
    setDraft(next);
    onChange(next.value, next.isWrong);
  };
  const words = Object.entries(wrong).map(([name, one]) => (name ? `${name}: ${one}` : one));
  return html`
    <div class="editor">
      ${
        fields.length > 0 &&
        html`
          <${Choice}
            label="How the arguments are edited"
            value=${way}
            options=${[
              ["form", "Form"],
              ["json", "JSON"],
            ]}
            onChange=${setWay}
          />
        `
      }
      ${
        way === "form"
          ? html`
            ${fields.map(
              (field) => html`
                <${Input}
                  key=${field.name}
                  field=${field}
                  value=${form[field.name]}
                  words=${wrong[field.name]}
                  onChange=${(raw) => change(field.name, raw)}
                />
              `,
            )}
            ${
              wrong[""] &&
              html`
                <p class="wrong" role="alert">
                  The JSON text has an error. The form shows the arguments before it.
                </p>
              `
            }
          `
          : html`
            <div class=${cls("field", words.length > 0 && "is-wrong")}>
              <textarea
                class="mono"
                data-leaf=""
                rows=${Math.min(16, Math.max(4, text.split("\n").length))}
                spellcheck=${false}
                aria-label="Arguments as JSON"
                value=${text}
                onInput=${write}
              ></textarea>
              ${words.map(
                (one) => html`
                  <p key=${one} class="wrong" role="alert">
                    ${visible(one)}
                  </p>
                `,
              )}
            </div>
          `
      }
    </div>
  `;
}
