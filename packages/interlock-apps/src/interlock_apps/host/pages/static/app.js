// @ts-check
// The page: the bar, the side panels, the conversation between them, and the overlays.
import {
  Icon,
  IconButton,
  Say,
  cls,
  html,
  several,
  useEffect,
  useRef,
  useState,
} from "../kit/kit.js";
import { toNextQuestion } from "./ask.js";
import { AuditPanel } from "./audit.js";
import { Commands } from "./commands.js";
import { Composer, stop } from "./composer.js";
import { Conversation, Welcome } from "./conversation.js";
import { DeleteTalk } from "./conversation-list.js";
import { looks, next } from "../kit/looks.js";
import { barred, failures, line } from "../kit/net.js";
import { CallByHand, RootsPanel, RulesPanel, ServerPanel, Side } from "./panels.js";
import { ProjectDialog } from "./projects.js";
import { Prompts } from "./prompts.js";
import { Question } from "./question.js";
import { Resources } from "./resources.js";
import { Settings, closeSettings } from "./settings.js";
import { RunsPanel } from "./runs.js";
import { TimelinePanel } from "./timeline.js";
import {
  asks,
  current,
  demo,
  drawer,
  elsewhere,
  hostQuestions,
  models,
  open,
  overlay,
  panel,
  questions,
  servers,
  sessions,
  settings,
  spoken,
  talk,
  title,
  toasts,
} from "./store.js";

const OVERLAYS = {
  commands: Commands,
  prompts: Prompts,
  resources: Resources,
  call: CallByHand,
  deleteTalk: DeleteTalk,
  project: ProjectDialog,
};
const PANELS = {
  server: ["Server", ServerPanel],
  roots: ["Folders", RootsPanel],
  rules: ["Rules", RulesPanel],
  timeline: ["Timeline", TimelinePanel],
  runs: ["Runs", RunsPanel],
  audit: ["Log", AuditPanel],
};
const LOOKS = {
  "": ["half", "follows the system"],
  light: ["sun", "light"],
  dark: ["moon", "dark"],
};

/** Open the palette, drawer or panel, and close what is open. */
const close = () => {
  overlay.value = null;
};

const MAC = /Mac/.test(navigator.platform);

/** The title of the conversation in the bar. */
function heading() {
  if (settings.value) return "Settings";
  const session = sessions.value.find((one) => one.id === current.value);
  if (session) return html`<${Say} text=${session.title || "Conversation"} />`;
  return current.value ? "Earlier conversation" : "New conversation";
}

function Bar() {
  const [icon, words] = LOOKS[looks.value];
  const search = () => {
    overlay.value = { name: "commands" };
  };
  return html`
    <header class="bar">
      <${IconButton}
        name="menu"
        label="Conversations and servers"
        class="only-narrow"
        aria-expanded=${drawer.value ? "true" : "false"}
        onClick=${() => {
          drawer.value = !drawer.value;
        }}
      />
      <span class="brand">
        <img src="kit/icon.svg" alt="" width="24" height="24" />
        <span class="brand-name">${title.value}</span>
      </span>
      <h1 class="bar-title">${heading()}</h1>
      <span class="grow"></span>
      <button type="button" class="small quiet search-all" onClick=${search}>
        <${Icon} name="search" />
        <span class="hidden-text">Search everything</span>
        <span class="wide-only" aria-hidden="true">
          Search
        </span>
        <kbd class="wide-only" aria-hidden="true">
          ${MAC ? "⌘K" : "Ctrl K"}
        </kbd>
      </button>
      <${IconButton} name=${icon} label=${`Appearance: ${words}. Change`} onClick=${next} />
    </header>
  `;
}

/**
 * Banners about the whole page: no real model, a demonstration, a lost connection.
 */
