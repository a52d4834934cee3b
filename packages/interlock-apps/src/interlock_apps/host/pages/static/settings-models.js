// @ts-check
// The section of the settings about models: providers with keys, and models on this computer.
import { Icon, Say, html, useEffect, useId, useState, visible } from "../kit/kit.js";
import { act } from "../kit/net.js";
import { useJob } from "./setup-job.js";
import { FileDifference } from "./settings-plan.js";
import { Field } from "./settings-server-form.js";
import { models } from "./store.js";

const NAMES = {
  anthropic: "Anthropic",
  openai: "OpenAI, or an API like it",
  gemini: "Google Gemini",
  openrouter: "OpenRouter",
  ollama: "Ollama",
  lmstudio: "LM Studio",
  llamacpp: "llama.cpp",
  vllm: "vLLM",
};
const ORDER = Object.keys(NAMES);

/** The name of a provider for people. @param {string} name */
const providerName = (name) => NAMES[/** @type {keyof typeof NAMES} */ (name)] ?? name;

export function ModelsSection() {
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState("");
  const [form, setForm] = useState(/** @type {any} */ (null));
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const read = () =>
    act("setupModels").then(
      (answer) => (setFound(answer), setWrong("")),
      (bad) => setWrong(bad.message),
    );
  useEffect(() => {
    read();
  }, [models.value]);
  const back = () => {
    setForm(null);
    setPlan(null);
  };
  const remove = async (name) => {
    try {
      setPlan({ ...(await act("planModelRemoval", { name })), removes: true });
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
    }
  };
  let shown = html`
    <${ModelList} found=${found} onEdit=${setForm} onRemove=${remove} />
    <${LocalModels} onAdd=${setForm} />
  `;
  if (plan)
    shown = html`
      <${ModelPlan}
        plan=${plan}
        onDone=${() => {
          back();
          read();
        }}
        onBack=${() => setPlan(null)}
      />
    `;
  else if (form && found)
    shown = html`
      <${ModelForm}
        key=${form.name + form.provider + form.model}
        form=${form}
        found=${found}
        onChange=${setForm}
        onPlan=${setPlan}
        onBack=${back}
      />
    `;
  return html`
    <h2>Models</h2>
    ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
    ${found?.problem && html`<p class="wrong" role="alert"><${Say} text=${found.problem} /></p>`}
    ${shown}
  `;
}

/** The configured models. */
const ModelList = ({ found, onEdit, onRemove }) => html`
  <div class="buttons">
    <button type="button" class="main" disabled=${!found} onClick=${() => onEdit({ was: "" })}>
      <${Icon} name="plus" />
      Add a model
    </button>
  </div>
  <ul class="offers" aria-label="Configured models">
    ${found?.models.map(
      (one) => html`
        <li key=${one.name}>
          <div class="offer-head">
            <span class="grow">
              <strong>
                <${Say} text=${one.name} />
              </strong>${" "}
              <span class="quiet">
                <${Say} text=${`${providerName(one.provider)}: ${one.model}`} />
              </span>
            </span>
            <button
              type="button"
              class="small"
              aria-label=${`Edit ${visible(one.name)}`}
              onClick=${() => onEdit({ ...one, was: one.name })}
            >
              Edit
            </button>
            <button
              type="button"
              class="small"
              aria-label=${`Remove ${visible(one.name)}`}
              onClick=${() => onRemove(one.name)}
            >
              Remove
            </button>
          </div>
          ${one.problem && html`<p class="wrong wrap"><${Say} text=${one.problem} /></p>`}
        </li>
      `,
    )}
    ${found?.others.map(
      (name) => html`
        <li key=${name}>
          <strong>
            <${Say} text=${name} />
          </strong>${" "}
          <span class="quiet">named on the command line</span>
        </li>
      `,
    )}
    ${
      found &&
      !found.models.length &&
      !found.others.length &&
      html`<li class="quiet">No model is configured.</li>`
    }
  </ul>
  ${
    found &&
    html`
      <p class="quiet small-line">
        Models are kept in${" "}
        <code class="wrap">
          <${Say} text=${found.file} />
        </code>
        , their keys in the keyring of the system.
      </p>
    `
  }
`;

