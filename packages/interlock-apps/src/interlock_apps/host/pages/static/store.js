// @ts-check
// The state of the page: the host's state, and the conversations built from events.
import { batch, computed, signal } from "../kit/kit.js";
import { shift } from "./item-window.js";
import { withoutMarked } from "./untrusted-text.js";
import { Refused, act, line, listen } from "../kit/net.js";

export const title = signal("Interlock");
export const demo = signal("");
export const models = signal(/** @type {any[]} */ ([]));
export const servers = signal(/** @type {any[]} */ ([]));
export const sessions = signal(/** @type {any[]} */ ([]));
export const roots = signal(/** @type {Record<string, string[]>} */ ({}));
export const rules = signal(/** @type {any[]} */ ([]));
/** The path of the policy file; "" if the host has none. */
export const policyFile = signal("");
/** The mode of a conversation whose mode was not chosen. */
export const usualMode = signal("ask");
/** The mode, bounds and taint of each open conversation. */
export const consents = signal(/** @type {Record<string, any>} */ ({}));
/** What servers may still ask of models without a question, by conversation and server. */
export const samplings = signal(/** @type {Record<string, Record<string, any>>} */ ({}));
/** How many files the calls of each conversation have changed. */
export const changedFiles = signal(/** @type {Record<string, number>} */ ({}));
export const appsOrigin = signal("");
export const questions = signal(/** @type {Map<string, any>} */ (new Map()));
export const toasts = signal(/** @type {any[]} */ ([]));
/** The open section of the settings; "" while they are closed. */
export const settings = signal("");
/** What the section about servers shows: its list, a form, or a server. */
export const settingsPlace = signal(/** @type {any} */ ({ name: "list" }));
/** What can be set up here; null where the host was given its servers and models otherwise. */
export const setup = signal(/** @type {any} */ (null));
/** The text of the live region. */
export const spoken = signal("");
/** The open conversation; "" for a new one. */
export const current = signal("");
/** The projects, and the chosen one: its conversations are listed, and new ones belong to it. */
export const projects = signal(/** @type {any[]} */ ([]));
export const project = signal("");
let projectChosen = false;
/** @param {string} name */
export function chooseProject(name) {
  projectChosen = true;
  project.value = name;
}
/** The message that is scrolled into view once its conversation is shown. */
export const seek = signal(/** @type {{session: string, message: number} | null} */ (null));
/** Attachments of the next message in the open conversation. */
export const attached = signal(/** @type {{server: string, uri: string, title: string}[]} */ ([]));
/**
 * Resources that content refers to can be read here, and attached to the next message.
 * @type {import("../kit/content.js").ResourceActions}
 */
export const resourceActions = {
  read: async (server, uri) => (await act("read", { server, uri })).contents,
  attach: (one) => {
    if (!attached.value.some((each) => each.server === one.server && each.uri === one.uri))
      attached.value = [...attached.value, one];
  },
};
/** Attachments in the other conversations. */
const setAside = new Map();
const drafts = new Map();
/** The unsent text of a conversation. @param {string} id @returns {{value: string}} */
export function draft(id) {
  let found = drafts.get(id);
  if (!found) drafts.set(id, (found = signal("")));
  return found;
}
/** The open palette, and the open panel. */
export const overlay = signal(/** @type {{name: string, [more: string]: any} | null} */ (null));
export const panel = signal(/** @type {{name: string, [more: string]: any} | null} */ (null));
export const drawer = signal(false);
/** Log lines of servers, newest last. */
export const logs = new Map();
/** Listeners for every event (the audit log, apps). */
export const eventListeners = new Set();

export const hostQuestions = computed(() =>
  [...questions.value.values()].filter((one) => !one.session),
);
export const elsewhere = computed(() =>
  [...questions.value.values()].filter((one) => one.session && one.session !== current.value),
);
/**
 * Whether a conversation accepts messages: earlier ones do not.
 * @param {string} id
 */
