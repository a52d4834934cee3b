// @ts-check
// A button that opens a menu, in the top layer of the page: no list that scrolls cuts it off.
import { Icon, IconButton, cls, html, useId, useRef, useState } from "../kit/kit.js";

const GAP = 4;

/**
 * An entry of a menu: an action, or a download.
 * @typedef {{icon: any, title: string, take?: () => void, href?: string, danger?: boolean}} Entry
 */

/** Place the menu at its button, within the window. @param {any} menu @param {any} button */
function place(menu, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const left = Math.min(at.left, window.innerWidth - width - GAP);
  const below = at.bottom + GAP;
  const top = below + height < window.innerHeight ? below : at.top - height - GAP;
  menu.style.left = `${Math.max(GAP, left)}px`;
  menu.style.top = `${Math.max(GAP, top)}px`;
}

/**
 * @param {{label: string, about?: string, entries: Entry[], class?: string}} props `about`: the id
 *   of an element that says what the menu is about
 */
export function Menu({ label, about, entries, class: name = "" }) {
  const id = useId();
  const menu = useRef(/** @type {any} */ (null));
  const [open, setOpen] = useState(false);
  const show = () => {
    if (open) return menu.current.hidePopover();
    menu.current.showPopover();
  };
  const toggled = (event) => {
    const shown = event.newState === "open";
    setOpen(shown);
    if (!shown) return;
    place(menu.current, document.getElementById(`${id}-button`));
    menu.current.querySelector("[role=menuitem]")?.focus();
  };
  const close = () => {
    menu.current.hidePopover();
    document.getElementById(`${id}-button`)?.focus();
  };
  const key = (event) => {
    const items = [...menu.current.querySelectorAll("[role=menuitem]")];
    const at = items.indexOf(document.activeElement);
    const to = {
      ArrowDown: (at + 1) % items.length,
      ArrowUp: (at + items.length - 1) % items.length,
      Home: 0,
      End: items.length - 1,
    }[event.key];
    if (to !== undefined) items[to].focus();
    else if (event.key === "Escape" || event.key === "Tab") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`
    <${IconButton}
      id=${`${id}-button`}
      name="more"
      label=${label}
      class=${cls("menu-button", name)}
      aria-haspopup="menu"
      aria-expanded=${open ? "true" : "false"}
      aria-describedby=${about}
      onClick=${show}
    />
    <div
      ref=${menu}
      popover="auto"
      class="menu"
      role="menu"
      aria-label=${label}
      onToggle=${toggled}
      onKeyDown=${key}
    >
      ${entries.map((entry) => html`<${Item} key=${entry.title} entry=${entry} close=${close} />`)}
    </div>
  `;
}

/** @param {{entry: Entry, close: () => void}} props */
function Item({ entry, close }) {
  const inner = html`
    <${Icon} name=${entry.icon} />
    <span>${entry.title}</span>
  `;
  if (entry.href)
    return html`
      <a
        role="menuitem"
        tabindex="-1"
        class="menu-item"
        href=${entry.href}
        download
        onClick=${close}
      >
        ${inner}
      </a>
    `;
  const take = () => {
    close();
    entry.take?.();
  };
  return html`
    <button
      type="button"
      role="menuitem"
      tabindex="-1"
      class=${cls("menu-item", entry.danger && "deny")}
      onClick=${take}
    >
      ${inner}
    </button>
  `;
}
