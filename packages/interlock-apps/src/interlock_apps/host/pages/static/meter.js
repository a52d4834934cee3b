// @ts-check
// The context meter: how full the model's context window is, what was left out, which tools are
// offered, and what the conversation cost.
import { Choice, Dialog, Fold, Say, html, several, useEffect, useState } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { attempt, isLive, talk } from "./store.js";

const count = (tokens) => tokens.toLocaleString("en");

/** A price for people: small ones with the digits that matter. @param {number} price */
export const dollars = (price) =>
  `$${price >= 0.1 || price === 0 ? price.toFixed(2) : Number(price.toPrecision(2))}`;

/** The share of the window that the last request took, in percent. @param {any} request */
function percent(request) {
  if (!request?.window) return 0;
  return Math.min(100, Math.max(1, Math.round((request.tokens / request.window) * 100)));
}

const OFFERS = /** @type {[string, string][]} */ ([
  ["auto", "Automatic"],
  ["all", "All tools"],
  ["search", "Search"],
]);

/** Why the model gets all tools or a search. @param {any} use */
function why(use) {
  const size = `All tools are about ${count(use.allTools)} tokens`;
  if (use.offer === "all") return `${size}. You chose to offer all of them.`;
  if (use.offer === "search") return `${size}. You chose the search.`;
  return use.search
    ? `${size}, more than the limit of ${count(use.limit)}. The model finds tools by a search.`
    : `${size}; the limit is ${count(use.limit)}.`;
}

/** @param {{session: string, use: any, onChanged: () => void}} props */
function Tools({ session, use, onChanged }) {
  const choose = async (offer) => {
    if (await attempt("offerTools", { session, offer })) onChanged();
  };
  const names = use.names ?? [];
  return html`
    <section class="meter-part">
      <h3>Tools</h3>
      <${Choice}
        label="How the model gets tools"
        value=${use.offer}
        options=${OFFERS}
        onChange=${choose}
      />
      <p class="quiet small-line">${why(use)}</p>
      ${
        names.length > 0 &&
        html`
          <${Fold} title=${`${several(names.length, "tool")} offered now`}>
            <ul class="meter-tools">
              ${names.map(
                (name) => html`
                  <li key=${name}>
                    <code><${Say} text=${name} /></code>
                  </li>
                `,
              )}
            </ul>
          </${Fold}>
        `
      }
    </section>
  `;
}

/** @param {{use: any}} props */
function Window({ use }) {
  const parts = [
    ["System prompt", use.system],
    ["Tools", use.tools],
    ["Messages", use.messages],
    ["Kept free for the answer", use.answer],
  ];
  const used = use.system + use.tools + use.messages;
  const left = use.leftOut ?? [];
  return html`
    <section class="meter-part">
      <p>
        About <strong>${count(used)}</strong> of ${count(use.window)} tokens are used.
      </p>
      <dl class="meter-rows">
        ${parts.map(
          ([name, tokens]) => html`
            <div key=${name}>
              <dt>${name}</dt>
              <dd>
                <meter
                  min="0"
                  max=${use.window}
                  value=${tokens}
                  aria-label=${`${name}: ${count(tokens)} tokens`}
                ></meter>
                <span class="number">${count(tokens)}</span>
              </dd>
            </div>
          `,
        )}
      </dl>
      ${
        left.length > 0 &&
        html`
          <h3>Left out</h3>
          <ul class="meter-left">
            ${left.map(
              (one) => html`
                <li key=${one.rule}>
                  <${Say} text=${one.words} />${" "}
                  <span class="quiet">About ${count(one.tokens)} tokens.</span>
                </li>
              `,
            )}
          </ul>
        `
      }
    </section>
  `;
}

/** What the conversation took so far. @param {{spent: any}} props */
function Spent({ spent }) {
  if (!spent.input && !spent.output) return null;
  const price = spent.unpriced ? `at least ${dollars(spent.price)}` : dollars(spent.price);
  const cached = spent.kept ? ` (${count(spent.kept)} of the input were cached)` : "";
  return html`
    <section class="meter-part">
      <h3>This conversation</h3>
      <p>
        ${count(spent.input)} tokens in, ${count(spent.output)} out${cached}, requests of servers to
        models included.${" "}
        ${
          spent.priced > 0 &&
          html`
            Price: <strong>${price}</strong>.
          `
        }
      </p>
      ${
        !spent.priced &&
        html`
          <p class="quiet small-line">
            To see a price, set price_in and price_out of the model in models.json.
          </p>
        `
      }
    </section>
  `;
}

/** @param {{session: string, onClose: () => void}} props */
function Details({ session, onClose }) {
  const [use, setUse] = useState(/** @type {any} */ (null));
  const [words, setWords] = useState("");
  const shown = talk(session);
  const read = async () => {
    try {
      setUse(await act("context", { session }));
    } catch (bad) {
      setWords(bad instanceof Error ? bad.message : String(bad));
    }
  };
  useEffect(() => {
    read();
  }, [shown.request.value]);
  return html`
    <${Dialog} title="Context" class="meter-dialog" onClose=${onClose}>
      ${
        words &&
        html`
          <p class="wrong" role="alert">
            <${Say} text=${words} />
          </p>
        `
      }
      ${use && html`<${Window} use=${use} />`}
      ${use && html`<${Tools} session=${session} use=${use} onChanged=${read} />`}
      <${Spent} spent=${shown.spent.value} />
    </${Dialog}>
  `;
}

/** The meter beside the message box. @param {{session: string}} props */
export function Meter({ session }) {
  const [open, setOpen] = useState(false);
  const shown = talk(session);
  const request = shown.request.value;
  if (!request || !isLive(session)) return null;
  const share = percent(request);
  const spent = shown.spent.value;
  const price = spent.priced ? `${spent.unpriced ? "≥ " : ""}${dollars(spent.price)}` : "";
  const close = () => setOpen(false);
  return html`
    <button
      type="button"
      class="small quiet meter-button"
      aria-haspopup="dialog"
      aria-label=${`Context: ${share} % used${price ? `, price ${price}` : ""}`}
      onClick=${() => setOpen(true)}
    >
      <svg class=${share > 80 ? "ring full" : "ring"} viewBox="0 0 20 20" aria-hidden="true">
        <circle cx="10" cy="10" r="8" />
        <circle
          class="part"
          cx="10"
          cy="10"
          r="8"
          pathLength="100"
          stroke-dasharray=${`${share} 100`}
        />
      </svg>
      <span class="number">${share} %${price ? ` · ${price}` : ""}</span>
    </button>
    ${open && html`<${Details} session=${session} onClose=${close} />`}
  `;
}
