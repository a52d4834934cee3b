// What the TypeScript client programs share: the same steps, and the same lines, as `steps.py` has
// for the Python ones.
import { createInterface } from "node:readline";

const PATIENCE = 20_000; // milliseconds after which a step that is not over is given up
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

const heard = [];
const asked = [];
let answers = {};
let stirred = () => {};

export function hear({ method, params }) {
  heard.push([method, params ?? null]);
  stirred();
}

export function answer(method, params) {
  asked.push([method, params ?? null]);
  if (!(method in answers))
    throw Object.assign(new Error("User rejected the request"), { code: -1 });
  return Array.isArray(answers[method]) ? answers[method].shift() : answers[method];
}

// The calls of the two SDKs that have the same names; `stateless` and `level` are what is sent with
// each request in that era.
function doing(client, { stateless, level }) {
  const meta = stateless && level ? { _meta: { [LOG_LEVEL]: level } } : {};
  const call = (name, args, options) =>
    client.callTool({ name, arguments: args ?? {}, ...meta }, ...options);
  return {
    call: async ({ name, arguments: args, progress }, options) => {
      const reported = [];
      const onprogress = progress
        ? ({ progress, total, message }) => reported.push([progress, total, message ?? null])
        : undefined;
      return {
        ...(await call(name, args, options({ onprogress }))),
        ...(progress && { reported }),
      };
    },
    // Makes `times` calls, and keeps the process busy for `busy` milliseconds of every turn of its
    // loop; returns how many reports reached each call.
    call_often: async ({ name, arguments: args, times, at_once: atOnce, busy }, options) => {
      const counts = [];
      let over = false;
      const hog = () => {
        const end = performance.now() + busy;
        while (performance.now() < end);
        if (!over) setImmediate(hog);
      };
      if (busy) hog();
      const one = async () => {
        let count = 0;
        await call(name, args, options({ onprogress: () => count++ }));
        counts.push(count);
      };
      try {
        while (counts.length < times) {
          await Promise.all(Array.from({ length: atOnce }, one));
        }
      } finally {
        over = true;
      }
      return counts;
    },
    call_and_cancel: async ({ name }, options) => {
      const giving = new AbortController();
      try {
        await call(
          name,
          {},
          options({ signal: giving.signal, onprogress: () => giving.abort("no longer wanted") }),
        );
        return "answered";
      } catch (bad) {
        if (giving.signal.aborted) return "given up";
        throw bad;
      }
    },
    listen: async ({ wanted, tools }) => {
      const before = heard.length;
      const subscription = await client.listen({
        toolsListChanged: wanted.tools_list_changed,
        resourceSubscriptions: wanted.resource_subscriptions,
      });
      for (const [n, tool] of tools.entries()) {
        await client.callTool({ name: tool, arguments: {} });
        await until(before + n + 1);
      }
      await subscription.close();
      return {
        honored: subscription.honoredFilter,
        events: heard.slice(before).map(([method, params]) => [method, params?.uri ?? null]),
      };
    },
    // Only the SDK v1 has the tasks of 2025-11-25.
    task: async ({ name, arguments: args }, options) => {
      const states = [];
      let id;
      const stream = client.experimental.tasks.callToolStream(
        { name, arguments: args ?? {} },
        ...options({ task: { ttl: 60_000 } }),
      );
      for await (const message of stream) {
        if (message.type === "error") throw message.error;
        if (message.type === "result") return { ...message.result, id, states };
        id = message.task.taskId;
        states.push(message.task.status);
      }
    },
    cancel_task: async ({ name, arguments: args }, options) => {
      const tasks = client.experimental.tasks;
      const stream = tasks.callToolStream(
        { name, arguments: args ?? {} },
        ...options({ task: { ttl: 60_000 } }),
      );
      for await (const message of stream) {
        if (message.type === "error") throw message.error;
        return tasks.cancelTask(message.task.taskId);
      }
    },
    list_tasks: () => client.experimental.tasks.listTasks(),
    complete: ({ argument, value, prompt, template }) =>
      client.complete({
        ref: prompt
          ? { type: "ref/prompt", name: prompt }
          : { type: "ref/resource", uri: template },
        argument: { name: argument, value },
      }),
    list_tools: () => client.listTools(),
    list_resources: () => client.listResources(),
    list_resource_templates: () => client.listResourceTemplates(),
    list_prompts: () => client.listPrompts(),
    read: ({ uri }) => client.readResource({ uri }),
    prompt: ({ name, arguments: args }) => client.getPrompt({ name, arguments: args ?? {} }),
    ping: () => client.ping(),
    set_level: ({ level }) => client.setLoggingLevel(level),
    subscribe: ({ uri }) => client.subscribeResource({ uri }),
    unsubscribe: ({ uri }) => client.unsubscribeResource({ uri }),
  };
}

async function until(count) {
  while (heard.length < count) await new Promise((resolve) => (stirred = resolve));
}

function say(line) {
  process.stdout.write(
    JSON.stringify({ ...line, heard: heard.splice(0), asked: asked.splice(0) }) + "\n",
  );
}

function within(milliseconds, work) {
  let timer;
  const late = new Promise(
    (_, reject) =>
      (timer = setTimeout(() => reject(new Error("the step took too long")), milliseconds)),
  );
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

// `connect(first)` opens the conversation that the first line asks for; `options` puts call options
// where the SDK's version wants them.
export async function play(connect, options) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const first = JSON.parse((await lines.next()).value);
  const { client, revision } = await connect(first);
  const todo = doing(client, { stateless: revision() >= "2026", level: first.log_level });
  const who = () => ({
    revision: revision(),
    server: client.getServerVersion(),
    instructions: client.getInstructions(),
    capabilities: client.getServerCapabilities(),
  });
  say({ saw: "open" });
  for await (const line of lines) {
    const step = JSON.parse(line);
    answers = step.answers ?? {};
    try {
      const saw =
        step.do === "who" ? who() : await within(PATIENCE, todo[step.do](step.with ?? {}, options));
      await within(PATIENCE, until(step.until ?? 0));
      say({ saw });
    } catch (bad) {
      say({
        error: {
          kind: bad.constructor.name,
          code: bad.code ?? null,
          message: String(bad.message),
          data: bad.data ?? null,
        },
      });
    }
  }
  await client.close();
}
