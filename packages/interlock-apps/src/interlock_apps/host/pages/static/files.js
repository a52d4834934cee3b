// @ts-check
// Files of the next message: a picker, paste and drop, their upload, and a preview of each.
import {
  Icon,
  IconButton,
  Say,
  cls,
  html,
  signal,
  size,
  useEffect,
  useRef,
  useState,
  visible,
} from "../kit/kit.js";
import { upload } from "../kit/net.js";
import { attempt, toast } from "./store.js";

const MOST = 20;
let keys = 0;
const lists = new Map();

/**
 * The files for the next message of a conversation.
 * @param {string} id
 * @returns {{value: any[]}}
 */
export function filesOf(id) {
  let found = lists.get(id);
  if (!found) lists.set(id, (found = signal([])));
  return found;
}

/**
 * Upload files for the next message. The host says at once if the model does not accept one.
 * @param {string} id the conversation
 * @param {string} model of a new conversation
 * @param {Iterable<File>} given
 */
export function addFiles(id, model, given) {
  const list = filesOf(id);
  const room = MOST - list.value.length;
  const files = [...given];
  if (files.length > room) toast("warning", `A message can have at most ${MOST} files.`);
  for (const file of files.slice(0, Math.max(0, room))) {
    const key = `f${++keys}`;
    const picture = file.type.startsWith("image/") ? URL.createObjectURL(file) : "";
    const one = { key, name: file.name || "Pasted file", size: file.size, picture, file: "" };
    list.value = [...list.value, one];
    send(list, one, file, id, model);
  }
}

async function send(list, one, file, id, model) {
  try {
    const known = await upload(file, { session: id, model });
    // It may have been removed meanwhile.
    list.value = list.value.map((each) => (each.key === one.key ? { ...each, ...known } : each));
  } catch (bad) {
    forget(one);
    list.value = list.value.filter((each) => each.key !== one.key);
    toast("error", bad instanceof Error ? bad.message : String(bad));
  }
}

/** Release the preview of a file. @param {any} one */
export function forget(one) {
  if (one.picture) URL.revokeObjectURL(one.picture);
}

/** Whether a file is still being uploaded. @param {string} id */
export const uploading = (id) => filesOf(id).value.some((one) => !one.file);

/** @param {{one: any, onRemove: () => void}} props */
function FileChip({ one, onRemove }) {
  const [broken, setBroken] = useState(false);
  const name = visible(one.name);
  const thumbnail = one.picture && !broken;
  return html`
    <span class=${cls("chip file-chip", thumbnail && "has-picture", !one.file && "is-busy")}>
      ${
        thumbnail
          ? html`<img src=${one.picture} alt="" onError=${() => setBroken(true)} />`
          : html`<${Icon} name="file" />`
      }
      <span class="chip-text" title=${name}>
        <${Say} text=${one.name} />
      </span>
      <span class="chip-from">${one.file ? size(one.size) : "Uploading …"}</span>
      <button type="button" aria-label=${`Remove ${name}`} onClick=${onRemove}>
        <${Icon} name="close" />
      </button>
    </span>
  `;
}

/** The files of the next message. @param {{id: string, onRemoved: () => void}} props */
export function Files({ id, onRemoved }) {
  const list = filesOf(id);
  if (!list.value.length) return null;
  const remove = (one) => {
    forget(one);
    list.value = list.value.filter((each) => each.key !== one.key);
    // Another message may still have the same file: only the host knows.
    if (one.file && !list.value.some((each) => each.file === one.file))
      attempt("removeFile", { file: one.file });
    onRemoved();
  };
  return html`
    <div class="chips" role="group" aria-label="Files">
      ${list.value.map(
        (one) => html`
          <${FileChip} key=${one.key} one=${one} onRemove=${() => remove(one)} />
        `,
      )}
    </div>
  `;
}

/**
 * A button that opens the file picker.
 * @param {{onFiles: (files: Iterable<File>) => void}} props
 */
export function FilePicker({ onFiles }) {
  const input = useRef(/** @type {any} */ (null));
  const chosen = () => {
    onFiles([...input.current.files]);
    input.current.value = ""; // the same file can be chosen again
  };
  return html`
    <${IconButton} name="clip" label="Attach files" onClick=${() => input.current.click()} />
    <input
      ref=${input}
      type="file"
      class="file-input"
      multiple
      tabindex="-1"
      aria-hidden="true"
      onChange=${chosen}
    />
  `;
}

const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

/**
 * Whether files are being dragged over the page; those that are dropped are passed on.
 * @param {(files: Iterable<File>) => void} onFiles
 */
export function useDrop(onFiles) {
  const [over, setOver] = useState(false);
  const take = useRef(onFiles);
  take.current = onFiles;
  useEffect(() => {
    let depth = 0;
    const enter = (event) => {
      if (!hasFiles(event) || document.querySelector("dialog[open]")) return;
      depth += 1;
      setOver(true);
    };
    const leave = () => {
      depth = Math.max(0, depth - 1);
      if (!depth) setOver(false);
    };
    // Without this the browser would leave the page and open the file.
    const hold = (event) => hasFiles(event) && event.preventDefault();
    const drop = (event) => {
      depth = 0;
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) take.current(event.dataTransfer.files);
    };
    const listeners = { dragenter: enter, dragleave: leave, dragover: hold, drop };
    for (const [name, listener] of Object.entries(listeners))
      document.addEventListener(name, /** @type {any} */ (listener));
    return () => {
      for (const [name, listener] of Object.entries(listeners))
        document.removeEventListener(name, /** @type {any} */ (listener));
    };
  }, []);
  return over;
}