export const isLive = (id) => {
  const listed = sessions.value.find((one) => one.id === id);
  return !!listed && !listed.past;
};
export const serverById = (id) => servers.value.find((server) => server.id === id);

const LINES = 1000;
const TURNS = 20; // of a conversation that are read at a time
const FRAME = 50;
let keys = 0;
const key = () => `k${++keys}`;

/** Tokens and dollars of nothing; `unpriced`: turns and samplings of models without prices. */
const NOTHING = { input: 0, output: 0, kept: 0, price: 0, priced: 0, unpriced: 0 };

/** @param {typeof NOTHING} spent @param {any} event the end of a turn or a sampling request */
function plus(spent, { usage, price }) {
  const { input = 0, output = 0, kept = 0 } = usage ?? {};
  if (!input && !output) return spent;
  const known = price !== undefined && price !== null;
  return {
    input: spent.input + input,
    output: spent.output + output,
    kept: spent.kept + kept,
    price: spent.price + (known ? price : 0),
    priced: spent.priced + (known ? 1 : 0),
    unpriced: spent.unpriced + (known ? 0 : 1),
  };
}

/**
 * A conversation: items in order, each with its own signals, so that a change of one item does not
 * re-render the others.
 */
export class Talk {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.items = signal(/** @type {any[]} */ ([]));
    this.running = signal(false);
    this.loaded = signal(/** @type {"no" | "loading" | "yes" | "failed"} */ ("no"));
    this.words = signal("");
    this.remark = signal("");
    /**
     * The end of a failed turn, until something follows: the turn can be retried.
     */
    this.retriable = signal(/** @type {any} */ (null));
    /** Messages that wait for the running turn, or that a stopped turn left. */
    this.queue = signal(/** @type {any[]} */ ([]));
    /** The last request to the model, with its estimated tokens. */
    this.request = signal(/** @type {any} */ (null));
    /** What the turns took so far. */
    this.spent = signal({ ...NOTHING });
    /** The last entry that the host counted in `spent`, and the last one that has to be in it. */
    this.counted = 0;
    this.toCount = 0;
    /**
     * The places where the conversation goes on in several ways, each by the number of the entry
     * with which the shown way begins; 0 if nothing follows yet.
     */
    this.forks = signal(/** @type {Map<number, {chosen: number, ends: number[]}>} */ (new Map()));
    this.last = 0;
    /** The number of the first entry of the log that is here; 0 for all of the conversation. */
    this.first = signal(0);
    /** Whether the conversation has earlier turns. */
    this.earlier = signal(false);
    this.reading = false;
    /** Events of calls that began in earlier turns, by call. @type {Map<string, any[]>} */
    this.orphans = new Map();
    /** The time of the model's last whole message. */
    this.saidAt = 0;
    /** The number of the entry that is being processed. */
    this.now = 0;
    this.calls = /** @type {Map<string, any>} */ (new Map());
    this.asked = /** @type {Map<string, any>} */ (new Map());
    /** The items of calls that are asked about together. */
    this.groups = /** @type {Map<string, any>} */ (new Map());
    this.step = /** @type {any} */ (null);
    /** The error of the last request to the model. */
    this.failure = "";
    this.held = /** @type {any[]} */ ([]);
    this.into = /** @type {any[] | null} */ (null);
    this.again = false;
  }

  clear() {
    this.last = 0;
    this.orphans.clear();
    this.saidAt = 0;
    this.retriable.value = null;
    this.queue.value = [];
    this.request.value = null;
    this.spent.value = { ...NOTHING };
    this.counted = 0;
    this.toCount = 0;
    this.calls.clear();
    this.asked.clear();
    this.groups.clear();
    this.step = null;
    this.held = [];
    this.items.value = [];
  }

  /** Fetch the history; events that arrive meanwhile are processed after it. */
  async load() {
    if (this.loaded.value === "loading") {
      this.again = true;
      return;
    }
    this.again = false;
    this.loaded.value = "loading";
    this.held = [];
    try {
      const { notes, first, earlier, remark, queued, forks } = await act("openSession", {
        session: this.id,
        turns: TURNS,
      });
      const held = this.held;
      batch(() => {
        this.clear();
        this.first.value = first;
        this.earlier.value = earlier;
        this.remark.value = remark;
        const made = /** @type {any[]} */ ([]);
        this.into = made;
        for (const noted of notes) this.take(noted);
        this.into = null;
        this.items.value = made;
        this.queue.value = queued;
        this.forks.value = new Map(forks.map((fork) => [fork.at, fork]));
        this.loaded.value = "yes";
        for (const noted of held) this.take(noted);
        const listed = sessions.value.find((session) => session.id === this.id);
        this.running.value = listed ? listed.running : false;
        for (const question of questions.value.values())
          if (question.session === this.id) this.ask(question);
        this.settle();
      });
      this.count();
    } catch (bad) {
      this.loaded.value = "failed";
      this.words.value =
        bad instanceof Refused ? bad.message : "The conversation could not be read.";
    }
    // The stream reconnected meanwhile: the history may lack events before that.
    if (this.again) await this.load();
  }

  /**
   * Have the host count what all turns took: those that are here are only the last ones. Reading
   * them takes a while, so that the conversation is shown first.
   */
  async count() {
    try {
      do {
        const spent = await act("spending", { session: this.id });
        this.counted = spent.until;
        this.spent.value = spent;
      } while (this.toCount > this.counted);
    } catch {
      // The turns that are here are counted.
    }
  }

  /** @param {any} event the end of a turn or a sampling request */
  spend(event) {
    this.toCount = Math.max(this.toCount, this.now);
    if (!this.now || this.now > this.counted) this.spent.value = plus(this.spent.value, event);
  }

  /**
   * Fetch earlier turns, and put them before the others.
   * @returns {Promise<number>} how many items came
   */
  async loadEarlier() {
    if (this.reading || !this.earlier.value || this.loaded.value !== "yes") return 0;
    this.reading = true;
    try {
      const { notes, first, earlier } = await act("openSession", {
        session: this.id,
        turns: TURNS,
        before: this.first.value,
      });
      return batch(() => this.prepend(notes, first, earlier));
    } catch (bad) {
      toast("error", bad instanceof Error ? bad.message : String(bad));
      return 0;
    } finally {
      this.reading = false;
    }
  }

  /** @param {any[]} notes @param {number} first @param {boolean} earlier */
  prepend(notes, first, earlier) {
    const { step, last, failure } = this;
    const running = this.running.value;
    const retriable = this.retriable.value;
    const remark = this.remark.value;
    const queue = this.queue.value;
    const request = this.request.value;
    const spent = this.spent.value;
    const made = /** @type {any[]} */ ([]);
    this.into = made;
    this.step = null;
    this.last = 0;
    for (const noted of notes) this.take(noted);
    this.finish();
    // What happened later to calls of these turns.
    for (const [call, events] of this.orphans)
      if (this.calls.has(call)) {
        this.orphans.delete(call);
        for (const { event, at } of events) TAKE[event.type](this, event, at);
      }
    this.into = null;
    Object.assign(this, { step, last, failure });
    this.first.value = first;
    this.running.value = running;
    this.retriable.value = retriable;
    this.remark.value = remark;
    this.queue.value = queue;
    this.request.value = request;
    this.spent.value = spent;
    this.earlier.value = earlier;
    this.items.value = [...made, ...this.items.value];
    shift(this, made.length);
    this.settle();
    return made.length;
  }

  /**
   * Nothing in the history is still running: mark calls and questions that never ended.
   */
  settle() {
    if (this.running.value) return;
    this.finish();
    for (const call of this.calls.values())
      // A task goes on, whoever looks at it.
      if (["proposed", "running"].includes(call.data.value.state) && !call.data.value.task)
        call.data.value = { ...call.data.value, state: "gone" };
    for (const asked of this.asked.values())
      if (!asked.answer.value && !questions.value.has(asked.question.id))
        asked.answer.value = { answer: { type: "none" }, by: "nobody" };
  }

  /** @param {any} noted */
  receive(noted) {
    if (this.loaded.value === "loading") this.held.push(noted);
    else if (this.loaded.value === "yes") this.take(noted);
  }

  take({ seq, at, event }) {
    if (seq && seq <= this.last) return;
    if (seq) this.last = seq;
    this.now = seq;
    const how = TAKE[event.type];
    if (how) how(this, event, at);
  }

  add(item) {
    item.key = key();
    item.talk = this.id;
    item.begin = this.now;
    item.seq = this.now;
    const empty = this.forks.value.get(0);
    if (empty && !this.into && ["said", "model"].includes(item.kind)) {
      // The first message of a new branch.
      const forks = new Map(this.forks.value);
      forks.delete(0);
      this.forks.value = forks.set(item.begin, empty);
    }
    if (this.into) this.into.push(item);
    else this.items.value = [...this.items.value, item];
    return item;
  }

  ask(question, at = Date.now() / 1000) {
    if (this.asked.has(question.id)) return;
    const asked = { question, at, answer: signal(/** @type {any} */ (null)), key: key() };
    this.asked.set(question.id, asked);
    if (question.type === "call" && question.group) this.join(question.group, asked, at);
    const call = this.calls.get(question.call);
    if (call) call.asked.value = [...call.asked.value, asked];
    else this.add({ kind: "question", at, asked });
  }

  /**
   * Join the questions about the calls of one step. Those that cannot be answered together are left
   * out: a flagged or risky call has a card of its own.
   */
  join(group, asked, at) {
    const { flagged, risk, warnings } = asked.question;
    if (flagged || risk || warnings?.length) return;
    let item = this.groups.get(group);
    if (!item) {
      item = this.add({ kind: "group", at, group, asked: signal([]), apart: signal(false) });
      this.groups.set(group, item);
    }
    item.asked.value = [...item.asked.value, asked];
  }

  /** The piece of the model's text that is being streamed. */
  piece(at, step = 0, model = "") {
    if (!this.step) {
      this.step = this.add({
        kind: "model",
        at,
        step,
        model,
        text: signal(""),
        thought: signal(""),
        notes: signal([]),
        doing: signal(""),
        done: signal(false),
        result: signal(null),
        usage: signal(null),
        buffer: {},
        timer: 0,
      });
    }
    return this.step;
  }

  finish() {
    if (!this.step) return;
    flush(this.step);
    this.step.done.value = true;
    this.step.doing.value = "";
    this.step = null;
  }
}

