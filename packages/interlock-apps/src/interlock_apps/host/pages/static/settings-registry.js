// @ts-check
// The MCP registry: search, the values that a server needs, and the review before it is added.
import { Icon, Say, html, useId, useState, visible } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { ServerPlan } from "./settings-plan.js";
import { Check, Field } from "./settings-server-form.js";
import { setup } from "./store.js";

/**
 * Search for servers in the registry, and add one.
 * @param {{onDone: (server: string) => void, onBack: () => void}} props
 */
export function RegistrySearch({ onDone, onBack }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const [chosen, setChosen] = useState(/** @type {any} */ (null));
  const id = useId();
  const search = async (event) => {
    event.preventDefault();
    if (!words.trim()) return;
    setBusy(true);
    setWrong("");
    try {
      setFound(await act("searchRegistry", { words: words.trim() }));
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
    }
    setBusy(false);
  };
  const choose = async (server) => {
    setWrong("");
    try {
      setChosen(await act("registryServer", { name: server.name, version: server.version }));
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
    }
  };
  if (chosen)
    return html`<${Install} offer=${chosen} onDone=${onDone} onBack=${() => setChosen(null)} />`;
  return html`
    <form class="field-row registry-search" role="search" onSubmit=${search}>
      <label class="hidden-text" for=${id}>Name of a server</label>
      <input
        id=${id}
        type="search"
        value=${words}
        placeholder="weather"
        autocomplete="off"
        onInput=${(event) => setWords(event.currentTarget.value)}
      />
      <button type="submit" class="main narrow" disabled=${busy}>Search</button>
    </form>
    ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
    <p class="quiet small-line" role="status">
      ${
        busy
          ? "Searching …"
          : found && `${found.servers.length} found at ${visible(found.registry)}.`
      }
    </p>
    <ul class="offers" aria-label="Servers in the registry">
      ${found?.servers.map(
        (one) => html`
          <li key=${one.name + one.version}>
            <div class="offer-head">
              <span class="grow">
                <strong>
                  <${Say} text=${one.title || one.name} />
                </strong>${" "}
                <code class="quiet">
                  <${Say} text=${`${one.name} ${one.version}`} />
                </code>
                ${
                  one.status !== "active" &&
                  html` <span class="tag care">${visible(one.status)}</span>`
                }
              </span>
              <button
                type="button"
                class="small"
                aria-label=${`Add ${visible(one.name)}`}
                onClick=${() => choose(one)}
              >
                Add
              </button>
            </div>
            <p class="quiet wrap">
              <${Say} text=${one.description} />
            </p>
          </li>
        `,
      )}
    </ul>
    <div class="buttons">
      <button type="button" class="quiet" onClick=${onBack}>Back</button>
    </div>
  `;
}

/** The values that a server needs, and then the review. */
function Install({ offer, onDone, onBack }) {
  const [values, setValues] = useState(
    /** @type {Record<string, string>} */ (
      Object.fromEntries(offer.inputs.map((one) => [one.label, one.default ?? ""]))
    ),
  );
  const [sandbox, setSandbox] = useState(!setup.value?.sandbox);
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState("");
  const review = async (event) => {
    event.preventDefault();
    setWrong("");
    try {
      const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
      setPlan(
        await act("planRegistry", {
          name: offer.name,
          version: offer.version,
          values: given,
          sandbox: offer.runsCode ? sandbox : null,
        }),
      );
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
    }
  };
  if (plan)
    return html`
      <${ServerPlan}
        plan=${plan}
        title=${html`Add <${Say} text=${offer.title || offer.name} />?`}
        label="Add and start"
        onDone=${onDone}
        onBack=${() => setPlan(null)}
      >
        <p class="quiet small-line wrap">
          Digest of its description: <code>sha256:${offer.digest}</code>
        </p>
        ${
          plan.warning &&
          html`
            <p class="wrong">
              <${Icon} name="warn" /> <${Say} text=${plan.warning} />
            </p>
          `
        }
      </${ServerPlan}>
    `;
  return html`
    <h3><${Say} text=${offer.title || offer.name} /></h3>
    <p class="wrap">
      <${Say} text=${offer.description} />
    </p>
    <p class="quiet small-line">
      <code class="wrap">
        <${Say} text=${`${offer.name} ${offer.version}`} />
      </code>
      ${
        offer.repository &&
        html`
          ${" "}source code: <code class="wrap"><${Say} text=${offer.repository} /></code>
        `
      }
    </p>
    <p class="quiet">The registry does not check what a server does.</p>
    <form class="fields boxed" onSubmit=${review} aria-label="Values for the server">
      ${offer.inputs.map(
        (one) => html`
          <${Field}
            key=${one.label}
            label=${visible(one.label)}
            hint=${visible(one.description)}
            type=${one.secret ? "password" : "text"}
            required=${one.required}
            placeholder=${visible(one.placeholder)}
            value=${values[one.label]}
            onChange=${(value) => setValues({ ...values, [one.label]: value })}
          />
        `,
      )}
      ${
        offer.runsCode &&
        !offer.isContainer &&
        html`
          <${Check}
            label="Run it in a sandbox"
            hint=${
              setup.value?.sandbox && `No sandbox works on this computer: ${setup.value.sandbox}`
            }
            disabled=${!!setup.value?.sandbox}
            checked=${sandbox}
            onChange=${setSandbox}
          />
        `
      }
      ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
      <div class="buttons">
        <button type="submit" class="main">Continue</button>
        <button type="button" class="quiet" onClick=${onBack}>Back</button>
      </div>
    </form>
  `;
}
