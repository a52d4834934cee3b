// @ts-check
// The inspector's page: the bar, the connections at the side, the tabs, and one message beside
// them.
import { Icon, IconButton, Say, cls, html, useEffect, useState } from "../kit/kit.js";
import { looks, next } from "../kit/looks.js";
import { barred, failures, line } from "../kit/net.js";
import { ComparePanel } from "./compare.js";
import { Connections } from "./connections.js";
import { MessagePanel } from "./message.js";
import { panels } from "./panels/index.js";
import { SavedPanel } from "./saved.js";
import { connection, ready, show, spoken, tab, toasts, view } from "./store.js";
import { TimelinePanel } from "./timeline.js";

const LOOKS = {
  "": ["half", "follows the system"],
  light: ["sun", "light"],
  dark: ["moon", "dark"],
};

const OWN = [
  { id: "timeline", title: "Timeline", Panel: TimelinePanel },
  { id: "compare", title: "Compare", Panel: ComparePanel },
  { id: "saved", title: "Saved calls", Panel: SavedPanel },
];

/** The tabs for the selected connection: the timeline, its features, and the tabs about several. */
function tabs() {
  const now = connection.value;
  const features = now ? panels.filter((one) => one.available(now)) : [];
  const [timeline, ...rest] = OWN;
  return [timeline, ...features, ...rest];
}

/** @param {{drawer: boolean, onDrawer: () => void}} props */
function Bar({ drawer, onDrawer }) {
  const [icon, words] = LOOKS[looks.value];
  const now = connection.value;
  return html`
    <header class="bar">
      <${IconButton}
        name="menu"
        label="Connections"
        class="only-narrow"
        aria-expanded=${drawer ? "true" : "false"}
        onClick=${onDrawer}
      />
      <span class="brand">
        <img src="kit/icon.svg" alt="" width="24" height="24" />
        <span class="brand-name">Inspector</span>
      </span>
      <h1 class="bar-title">
        ${now ? html`<${Say} text=${now.name} />` : "All connections"}
      </h1>
      <span class="grow"></span>
      <${IconButton} name=${icon} label=${`Appearance: ${words}. Change`} onClick=${next} />
    </header>
  `;
}

/** A lost connection to the inspector, and a connection that failed. */
function Banners() {
  const now = connection.value;
  const lost = line.value === "lost" || barred.value;
  const restarted =
    failures.value > 3 ? " If you started it again, open the address that it printed." : "";
  return html`
    ${
      lost &&
      html`
        <p class="banner lost" role="alert">
          <${Icon} name="warn" />
          <span class="wrap">
            <${Say}
              text=${barred.value || `The inspector is not reachable. Retrying …${restarted}`}
            />
          </span>
        </p>
      `
    }
    ${
      now?.status === "failed" &&
      html`
        <p class="banner lost" role="alert">
          <${Icon} name="warn" />
          <span class="wrap"><${Say} text=${now.failure} /></span>
        </p>
      `
    }
  `;
}

function Tabs() {
  const all = tabs();
  const open = all.find((one) => one.id === tab.value) ?? all[0];
  const move = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const at = (all.indexOf(open) + by + all.length) % all.length;
    show({ tab: all[at].id });
    document.getElementById(`tab-${all[at].id}`)?.focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown=${move}>
      ${all.map(
        (one) => html`
          <button
            key=${one.id}
            id=${`tab-${one.id}`}
            type="button"
            role="tab"
            class="tab"
            aria-selected=${one === open ? "true" : "false"}
            aria-controls="view"
            tabindex=${one === open ? "0" : "-1"}
            onClick=${() => show({ tab: one.id })}
          >
            ${one.title}
          </button>
        `,
      )}
    </div>
    <div id="view" class="view" role="tabpanel" aria-labelledby=${`tab-${open.id}`}>
      ${
        ready.value &&
        html`<${open.Panel}
          key=${`${open.id} ${connection.value?.name ?? ""}`}
          connection=${connection.value}
        />`
      }
    </div>
  `;
}

const SHOWN = 7000; // milliseconds for which a notice is shown unless it is an error

/** The newest notice; one that is not an error disappears by itself. */
function Toasts() {
  const [one] = toasts.value.slice(-1);
  const close = () => {
    toasts.value = toasts.value.filter((each) => each !== one);
  };
  useEffect(() => {
    if (!one || one.level === "error") return undefined;
    const timer = window.setTimeout(close, SHOWN);
    return () => window.clearTimeout(timer);
  }, [one]);
  return html`
    <div class="toasts" role="status" aria-label="Notices">
      ${
        one &&
        html`
          <div class=${`toast is-${one.level}`}>
            <${Icon} name=${one.level === "info" ? "bell" : "warn"} />
            <span class="grow wrap"><${Say} text=${one.words} /></span>
            <${IconButton} name="close" label="Close the notice" onClick=${close} />
          </div>
        `
      }
    </div>
  `;
}

/** The whole page. */
export function App() {
  const [drawer, setDrawer] = useState(false);
  const now = connection.value;
  useEffect(() => {
    document.title = now ? `${now.name} – Inspector` : "Inspector";
  }, [now?.name]);
  return html`
    <div class=${cls("app", view.value.row && "has-panel", drawer && "has-drawer")}>
      <a class="skip" href="#view">Skip to the view</a>
      <${Bar} drawer=${drawer} onDrawer=${() => setDrawer(!drawer)} />
      <nav
        class="side"
        aria-label="Connections"
        onClick=${(event) => {
          if (event.target.closest(".side-row")) setDrawer(false);
        }}
      >
        <${Connections} />
      </nav>
      ${drawer && html`<div class="scrim" onClick=${() => setDrawer(false)}></div>`}
      <main class="middle">
        <${Banners} />
        <${Tabs} />
      </main>
      ${view.value.row && html`<${MessagePanel} key=${`${view.value.in} ${view.value.row}`} />`}
      <${Toasts} />
      <div class="hidden-text" aria-live="polite" data-spoken>
        <${Say} text=${spoken.value} />
      </div>
    </div>
  `;
}