/** Show new text. Pieces arrive far more often than the display needs. */
function flush(item) {
  window.clearTimeout(item.timer);
  item.timer = 0;
  const { text, thought } = item.buffer;
  item.buffer = {};
  batch(() => {
    if (text) item.text.value += text;
    if (thought) item.thought.value += thought;
  });
}

/** The texts of content, one below the other. @param {any} content */
export const texts = (content) =>
  (Array.isArray(content) ? content : [content])
    .filter((block) => block?.type === "text")
    .map((block) => block.text)
    .join("\n\n");
/** Keep an event of a call that began in turns that are not here yet. */
function orphan(talk, event, at) {
  talk.orphans.set(event.call, [...(talk.orphans.get(event.call) ?? []), { event, at }]);
}
const update = (item, changes) => (item.data.value = { ...item.data.value, ...changes });

/** The end of a call or its task. @param {any} item @param {any} event @param {number} seconds */
function end(item, event, seconds) {
  item.progress.value = null;
  const denied = item.data.value.state === "denied";
  update(item, {
    ...event,
    type: "callProposed",
    state: denied ? "denied" : event.error || event.result?.isError ? "failed" : "done",
    result: event.result ?? null,
    error: event.error ?? "",
    seconds,
    warnings: event.warnings ?? [],
  });
}

