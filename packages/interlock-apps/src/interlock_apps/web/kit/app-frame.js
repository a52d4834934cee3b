// @ts-check
// The place of an app: a visible frame that shows which server the app belongs to, what it may
// reach, and what it asks the person.
import {
  Icon,
  IconButton,
  Say,
  cls,
  html,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  visible,
} from "./kit.js";
import { AppWindow, LEAST } from "./app-window.js";

// Milliseconds before an answer counts, so that a click meant for something else does not answer.
const ARMED = 700;
const PERMISSIONS = {
  camera: "the camera",
  microphone: "the microphone",
  geolocation: "your position",
  clipboardWrite: "writing to the clipboard",
};

/**
 * An app wants to send a message in the person's name.
 * @param {{server: string, text: string, answer: (yes: boolean) => void}} props
 */
function Wish({ server, text, answer }) {
  const [armed, setArmed] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setArmed(true), ARMED);
    return () => window.clearTimeout(timer);
  }, []);
  return html`
    <div class="app-wish" role="group" aria-label="The app wants to send a message as you">
      <p>
        The app of${" "}
        <strong>
          <${Say} text=${server} />
        </strong>${" "}
        wants to send this as your message:
      </p>
      <pre class="wrap">${visible(text)}</pre>
      <div class="buttons">
        <button type="button" disabled=${!armed} onClick=${() => answer(true)}>
          Send
        </button>
        <button type="button" class="quiet" onClick=${() => answer(false)}>
          Do not send
        </button>
      </div>
    </div>
  `;
}

/**
 * An app in its card. `data` is the call whose result it shows.
 * @param {{data: any, uri: string, services: import("./app-window.js").AppServices}} props
 */
export function AppFrame({ data, uri, services }) {
  const { server, call, session = "", tool } = data;
  const box = useRef(/** @type {any} */ (null));
  const place = useRef(/** @type {any} */ (null));
  const shown = useRef(/** @type {AppWindow | null} */ (null));
  const latest = useRef(data); // the call may end while the app is being fetched
  latest.current = data;
  const [near, setNear] = useState(false);
  const [run, setRun] = useState(0);
  const [granted, setGranted] = useState(/** @type {string[]} */ ([]));
  const [opened, setOpened] = useState(/** @type {any} */ (null));
  const [state, setState] = useState(
    /** @type {{is: string, words?: string}} */ ({ is: "waiting" }),
  );
  const [height, setHeight] = useState(160);
  const [mode, setMode] = useState("inline");
  const [crowded, setCrowded] = useState(false);
  const [wish, setWish] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const seen = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setNear(true),
      { rootMargin: "400px" },
    );
    seen.observe(box.current);
    return () => seen.disconnect();
  }, []);
  useLayoutEffect(() => {
    // the cleanup has to run while the frame still exists
    if (!near) return;
    let over = false;
    let asking = /** @type {((yes: boolean) => void) | null} */ (null);
    /** @type {import("./app-window.js").Component} */
    const component = {
      ready: () => {
        if (!over) setState({ is: "shown" });
      },
      height: (pixels) => {
        if (!over) setHeight(pixels);
      },
      mode: (now) => {
        if (!over) setMode(now);
      },
      crowded: () => {
        if (!over) setCrowded(true);
      },
      consent: (text) =>
        new Promise((settle) => {
          if (over || asking) return settle(false);
          asking = (yes) => {
            asking = null;
            if (!over) setWish(null);
            settle(yes);
          };
          setWish({ text, answer: asking });
          services.speak(`The app of ${server} wants to send a message as you.`);
        }),
      gone: (words) => {
        asking?.(false);
        shown.current = null;
        if (over) return;
        setMode("inline");
        setState({ is: "closed", words });
      },
    };
    setState({ is: "loading" });
    services
      .open(server, uri, session)
      .then((got) => {
        if (over) {
          services.close(got.app);
          return;
        }
        setOpened(got);
        shown.current = new AppWindow(
          place.current,
          { server, call, tool, session },
          got,
          granted,
          component,
          services,
        );
        give(shown.current, latest.current);
      })
      .catch((bad) => {
        if (!over)
          setState({
            is: "failed",
            words: bad instanceof Error ? bad.message : "It cannot be shown.",
          });
      });
    return () => {
      over = true;
      shown.current?.close();
    };
  }, [near, run]);
  useEffect(() => {
    if (shown.current) give(shown.current, data);
  }, [data]);
  const again = () => {
    setCrowded(false);
    setRun(run + 1);
  };
  const full = mode === "fullscreen";
  const open = ["loading", "shown"].includes(state.is);
  const wanted = (opened?.permissions ?? []).filter((name) => !granted.includes(name));
  return html`
    <section
      ref=${box}
      class=${cls("app-box", full && "is-full", opened?.border === false && "is-plain")}
      aria-label=${`App of ${visible(server)}`}
    >
      <header class="app-bar">
        <${Icon} name="lock" />
        <span class="grow">
          App of${" "}
          <strong>
            <${Say} text=${server} />
          </strong>
          ${
            opened?.domains.length > 0 &&
            html`
              ${" "}
              · reaches <${Say} text=${opened.domains.join(", ")} />
            `
          }
        </span>
        ${
          full &&
          html`
            <button type="button" class="small" onClick=${() => shown.current?.show("inline")}>
              Back to the conversation
            </button>
          `
        }
        ${
          open &&
          html`
            <${IconButton}
              name="close"
              label="Close the app"
              onClick=${() => shown.current?.close()}
            />
          `
        }
      </header>
      ${
        wanted.length > 0 &&
        open &&
        html`
          <p class="app-line">
            The app asks for ${wanted.map((name) => PERMISSIONS[name]).join(", ")}.${" "}
            <button
              type="button"
              class="small"
              onClick=${() => {
                setGranted(opened.permissions);
                again();
              }}
            >
              Allow and restart the app
            </button>
          </p>
        `
      }
      ${
        crowded &&
        html`
          <p class="app-line">
            <${Icon} name="warn" /> This app sends too many messages. Some are dropped.
          </p>
        `
      }
      ${
        state.is === "failed" &&
        html`
          <p class="app-line wrong" role="alert">
            <${Icon} name="warn" /> The app cannot be shown: <${Say} text=${state.words} />${" "}
            <button type="button" class="small" onClick=${again}>
              Try again
            </button>
          </p>
        `
      }
      ${
        state.is === "closed" &&
        html`
          <p class="app-line quiet">
            ${state.words || "The app is closed."}${" "}
            <button type="button" class="small" onClick=${again}>
              Show it again
            </button>
          </p>
        `
      }
      ${state.is === "loading" && html`<p class="app-line quiet">The app is loading …</p>`}
      <div
        ref=${place}
        class="app-place"
        hidden=${!open}
        style=${{ height: full ? "" : `${Math.max(LEAST, height)}px` }}
      ></div>
      ${
        wish &&
        html`
          <${Wish} key=${wish.text} server=${server} text=${wish.text} answer=${wish.answer} />
        `
      }
    </section>
  `;
}

/**
 * Give an app the arguments and the whole result of the call, as far as known.
 * @param {AppWindow} app
 * @param {any} data
 */
async function give(app, data) {
  app.bridge.input(data.arguments);
  if (!["done", "failed", "gone"].includes(data.state)) return;
  const result = await app.services.result(data);
  app.bridge.outcome(result, data.error || "The call was cancelled.");
}