function Banners() {
  const session = sessions.value.find((one) => one.id === current.value);
  const name = session?.model || models.value[0]?.name;
  const remark =
    current.value && (!session || session.past)
      ? talk(current.value).remark.value
      : (models.value.find((one) => one.name === name)?.remark ?? session?.remark);
  return html`
    ${
      demo.value &&
      html`
        <p class="banner is-demo" role="note">
          <${Icon} name="bell" />
          <span>
            <${Say} text=${demo.value} />
          </span>
        </p>
      `
    }
    ${
      remark &&
      remark !== demo.value &&
      html`
        <p class="banner" role="note">
          <${Icon} name="bell" />
          <span>
            ${
              session &&
              html`
                <strong>
                  <${Say} text=${name} />
                </strong>
                :${" "}
              `
            }
            <${Say} text=${remark} />
          </span>
        </p>
      `
    }
    ${
      (line.value === "lost" || barred.value) &&
      html`
        <p class="banner lost" role="alert">
          <${Icon} name="warn" />
          <span class="wrap">
            ${
              barred.value
                ? html`
                  <${Say} text=${barred.value} />
                `
                : html`
                  The host is not reachable. Retrying …
                  ${
                    failures.value > 3
                      ? " If you started it again, open the address that it printed."
                      : ""
                  }
                `
            }
          </span>
        </p>
      `
    }
  `;
}

/** A question of the host itself, or a link to it while another question needs the space. */
function Own({ own, waits }) {
  const [wanted, setWanted] = useState("");
  // A blocked feature can wait; a form of a running call cannot.
  const [first] = [...own].sort(
    (one, other) => Number(one.type === "pin") - Number(other.type === "pin"),
  );
  if (!first) return null;
  if (waits && first.type === "pin" && wanted !== first.id) {
    return html`
      <button type="button" class="other-question" onClick=${() => setWanted(first.id)}>
        <${Icon} name="lock" />
        <span class="grow">
          <${Say} text=${asks(first)} />
        </span>
        Review
      </button>
    `;
  }
  return html`
    <div class="card is-asking">
      <div class="card-body">
        ${own.length > 1 && html`<p class="quiet small-line">One of ${own.length} questions</p>`}
        <${Question} key=${first.id} question=${first} />
      </div>
    </div>
  `;
}

/** Questions of the host itself, and links to questions elsewhere. */
function Waiting() {
  const own = hostQuestions.value;
  const others = elsewhere.value;
  const here = [...questions.value.values()].filter(
    (one) => one.session && one.session === current.value,
  );
  const answer = () => {
    settings.value = "";
    requestAnimationFrame(toNextQuestion); // the conversation may have to be shown first
  };
  const waits =
    (own.length > 0 || others.length > 0) &&
    html`
      <div class="waiting" role="region" aria-label="Waiting for you">
        <${Own} own=${own} waits=${here.length > 0} />
        ${
          others.length > 0 &&
          html`
            <button type="button" class="other-question" onClick=${() => open(others[0].session)}>
              <${Icon} name="ask" />
              <span class="grow">
                In another conversation: <${Say} text=${asks(others[0])} />
              </span>
              Go there
            </button>
          `
        }
      </div>
    `;
  return html`
    ${waits}
    ${
      here.length > 0 &&
      html`
        <button type="button" class="to-question" onClick=${answer}>
          <${Icon} name="ask" />
          <span class="grow">
            <${Say} text=${asks(here[0])} />
          </span>
          <span class="go">Answer</span>
        </button>
      `
    }
  `;
}

const SHOWN = 7000; // milliseconds for which a notice is shown unless it is an error

/** Notices, one at a time, newest first; those that are not errors disappear by themselves. */
function Toasts() {
  const [one] = toasts.value.slice(-1);
  const behind = toasts.value.length - 1;
  return html`
    <div class="toasts" role="status" aria-label="Notices">
      ${one && html`<${Toast} key=${one.key} one=${one} behind=${behind} />`}
    </div>
  `;
}

/** @param {{one: any, behind: number}} props `behind`: how many more follow */
function Toast({ one, behind }) {
  const gone = () => {
    toasts.value = toasts.value.filter((each) => each !== one);
  };
  const over = useRef(false);
  useEffect(() => {
    if (one.level === "error") return undefined;
    const timer = window.setInterval(() => over.current || gone(), SHOWN);
    return () => window.clearInterval(timer);
  }, []);
  const configured = servers.value.some((server) => server.id === one.server);
  const show = () => {
    panel.value = { name: "server", id: one.server };
    toasts.value = toasts.value.filter((each) => each.server !== one.server);
  };
  return html`
    <div
      class=${`toast is-${one.level}`}
      onMouseEnter=${() => {
        over.current = true;
      }}
      onMouseLeave=${() => {
        over.current = false;
      }}
    >
      <${Icon} name=${one.level === "info" ? "bell" : "warn"} />
      <span class="grow wrap">
        ${
          one.server &&
          html`
            <strong>
              <${Say} text=${one.server} />
            </strong>
            :${" "}
          `
        }
        <${Say} text=${one.words} />
        ${
          behind > 0 &&
          html`
            ${" "}
            <span class="quiet">(${several(behind, "more notice")})</span>
          `
        }
      </span>
      ${
        configured &&
        html`
          <button type="button" class="small" onClick=${show}>
            Show
          </button>
        `
      }
      <${IconButton} name="close" label="Close the notice" onClick=${gone} />
    </div>
  `;
}