/**
 * How each event changes its conversation.
 * @type {Record<string, (talk: Talk, event: any, at: number) => void>}
 */
const TAKE = {
  sessionBegan: (talk, event) => {
    talk.remark.value = event.remark ?? "";
  },
  sessionResumed: (talk, event, at) => {
    talk.remark.value = event.remark ?? "";
    talk.add({ kind: "resumed", at, event });
  },
  modelChosen: (talk, event, at) => {
    talk.remark.value = event.remark ?? "";
    talk.add({ kind: "chosen", at, event });
  },
  personSaid: (talk, event, at) => {
    talk.finish();
    talk.retriable.value = null;
    if (event.queued) talk.queue.value = talk.queue.value.filter((one) => one.id !== event.queued);
    talk.add({ kind: "said", at, event });
    talk.running.value = true;
  },
  messageQueued: (talk, event) => {
    const known = talk.queue.value.some((one) => one.id === event.id);
    talk.queue.value = known
      ? talk.queue.value.map((one) => (one.id === event.id ? event : one))
      : [...talk.queue.value, event];
  },
  messageUnqueued: (talk, event) => {
    talk.queue.value = talk.queue.value.filter((one) => one.id !== event.id);
  },
  modelAsked: (talk, event, at) => {
    talk.finish();
    talk.retriable.value = null;
    talk.running.value = true;
    talk.failure = "";
    talk.request.value = event;
    talk.piece(at, event.step, event.model);
  },
  modelSays: (talk, event, at) => {
    if (at < talk.saidAt) return; // a piece of a message that the history has as a whole
    const item = talk.piece(at);
    if (event.kind === "text" || event.kind === "thought") {
      item.buffer[event.kind] = (item.buffer[event.kind] ?? "") + event.text;
      if (!item.timer) item.timer = window.setTimeout(() => flush(item), FRAME);
    } else if (event.kind === "call") item.doing.value = event.text;
    else item.notes.value = [...item.notes.value, event.text];
  },
  modelSaid: (talk, event, at) => {
    const item = talk.piece(at, event.step, event.model);
    talk.finish();
    item.seq = talk.now;
    talk.saidAt = Math.max(talk.saidAt, at);
    item.text.value = texts(event.result.content);
    item.result.value = event.result;
    item.usage.value = event.usage ?? null;
    if (event.thought) item.thought.value = event.thought;
  },
  modelFailed: (talk, event, at) => {
    talk.finish();
    talk.failure = event.words;
    talk.add({ kind: "failed", at, event });
  },
  branchChosen: (talk) => {
    talk.load();
  },
  trimmed: (talk, event, at) => talk.add({ kind: "trimmed", at, event }),
  turnEnded: (talk, event, at) => {
    talk.finish();
    talk.running.value = false;
    talk.spend(event);
    // The line above says so already.
    const alreadyShown = event.words !== "" && event.words === talk.failure;
    const item = talk.add({ kind: "ended", at, event, alreadyShown });
    if (["failed", "refused"].includes(event.reason)) talk.retriable.value = item;
  },
  callProposed: (talk, event, at) => {
    if (talk.calls.has(event.call)) return;
    const data = {
      arguments: {},
      server: "",
      tool: "",
      title: "",
      by: "model",
      ...event,
      state: "proposed",
    };
    talk.calls.set(
      event.call,
      talk.add({
        kind: "call",
        at,
        id: event.call,
        data: signal(data),
        progress: signal(null),
        asked: signal([]),
      }),
    );
    if (talk.step) talk.step.doing.value = "";
  },
  callDecided: (talk, event, at) => {
    const item = talk.calls.get(event.call);
    if (item)
      update(item, {
        decided: { ...event, at },
        state: event.allow ? "running" : "denied",
        since: at,
        ...(event.arguments ? { arguments: event.arguments, edited: true } : {}),
      });
  },
  callProgress: (talk, event) => {
    const item = talk.calls.get(event.call);
    if (item) item.progress.value = event;
  },
  callEnded: (talk, event, at) => {
    const item = talk.calls.get(event.call);
    if (!item) orphan(talk, event, at);
    // The call of a task ends with a message to the model; the task goes on.
    else if (!item.data.value.task) end(item, event, event.seconds ?? 0);
  },
  taskBegan: (talk, event) => {
    const item = talk.calls.get(event.call);
    if (item) update(item, { task: true });
  },
  taskEnded: (talk, event, at) => {
    const item = talk.calls.get(event.call);
    if (item) end(item, { ...event, task: false }, Math.max(0, at - item.data.value.since));
    else orphan(talk, event, at);
  },
  taskGiven: (talk, event, at) => {
    const { title, tool } = talk.calls.get(event.call)?.data.value ?? {};
    const words = `The outcome of ${title || tool || "a task"} has come in.`;
    talk.add({ kind: "notice", at, event: { level: "info", words } });
  },
  resultsGiven: (talk, event) => {
    for (const one of event.results) {
      const item = talk.calls.get(one.toolUseId);
      if (item) update(item, { given: texts(one.content ?? []) });
    }
  },
  asked: (talk, event, at) => talk.ask(event.question, at),
  answered: (talk, event, at) => {
    const asked = talk.asked.get(event.question);
    if (!asked) return;
    asked.answer.value = { answer: event.answer, by: event.by ?? "person" };
    const call = talk.calls.get(asked.question.call);
    // The time of open questions does not count.
    if (call?.data.value.since)
      update(call, { since: Math.min(at, call.data.value.since + at - asked.at) });
  },
  sampleEnded: (talk, event, at) => {
    talk.spend(event);
    talk.add({ kind: "sampled", at, event });
  },
  notice: (talk, event, at) => talk.add({ kind: "notice", at, event }),
  modeChanged: (talk, event, at) => say(talk, at, MODE_WORDS[event.mode] ?? event.mode),
  tainted: (talk, event, at) =>
    say(
      talk,
      at,
      `A result of ${event.tool} on ${event.server} seems to give orders to the model. You are ` +
        "asked about every call that writes.",
      "warning",
    ),
  taintCleared: (talk, _, at) => say(talk, at, "The rules decide again about calls that write."),
  fileRestored: (talk, event, at) => say(talk, at, `Restored: ${event.path}`),
};

