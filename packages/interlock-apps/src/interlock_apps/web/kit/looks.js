// @ts-check
// Light or dark: the system's setting, until the person chooses.
import { effect, signal } from "./kit.js";

const KEY = "interlock-looks";

/** @returns {string} */
function kept() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // storage may be forbidden
  }
}

/** "light", "dark", or "" for the system's setting. */
export const looks = signal(["light", "dark"].includes(kept()) ? kept() : "");

/** Switch to the next of the three. */
export function next() {
  const order = window.matchMedia("(prefers-color-scheme: dark)").matches
    ? ["", "light", "dark"]
    : ["", "dark", "light"];
  looks.value = order[(order.indexOf(looks.value) + 1) % order.length];
}

effect(() => {
  document.documentElement.dataset.looks = looks.value;
  try {
    if (looks.value) localStorage.setItem(KEY, looks.value);
    else localStorage.removeItem(KEY);
  } catch {
    // the choice lasts for this page only
  }
});
