// @ts-check
// Downloads: content of servers and models as files, with names that are safe to save.
import { Icon, html } from "./kit.js";

const LONGEST = 80;
// What file systems reserve, control and invisible characters, and separators of lines.
const UNSAFE = /[<>:"/\\|?*]|\p{C}|\p{Zl}|\p{Zp}/gu;
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/** @type {Record<string, string>} */
const EXTENSIONS = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/gif": "gif",
  "image/webp": "webp",
  "image/avif": "avif",
  "image/bmp": "bmp",
  "image/svg+xml": "svg",
  "audio/wav": "wav",
  "audio/x-wav": "wav",
  "audio/mpeg": "mp3",
  "audio/ogg": "ogg",
  "application/pdf": "pdf",
  "application/json": "json",
  "text/csv": "csv",
  "text/plain": "txt",
};

/** @type {Record<string, string>} */
const OF_LANGUAGES = {
  bash: "sh",
  c: "c",
  "c++": "cpp",
  cpp: "cpp",
  csharp: "cs",
  css: "css",
  diff: "diff",
  go: "go",
  html: "html",
  java: "java",
  javascript: "js",
  js: "js",
  json: "json",
  jsx: "jsx",
  kotlin: "kt",
  markdown: "md",
  md: "md",
  php: "php",
  py: "py",
  python: "py",
  r: "r",
  ruby: "rb",
  rust: "rs",
  sh: "sh",
  shell: "sh",
  sql: "sql",
  swift: "swift",
  toml: "toml",
  ts: "ts",
  tsx: "tsx",
  typescript: "ts",
  xml: "xml",
  yaml: "yaml",
  yml: "yaml",
};

/** The extension of a media type; "bin" if it is not known. @param {string} mime */
export const extensionOf = (mime) =>
  EXTENSIONS[mime.split(";")[0].trim().toLowerCase()] ?? (/^text\//i.test(mime) ? "txt" : "bin");

/**
 * The programming language of a file, by its name; "" if it is not known.
 * @param {string} name
 */
export function languageOfFile(name) {
  const extension = name.split(".").at(-1)?.toLowerCase() ?? "";
  return Object.values(OF_LANGUAGES).includes(extension) && name.includes(".") ? extension : "";
}

/** The extension of a programming language; "txt" if it is not known. @param {string} language */
export const extensionOfLanguage = (language) => OF_LANGUAGES[language.toLowerCase()] ?? "txt";

/**
 * A name for a file. Only its last part is used, nothing in it can leave the folder, change how it
 * is read, or run: the extension is always the given one.
 * @param {string} name of a server or a model
 * @param {string} extension
 */
export function safeName(name, extension) {
  const parts = name.split(/[\\/]/);
  const last = parts.filter(Boolean).at(-1) ?? "";
  const plain = last.replace(UNSAFE, "").replace(/^[.\s]+|[.\s]+$/g, "");
  const ends = plain.toLowerCase().endsWith(`.${extension}`);
  const stem = (ends ? plain.slice(0, -extension.length - 1) : plain).slice(0, LONGEST);
  const safe = stem.replace(/[.\s]+$/, "") || "file";
  return `${RESERVED.test(safe) ? "_" : ""}${safe}.${extension}`;
}

/** The bytes of base64 text. @param {string} data */
export const bytesOf = (data) => Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));

/**
 * Save content as a file.
 * @param {string} name a safe name
 * @param {BlobPart} content
 */
export function save(name, content) {
  // The browser never shows this type, whatever the content is.
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/**
 * A button that saves content.
 * @param {{name: string, content: () => any, label?: string, what?: string}} props `name`: a safe
 *   name. `content` returns it, or a promise of it. `what`: what is saved, for screen readers
 */
export function Save({ name, content, label = "Save", what = "" }) {
  const click = async () => save(name, await content());
  return html`
    <button
      type="button"
      class="small quiet"
      title=${`Save as ${name}`}
      aria-label=${what ? `${label} ${what}` : undefined}
      onClick=${click}
    >
      <${Icon} name="save" />
      <span>${label}</span>
    </button>
  `;
}

/** Whether a program for tables would run a cell as a formula. @param {string} text */
const formula = (text) => /^[=+\-@\t\r]/.test(text);

/**
 * Rows as comma-separated values (RFC 4180). Texts that a program for tables would run as a formula
 * begin with an apostrophe.
 * @param {Record<string, any>[]} rows
 */
export function csv(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (value) => {
    const given = value ?? "";
    const text = typeof given === "object" ? JSON.stringify(given) : String(given);
    const safe = typeof given === "string" && formula(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [names, ...rows.map((row) => names.map((name) => row[name]))]
    .map((row) => row.map(cell).join(","))
    .join("\r\n");
}