/** @type {Record<string, string>} */
const MODE_WORDS = {
  ask: "From here on you are asked about every call that no rule allows.",
  read: "From here on read-only tools of trusted servers run without a question.",
  plan: "From here on the model plans first.",
  bounds: "From here on calls run within bounds.",
};

/** Add a line of the host to a conversation. */
function say(talk, at, words, level = "info") {
  talk.add({ kind: "notice", at, event: { level, words } });
}

const talks = new Map();

/** @param {string} id @returns {Talk} */
export function talk(id) {
  let found = talks.get(id);
  if (!found) talks.set(id, (found = new Talk(id)));
  return found;
}

/**
 * How each event changes the state outside conversations.
 * @type {Record<string, (event: any, noted: any) => void>}
 */
const HOST = {
  asked: ({ question }) => {
    questions.value = new Map(questions.value).set(question.id, question);
    spoken.value = asks(question);
  },
  answered: (event) => {
    const rest = new Map(questions.value);
    if (rest.delete(event.question)) questions.value = rest;
  },
  consentChanged: (event) => {
    consents.value = { ...consents.value, [event.session]: event.consent };
  },
  samplingAllowed: (event) => {
    const { [event.server]: _, ...others } = samplings.value[event.session] ?? {};
    const { requests = 0, tokens = 0 } = event;
    const left = requests ? { ...others, [event.server]: { requests, tokens } } : others;
    samplings.value = { ...samplings.value, [event.session]: left };
  },
  filesChanged: (event) => {
    const before = changedFiles.value[event.session] ?? 0;
    changedFiles.value = {
      ...changedFiles.value,
      [event.session]: before + event.files.length,
    };
  },
  sessionBegan: (event, { at }) => {
    const listed = sessions.value.find((one) => one.id === event.session);
    sessions.value = [
      {
        running: false,
        ...listed,
        id: event.session,
        title: event.title || listed?.title || "",
        model: event.model,
        began: at,
        project: event.project ?? "",
      },
      ...sessions.value.filter((one) => one !== listed),
    ];
    const begun = talk(event.session);
    if (begun.loaded.value === "no") begun.loaded.value = "yes";
  },
  modelChosen: (event) => {
    const { model, effort = "", remark = "" } = event;
    sessions.value = sessions.value.map((one) =>
      one.id === event.session ? { ...one, model, effort, remark } : one,
    );
  },
  personSaid: (event, { at }) => {
    sessions.value = sessions.value.map((one) =>
      one.id === event.session ? { ...one, running: true, spoke: at } : one,
    );
    entitle(
      event.session,
      event.prompt
        ? serverById(event.server)?.prompts?.find((one) => one.name === event.prompt)?.title ||
            event.prompt
        : (event.messages ?? [])
            .map((message) => withoutMarked(texts(message.content)))
            .find(Boolean),
    );
  },
  sessionChanged: ({ session, title, pinned }) => {
    sessions.value = sessions.value.map((one) =>
      one.id === session
        ? { ...one, title: title ?? one.title, pinned: pinned ?? one.pinned }
        : one,
    );
  },
  sessionDeleted: ({ conversation }) => {
    sessions.value = sessions.value.filter((one) => one.id !== conversation);
    talks.delete(conversation);
    drafts.delete(conversation);
    setAside.delete(conversation);
    if (current.value === conversation) open("");
  },
  modelAsked: (event) => runs(event.session, true),
  taskGiven: (event) => runs(event.session, true),
  turnEnded: (event) => {
    runs(event.session, false);
    if (event.session === current.value) spoken.value = ending(event);
  },
  serverState: (event) => {
    servers.value = servers.value.map((one) =>
      one.id === event.server
        ? {
            ...one,
            state: event.state,
            words: event.words ?? "",
            revision: event.revision || one.revision,
          }
        : one,
    );
  },
  rootsChanged: (event) => {
    roots.value = event.folders;
  },
  serverSaid: (event, { at }) => {
    const lines = logs.get(event.server) ?? log(event.server);
    lines.value = [...lines.value.slice(1 - LINES), { ...event, at }];
  },
  notice: (event) => {
    if (!event.session) toast(event.level, event.words, event.server);
  },
};

