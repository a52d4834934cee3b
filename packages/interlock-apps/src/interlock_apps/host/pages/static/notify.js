// @ts-check
// Notifications about waiting questions while nobody looks at the page: the browser's own, a badge
// on the icon, and a sound. The title of the page counts the questions in any case.
import { effect, html, signal, visible } from "../kit/kit.js";
import { asks, eventListeners, open, questions } from "./store.js";

const KEY = "interlock-notifications";
const ICON = "kit/icon.svg";
const WAITING = "kit/icon-waiting.svg";
const TONE = { frequency: 660, seconds: 0.18, loudness: 0.15 };

/** @returns {{on: boolean, sound: boolean}} */
function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return { on: found.on === true, sound: found.sound === true };
  } catch {
    return { on: false, sound: false }; // storage may be forbidden
  }
}

/** What the person switched on. */
export const wishes = signal(kept());
/** What the browser says: "granted", "denied", "default", or "none" if it has no notifications. */
export const permission = signal(
  typeof Notification === "undefined" ? "none" : Notification.permission,
);
/** The notifications that are shown, by question. @type {Map<string, Notification>} */
const shown = new Map();
let audio = /** @type {AudioContext | null} */ (null);

const unseen = () => document.visibilityState !== "visible";

/** Change the wishes, and keep them. @param {Partial<{on: boolean, sound: boolean}>} change */
function wish(change) {
  wishes.value = { ...wishes.value, ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(wishes.value));
  } catch {
    // the choice lasts for this page only
  }
}

/** Switch notifications on, if the browser allows it, or off. @param {boolean} on */
async function turn(on) {
  if (on && permission.value === "default")
    permission.value = await Notification.requestPermission();
  wish({ on: on && permission.value === "granted" });
}

/** Switch the sound on or off; on is heard at once. @param {boolean} on */
function turnSound(on) {
  wish({ sound: on });
  if (on) beep();
}

/** A short tone. A browser that has seen no click yet stays silent. */
function beep() {
  try {
    audio ??= new AudioContext();
    if (audio.state === "suspended") audio.resume();
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    tone.frequency.value = TONE.frequency;
    volume.gain.value = TONE.loudness;
    volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + TONE.seconds);
    tone.connect(volume).connect(audio.destination);
    tone.start();
    tone.stop(audio.currentTime + TONE.seconds);
  } catch {
    // no sound on this machine
  }
}

/** Tell about a new question. @param {any} question */
function tell(question) {
  if (!unseen()) return;
  if (wishes.value.sound) beep();
  if (!wishes.value.on || permission.value !== "granted") return;
  const note = new Notification(visible(asks(question)), {
    body: "Interlock waits for your answer.",
    tag: question.id,
    icon: ICON,
  });
  note.onclick = () => {
    window.focus();
    if (question.session) open(question.session);
    note.close();
  };
  note.onclose = () => shown.delete(question.id);
  shown.set(question.id, note);
}

/** Take back the notification of a question. @param {string} id */
function withdraw(id) {
  shown.get(id)?.close();
  shown.delete(id);
}

/** Start to listen. */
export function beginNotifications() {
  eventListeners.add((/** @type {any} */ { event }) => {
    if (event.type === "asked") tell(event.question);
    else if (event.type === "answered") withdraw(event.question);
  });
  document.addEventListener("visibilitychange", () => {
    if (!unseen()) for (const id of [...shown.keys()]) withdraw(id);
    badge();
  });
  effect(badge);
}

/** The icon of the page: with a dot while a question waits and nobody looks. */
function badge() {
  const waits = questions.value.size > 0 && unseen();
  const link = document.querySelector("link[rel=icon]");
  if (link?.getAttribute("href") !== (waits ? WAITING : ICON))
    link?.setAttribute("href", waits ? WAITING : ICON);
}

/** The switches, as a section of the settings. */
export function NotificationsSection() {
  const { on, sound } = wishes.value;
  const blocked = permission.value === "denied" || permission.value === "none";
  return html`
    <div class="panel-part">
      <p class="quiet">
        When a question waits and this page is not visible, Interlock can tell you. The title of the
        page counts the questions in any case.
      </p>
      <label class="check-line">
        <input
          type="checkbox"
          checked=${on}
          disabled=${blocked}
          onChange=${(/** @type {any} */ event) => turn(event.currentTarget.checked)}
        />
        <span>Show a notification</span>
      </label>
      <label class="check-line">
        <input
          type="checkbox"
          checked=${sound}
          onChange=${(/** @type {any} */ event) => turnSound(event.currentTarget.checked)}
        />
        <span>Play a sound</span>
      </label>
      ${
        permission.value === "denied" &&
        html`
          <p class="wrong">
            Your browser blocks notifications of this page. Allow them in its settings.
          </p>
        `
      }
      ${
        permission.value === "none" && html`<p class="quiet">This browser has no notifications.</p>`
      }
    </div>
  `;
}