/** Models that a program on this computer serves. @param {{onAdd: (form: any) => void}} props */
function LocalModels({ onAdd }) {
  const [found, setFound] = useState(/** @type {any[] | null} */ (null));
  const [wrong, setWrong] = useState("");
  const look = () => {
    setFound(null);
    act("localModels").then(
      (answer) => setFound(answer.servers),
      (bad) => setWrong(bad.message),
    );
  };
  useEffect(look, []);
  return html`
    <section class="found" aria-label="On this computer">
      <h3>On this computer</h3>
      ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
      ${!found && !wrong && html`<p class="quiet" role="status">Looking …</p>`}
      ${
        found?.length === 0 &&
        html`
          <p class="quiet">
            Neither Ollama, LM Studio, llama.cpp nor vLLM answers. Start one of them, and look
            again.
          </p>
        `
      }
      ${found?.map(
        (server) => html`
          <ul key=${server.url} class="offers" aria-label=${server.title}>
            ${server.models.map(
              (model) => html`
                <li key=${model} class="offer-head">
                  <span class="grow">
                    <strong>
                      <${Say} text=${model} />
                    </strong>${" "}
                    <span class="quiet">${server.title}</span>
                  </span>
                  <button
                    type="button"
                    class="small"
                    aria-label=${`Add ${visible(model)}`}
                    onClick=${() =>
                      onAdd({ provider: server.provider, model, url: server.url, was: "" })}
                  >
                    Add
                  </button>
                </li>
              `,
            )}
          </ul>
        `,
      )}
      <div class="buttons">
        <button type="button" class="small" onClick=${look}>Look again</button>
      </div>
    </section>
  `;
}

/** The form of a model. */
function ModelForm({ form, found, onChange, onPlan, onBack }) {
  const id = useId();
  const providers = [...found.providers].sort(
    (one, other) => ORDER.indexOf(one.name) - ORDER.indexOf(other.name),
  );
  const [provider, setProvider] = useState(form.provider || providers[0].name);
  const [model, setModel] = useState(form.model ?? "");
  const [name, setName] = useState(form.name ?? "");
  const [url, setUrl] = useState(form.url ?? "");
  const [key, setKey] = useState("");
  const kind = found.providers.find((one) => one.name === provider) ?? providers[0];
  const usual = () => {
    if (!kind.variable) return "none";
    return found.keyring ? "variable" : "keyring";
  };
  const [keyIn, setKeyIn] = useState(form.keyIn ?? "");
  const [variable, setVariable] = useState(form.variable ?? "");
  const [wrong, setWrong] = useState("");
  const where = keyIn || usual();
  const review = async (event) => {
    event.preventDefault();
    setWrong("");
    const given = {
      provider,
      model,
      name,
      url: url === kind.url ? "" : url,
      keyIn: where,
      key: where === "keyring" ? key : "",
      variable: where === "variable" ? variable || kind.variable : "",
    };
    try {
      const plan = await act("planModel", { form: given, was: form.was });
      onChange({ ...form, ...given, key: undefined });
      onPlan(plan);
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
    }
  };
  return html`
    <form
      class="fields boxed"
      onSubmit=${review}
      aria-label=${form.was ? "Edit the model" : "Add a model"}
    >
      <div class="field">
        <label for=${id}>Provider</label>
        <select
          id=${id}
          value=${provider}
          onChange=${(event) => {
            setProvider(event.currentTarget.value);
            setKeyIn("");
            setUrl("");
          }}
        >
          ${providers.map(
            (one) => html`
              <option key=${one.name} value=${one.name}>
                ${NAMES[/** @type {keyof typeof NAMES} */ (one.name)] ?? one.name}
              </option>
            `,
          )}
        </select>
      </div>
      <${Field}
        label="Model"
        hint="As the provider calls it."
        required
        value=${model}
        onChange=${setModel}
      />
      <${Field}
        label="Name here"
        hint="Empty: the name of the model."
        value=${name}
        onChange=${setName}
      />
      <${Field}
        label="Address"
        hint=${`Empty: ${kind.url}`}
        type="url"
        value=${url}
        onChange=${setUrl}
      />
      <${KeyFields}
        where=${where}
        onWhere=${setKeyIn}
        keyring=${found.keyring}
        kind=${kind}
        kept=${form.keyIn === "kept"}
        has=${form.keyIn === "keyring"}
        value=${key}
        onKey=${setKey}
        variable=${variable}
        onVariable=${setVariable}
      />
      ${wrong && html`<p class="wrong" role="alert"><${Say} text=${wrong} /></p>`}
      <div class="buttons">
        <button type="submit" class="main">Continue</button>
        <button type="button" class="quiet" onClick=${onBack}>Cancel</button>
      </div>
    </form>
  `;
}