/** @param {string} server */
export function log(server) {
  let lines = logs.get(server);
  if (!lines) logs.set(server, (lines = signal([])));
  return lines;
}

/**
 * The end of a turn in one sentence; a model's error is shown by an alert.
 * @param {any} event
 */
function ending(event) {
  if (event.reason === "done") return "The answer is complete.";
  if (talk(event.session).failure) return "You can try again.";
  return event.words || "The turn is over.";
}

/**
 * Whether a question is about a skill, which always has its own question.
 * @param {any} question
 */
export const isSkill = (question) => question.changes?.[0]?.kind === "skill";

/** A question in one sentence. @param {any} question */
export function asks(question) {
  const who = question.server || "The host";
  if (isSkill(question))
    return `Let the model load the skill ${question.changes[0].name} of ${who}?`;
  switch (question.type) {
    case "call":
      return `Call ${question.title || question.tool} on ${who}?`;
    case "plan":
      return `Approve the plan of ${(question.steps ?? []).length} steps?`;
    case "start":
      return `Start the server ${who}?`;
    case "pin":
      return `${who} offers something that you have not approved.`;
    case "result":
      return `Give the result of ${question.title || question.tool} to the model?`;
    case "sample":
      return `${who} wants to ask a model.`;
    case "sampled":
      return `Give the model's answer to ${who}?`;
    case "form":
      return `${who} asks for information.`;
    default:
      return `${who} wants you to visit a page.`;
  }
}