function Panel() {
  const now = panel.value;
  const box = useRef(/** @type {any} */ (null));
  const key = now ? now.name + (now.id ?? "") : "";
  useEffect(() => {
    if (now) box.current?.focus({ preventScroll: true });
  }, [key]);
  if (!now) return null;
  const [name, Kind] = PANELS[/** @type {keyof typeof PANELS} */ (now.name)];
  const away = () => {
    panel.value = null;
    document.getElementById("say")?.focus();
  };
  return html`
    <aside
      ref=${box}
      class="panel"
      tabindex="-1"
      aria-label=${name}
      onKeyDown=${(event) => {
        if (event.key === "Escape" && !event.defaultPrevented) away();
      }}
    >
      <header class="panel-head">
        <h2>${now.id ? html`<${Say} text=${now.id} />` : name}</h2>
        <${IconButton} name="close" label=${`Close ${name}`} onClick=${away} />
      </header>
      <div class="panel-body">
        <${Kind} key=${key} ...${now} />
      </div>
    </aside>
  `;
}

/** Keys that work everywhere. @param {KeyboardEvent} event */
function keys(event) {
  if (
    (event.ctrlKey || event.metaKey) &&
    !event.altKey &&
    !event.shiftKey &&
    event.key.toLowerCase() === "k"
  ) {
    event.preventDefault();
    overlay.value = overlay.value?.name === "commands" ? null : { name: "commands" };
  } else if (event.key === "Escape" && !event.defaultPrevented && !overlay.value) {
    if (drawer.value) drawer.value = false;
    else if (settings.value && !document.activeElement?.closest(".panel, .ask")) closeSettings();
    else if (
      !document.activeElement?.closest(".panel, .ask") &&
      current.value &&
      talk(current.value).running.value
    )
      stop();
  }
}

/** What the middle of the page shows. */
function shown() {
  if (settings.value) return html`<${Settings} />`;
  return current.value
    ? html`<${Conversation} key=${current.value} id=${current.value} />`
    : html`<${Welcome} />`;
}

/** The whole page. */
export function App() {
  useEffect(() => {
    document.addEventListener("keydown", keys);
    return () => document.removeEventListener("keydown", keys);
  }, []);
  const count = questions.value.size;
  useEffect(() => {
    document.title = count ? `(${count}) ${title.value}` : title.value;
  }, [count, title.value]);
  const now = overlay.value;
  const Over = now && OVERLAYS[/** @type {keyof typeof OVERLAYS} */ (now.name)];
  const narrow = drawer.value;
  return html`
    <div class=${cls("app", panel.value && "has-panel", narrow && "has-drawer")}>
      <a
        class="skip"
        href=${settings.value ? "#settings" : "#say"}
        onClick=${(event) => {
          event.preventDefault();
          (document.getElementById("say") ?? document.getElementById("settings"))?.focus();
        }}
      >
        ${settings.value ? "Skip to the settings" : "Skip to the message box"}
      </a>
      <${Bar} />
      <nav
        class="side"
        aria-label="Conversations and servers"
        onClick=${(event) => {
          if (narrow && event.target.closest(".side-row")) drawer.value = false;
        }}
      >
        <${Side} />
      </nav>
      ${
        narrow &&
        html`
          <div
            class="scrim"
            onClick=${() => {
              drawer.value = false;
            }}
          ></div>
        `
      }
      <main class="middle">
        <${Banners} />
        ${shown()}
        <div class="low">
          <${Waiting} />
          ${!settings.value && html`<${Composer} id=${current.value} />`}
        </div>
      </main>
      <${Panel} />
      <${Toasts} />
      <div class="hidden-text" aria-live="polite" data-spoken>
        <${Say} text=${spoken.value} />
      </div>
      ${Over && html`<${Over} key=${now.name} ...${now} onClose=${close} />`}
    </div>
  `;
}
