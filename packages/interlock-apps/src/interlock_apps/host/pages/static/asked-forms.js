// @ts-check
// Questions of servers to the person: forms to fill in, and pages to visit.
import { Copy, Icon, Say, html, useLayoutEffect, useRef, useState, visible } from "../kit/kit.js";
import { Ask } from "./ask.js";
import { Value } from "../kit/content.js";
import { Input, checked, toFirstWrong, typed } from "../kit/fields.js";
import { safe } from "../kit/markdown.js";

/** A form: filled in, reviewed, then sent. */
export function FormQuestion({ question }) {
  const fields = question.fields ?? [];
  const [form, setForm] = useState(() => typed(fields));
  const [wrong, setWrong] = useState(/** @type {Record<string, string>} */ ({}));
  const [reviewing, setReviewing] = useState(false);
  const box = useRef(/** @type {any} */ (null));
  const review = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    if (reviewing) review.current?.focus();
  }, [reviewing]);
  const found = checked(fields, form);
  const look = (event) => {
    event?.preventDefault?.();
    setWrong(found.wrong);
    if (Object.keys(found.wrong).length) toFirstWrong(box.current, found.wrong);
    else setReviewing(true);
  };
  const change = (name, value) => {
    const now = { ...form, [name]: value };
    setForm(now);
    if (name in wrong) setWrong(checked(fields, now).wrong);
  };
  const end = (action) => (send) =>
    send({
      type: "filled",
      action,
      ...(action === "accept" ? { content: found.content } : {}),
    });
  const who = visible(question.server);
  const answers = reviewing
    ? [
        { label: `Send to ${who}`, main: true, act: end("accept") },
        { key: "e", label: "Change", act: () => setReviewing(false) },
        { key: "d", label: "Decline", act: end("decline") },
        { label: "Cancel", act: end("cancel") },
      ]
    : [
        {
          label: fields.length ? "Review" : `Agree`,
          main: true,
          act: fields.length ? look : end("accept"),
        },
        { key: "d", label: "Decline", act: end("decline") },
        { label: "Cancel", act: end("cancel") },
      ];
  return html`
    <${Ask}
      question=${question}
      title=${html`
        <${Say} text=${question.server} /> asks you
      `}
      icon="edit"
      answers=${answers}
    >
      <p class="message wrap">
        <${Say} text=${question.message} />
      </p>
      ${
        reviewing
          ? html`
            <div ref=${review} tabindex="-1" class="reviewed" aria-label="What will be sent">
              <p class="quiet">
                This goes to${" "}
                <strong>
                  <${Say} text=${question.server} />
                </strong>
                :
              </p>
              <${Filled} fields=${fields} content=${found.content} />
            </div>
          `
          : html`
            <form ref=${box} class="fields" noValidate onSubmit=${look}>
              ${fields.map(
                (field) => html`
                  <${Input}
                    key=${field.name}
                    field=${field}
                    value=${form[field.name]}
                    words=${wrong[field.name]}
                    onChange=${(value) => change(field.name, value)}
                  />
                `,
              )}
              <button type="submit" class="hidden" tabindex="-1" aria-hidden="true">
                Review
              </button>
            </form>
          `
      }
    </${Ask}>
  `;
}

/** The content of a form, with the titles of the choices. */
export function Filled({ fields, content }) {
  const titled = (field, value) =>
    (field.options ?? []).find(([key]) => key === value)?.[1] ?? value;
  return html`
    <dl class="table-list">
      ${fields.map((field) => {
        const value = content?.[field.name];
        const shown = Array.isArray(value)
          ? value.map((one) => titled(field, one))
          : field.kind === "choice"
            ? titled(field, value)
            : value;
        return html`
          <div key=${field.name}>
            <dt>
              <${Say} text=${field.title || field.name} />
            </dt>
            <dd>
              ${
                value === undefined
                  ? html`
                    <span class="quiet">left out</span>
                  `
                  : html`
                    <${Value} value=${shown} />
                  `
              }
            </dd>
          </div>
        `;
      })}
    </dl>
  `;
}

/**
 * The parts of an address, so that the registrable domain can be highlighted: the last occurrence
 * in the authority, because the text before an @ may look the same.
 * @param {string} url @param {string} site @returns {[string, string, string]}
 */
export function parts(url, site) {
  const start = url.indexOf("//") + 2;
  if (start < 2 || !site) return [url, "", ""];
  const authority = url.slice(start).split(/[/?#]/, 1)[0];
  const at = authority.toLowerCase().lastIndexOf(site.toLowerCase());
  if (at < 0) return [url, "", ""];
  const begin = start + at;
  return [
    url.slice(0, begin),
    url.slice(begin, begin + site.length),
    url.slice(begin + site.length),
  ];
}

/** A page to visit: its whole address. It is opened only after the person agrees. */
export function UrlQuestion({ question }) {
  const site = question.site || question.host;
  const [before, host, after] = parts(question.url, site);
  const below = question.host.endsWith(site) ? question.host.slice(0, -site.length) : "";
  const address = safe(question.url);
  const web = /^https?:/i.test(address) ? address : "";
  const link = useRef(/** @type {any} */ (null));
  const go = (send) => {
    // The browser opens it like any link, without an opener and without a referrer.
    link.current.click();
    return send({ type: "filled", action: "accept" });
  };
  return html`
    <${Ask}
      question=${question}
      title=${html`
        <${Say} text=${question.server} /> wants you to visit a page
      `}
      icon="out"
      answers=${[
        { label: "Open the page", main: true, off: !web, act: go },
        {
          label: "I will open it myself",
          off: !web,
          act: (send) => send({ type: "filled", action: "accept" }),
        },
        {
          key: "d",
          label: "Decline",
          act: (send) => send({ type: "filled", action: "decline" }),
        },
        { label: "Cancel", act: (send) => send({ type: "filled", action: "cancel" }) },
      ]}
    >
      <p class="message wrap">
        <${Say} text=${question.message} />
      </p>
      <div class="address-box">
        <code class="wrap" aria-label="The whole address">
          ${visible(before)}
          <strong>${visible(host)}</strong>
          ${visible(after)}
        </code>
        <${Copy} text=${question.url} label="Copy address" />
      </div>
      <p class="host-line">
        It leads to${" "}
        <span class="quiet">
          <${Say} text=${below} />
        </span>
        <strong>
          <${Say} text=${site} />
        </strong>
        . What you enter there does not pass through Interlock or the model.
      </p>
      ${
        web
          ? html`
            <a
              ref=${link}
              class="hidden"
              href=${web}
              target="_blank"
              rel="noopener noreferrer"
              tabindex="-1"
              aria-hidden="true"
            >
              open
            </a>
          `
          : html`
            <p class="wrong">
              <${Icon} name="warn" /> This is not a web address, so it cannot be opened here.
            </p>
          `
      }
    </${Ask}>
  `;
}