/**
 * Title a conversation after its first message, until the host sends a title.
 * @param {string} session
 * @param {string} [words]
 */
export function entitle(session, words = "") {
  const line = words.trim().replace(/\s+/g, " ");
  if (line)
    sessions.value = sessions.value.map((one) =>
      one.id === session && !one.title
        ? { ...one, title: line.length > 80 ? `${line.slice(0, 79)}…` : line }
        : one,
    );
}

function runs(session, running) {
  sessions.value = sessions.value.map((one) => (one.id === session ? { ...one, running } : one));
}

/** @param {"info" | "warning" | "error"} level @param {string} words @param {string} [server] */
export function toast(level, words, server = "") {
  toasts.value = [...toasts.value.slice(-4), { key: key(), level, words, server }];
}

/**
 * Run an act, and show the error if it was refused.
 * @param {string} name
 * @param {Record<string, unknown>} [body]
 * @returns {Promise<any>}
 */
export async function attempt(name, body) {
  try {
    return (await act(name, body)) ?? true;
  } catch (bad) {
    toast("error", bad instanceof Error ? bad.message : String(bad));
    return undefined;
  }
}

/** @param {any} state @param {boolean} fresh whether events may have been missed */
function show(state, fresh) {
  batch(() => {
    title.value = state.title || "Interlock";
    demo.value = state.demo || "";
    models.value = state.models ?? [];
    servers.value = state.servers ?? [];
    const began = new Map(sessions.value.map((one) => [one.id, one.began]));
    const called = new Map(sessions.value.map((one) => [one.id, one.title]));
    sessions.value = [...(state.sessions ?? [])]
      .reverse()
      .map((one) => ({
        ...one,
        title: one.title || called.get(one.id) || "",
        began: one.began ?? began.get(one.id) ?? 0,
      }))
      .sort((one, other) => other.began - one.began);
    roots.value = state.roots ?? {};
    rules.value = state.rules ?? [];
    policyFile.value = state.policyFile ?? "";
    usualMode.value = state.mode ?? "ask";
    const live = (state.sessions ?? []).filter((one) => one.consent);
    consents.value = Object.fromEntries(live.map((one) => [one.id, one.consent]));
    samplings.value = Object.fromEntries(live.map((one) => [one.id, one.sampling]));
    changedFiles.value = Object.fromEntries(live.map((one) => [one.id, one.changedFiles]));
    projects.value = state.projects ?? [];
    if (!projectChosen) project.value = state.project ?? "";
    if (project.value && !projects.value.some((one) => one.name === project.value))
      project.value = "";
    appsOrigin.value = state.appsOrigin ?? "";
    setup.value = state.setup ?? null;
    questions.value = new Map((state.questions ?? []).map((question) => [question.id, question]));
    if (!fresh) return;
    for (const one of talks.values()) if (one.id !== current.value) one.loaded.value = "no";
    if (current.value) talk(current.value).load();
  });
}

/** @param {any} message @param {boolean} fresh */
function receive(message, fresh) {
  if (message.kind === "state") return show(message.state, fresh);
  if (message.kind !== "noted") return;
  const { noted } = message;
  batch(() => {
    HOST[noted.event.type]?.(noted.event, noted);
    if (noted.event.session) talk(noted.event.session).receive(noted);
    for (const one of eventListeners) one(noted);
  });
}

/** Show a conversation, and read its history if needed. @param {string} id */
export function open(id) {
  drawer.value = false;
  settings.value = "";
  if (id !== current.value) {
    setAside.set(current.value, attached.value);
    attached.value = setAside.get(id) ?? [];
    setAside.delete(id);
    current.value = id;
  }
  const hash = id ? `#${encodeURIComponent(id)}` : "";
  if (location.hash !== hash) history.pushState(null, "", hash || location.pathname);
  if (id && line.value === "open" && ["no", "failed"].includes(talk(id).loaded.value))
    talk(id).load();
}

/** The conversation that the URL names. */
function named() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // a person may type anything there
  }
}

/** Start listening. */
export function begin() {
  current.value = named();
  window.addEventListener("popstate", () => open(named()));
  listen(receive);
}