/** Where the key of a model is. */
function KeyFields({
  where,
  onWhere,
  keyring,
  kind,
  kept,
  has,
  value,
  onKey,
  variable,
  onVariable,
}) {
  const id = useId();
  const options = [
    ["keyring", "In the keyring of the system"],
    ["variable", "In an environment variable"],
    ["none", "It needs no key"],
    ...(kept ? [["kept", "In a file, as now"]] : []),
  ];
  return html`
    <div class="field">
      <label for=${id}>API key</label>
      <select id=${id} value=${where} onChange=${(event) => onWhere(event.currentTarget.value)}>
        ${options.map(([key, words]) => html`<option key=${key} value=${key}>${words}</option>`)}
      </select>
    </div>
    ${
      where === "keyring" &&
      keyring &&
      html`
        <p class="wrong wrap">
          The keyring cannot be used: <${Say} text=${keyring} />. Choose an environment variable
          instead.
        </p>
      `
    }
    ${
      where === "keyring" &&
      !keyring &&
      html`
        <${Field}
          label="Key"
          hint=${
            has
              ? "Empty: the key that is in the keyring."
              : "It goes to the keyring, and into no file."
          }
          type="password"
          required=${!has}
          value=${value}
          onChange=${onKey}
        />
      `
    }
    ${
      where === "variable" &&
      html`
        <${Field}
          label="Variable"
          hint=${
            (variable || kind.variable) === kind.variable && kind.isSet
              ? "It is set."
              : "Set it before you start the host."
          }
          value=${variable || kind.variable}
          onChange=${onVariable}
        />
      `
    }
  `;
}

/** The review of a change of a model, with a test. */
function ModelPlan({ plan, onDone, onBack }) {
  const job = useJob();
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const write = async () => {
    setBusy(true);
    setWrong("");
    try {
      await act("applyModel", { plan: plan.plan });
      onDone();
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
      setBusy(false);
    }
  };
  const last = job.events.findLast((event) => event.kind !== "note");
  const failed = wrong || job.wrong || (last?.kind === "failed" && last.words);
  return html`
    <div class="plan" role="group" aria-label="Review the change">
      <h3>${plan.removes ? "Remove" : "Save"} <${Say} text=${plan.name} />?</h3>
      <p class="quiet">
        ${plan.isNew ? "This file is created:" : "This file changes:"}${" "}
        <code class="wrap">
          <${Say} text=${plan.file} />
        </code>
      </p>
      <${FileDifference} text=${plan.difference} />
      ${
        plan.keyring &&
        html`
          <p class="quiet">
            The key goes to the keyring, as <code>${visible(plan.keyring)}</code>.
          </p>
        `
      }
      <p role="status">
        ${job.running && html`<span class="dots" aria-hidden="true"></span> Asking the model …`}
        ${
          last?.kind === "answered" &&
          html`
            <${Icon} name="check" /> It answered after ${last.seconds} s:${" "}
            <${Say} text=${`“${last.text}”`} />
          `
        }
      </p>
      ${failed && html`<p class="wrong wrap" role="alert"><${Say} text=${failed} /></p>`}
      <div class="buttons">
        <button type="button" class="main" disabled=${busy} onClick=${write}>
          ${plan.removes ? "Remove" : "Save"}
        </button>
        ${
          !plan.removes &&
          html`
            <button
              type="button"
              disabled=${busy || job.running}
              onClick=${() => job.start("tryModel", { plan: plan.plan })}
            >
              Test it
            </button>
          `
        }
        <button type="button" class="quiet" disabled=${busy} onClick=${onBack}>Back</button>
      </div>
    </div>
  `;
}
