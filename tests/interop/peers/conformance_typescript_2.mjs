// The features of the public conformance suite, served by the official TypeScript SDK v2 over HTTP
// (`streamable-http PORT`).
import { randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import {
  NodeStreamableHTTPServerTransport,
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from "@modelcontextprotocol/node";
import {
  McpServer,
  ResourceTemplate,
  completable,
  createMcpHandler,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
} from "@modelcontextprotocol/server";
import { z } from "zod";

const DOT =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const text = (words) => ({ type: "text", text: words });
const said = (words) => ({ content: [text(words)] });
const embedded = (uri, mimeType, words) => ({
  type: "resource",
  resource: { uri, mimeType, text: words },
});
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
const word = (start) => ["paris", "park", "party"].filter((found) => found.startsWith(start));
const form = (properties) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
});
const TEXT = { type: "string" };
const CHOICES = ["option1", "option2", "option3"];
const titled = (what) =>
  ["First", "Second", "Third"].map((nth, n) => ({
    const: `value${n + 1}`,
    title: `${nth} ${what}`,
  }));
const DEFAULTS = {
  type: "object",
  properties: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
  required: [],
};
const ENUMS = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: CHOICES },
    titledSingle: { type: "string", oneOf: titled("Option") },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: CHOICES } },
    titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
  },
  required: [],
};

const elicit = (message, requestedSchema) => inputRequired.elicit({ message, requestedSchema });
const sample = (words, maxTokens) =>
  inputRequired.createMessage({
    messages: [{ role: "user", content: text(words) }],
    maxTokens,
  });
const NAME = elicit("What is your name?", form({ name: TEXT }));
const OK = elicit("Please confirm", form({ ok: { type: "boolean" } }));
const GREETING = sample("Generate a greeting", 50);

// Asks for what is missing; what earlier rounds have brought travels in the state.
const codec = createRequestStateCodec({ key: randomBytes(32) });
const asked = async (ctx, requests, done) => {
  const known = { ...ctx.mcpReq.requestState() };
  const missing = {};
  for (const [key, request] of Object.entries(requests)) {
    const answer = inputResponse(ctx.mcpReq.inputResponses, key);
    if (answer.kind !== "missing") known[key] = answer;
    else if (known[key] === undefined) missing[key] = request;
  }
  if (Object.keys(missing).length)
    return inputRequired({
      inputRequests: missing,
      requestState: await codec.mint(known, ctx),
    });
  return done(known);
};
const shown = (begin) => (answers) => {
  const { action, content } = answers.form;
  return said(`${begin}: action=${action}, content=${JSON.stringify(content ?? {})}`);
};

function build() {
  const server = new McpServer(
    { name: "conformance", version: "1.0.0" },
    {
      capabilities: { logging: {}, resources: { subscribe: true } },
      requestState: { verify: codec.verify },
    },
  );
  const tool = (name, description, inputSchema, run) =>
    server.registerTool(name, { description, inputSchema }, run);
  const nothing = z.object({});
  const asking = (name, description, requests, done) =>
    tool(name, description, nothing, async (_, ctx) => asked(ctx, requests, done));

  tool("test_simple_text", "Answer with one text.", nothing, async () =>
    said("This is a simple text response for testing."),
  );
  tool("test_image_content", "Answer with a picture.", nothing, async () => ({
    content: [{ type: "image", data: DOT, mimeType: "image/png" }],
  }));
  tool("test_audio_content", "Answer with a sound.", nothing, async () => ({
    content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  }));
  tool("test_embedded_resource", "Answer with a resource.", nothing, async () => ({
    content: [
      embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    ],
  }));
  tool("test_multiple_content_types", "Answer with three kinds.", nothing, async () => ({
    content: [
      text("Multiple content types test:"),
      { type: "image", data: DOT, mimeType: "image/png" },
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  }));
  tool("test_error_handling", "Fail, always.", nothing, async () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  tool("test_tool_with_logging", "Write to the log three times.", nothing, async (_, ctx) => {
    for (const what of ["started", "processing data", "completed"]) {
      await ctx.mcpReq.log("info", `Tool execution ${what}`);
      await pause();
    }
    return said("The log has three messages more.");
  });
  tool("test_logging_tool", "Write to the log once.", nothing, async (_, ctx) => {
    await ctx.mcpReq.log("info", "The logging tool was called");
    return said("The log has one message more.");
  });
  const report = async (ctx, progress, total) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken !== undefined)
      await ctx.mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken, progress, total },
      });
  };
  tool("test_tool_with_progress", "Report progress three times.", nothing, async (_, ctx) => {
    for (const done of [0, 50, 100]) {
      await report(ctx, done, 100);
      await pause();
    }
    return said("All of it is done.");
  });
  tool(
    "test_sampling",
    "Ask the client's model.",
    z.object({ prompt: z.string() }),
    async ({ prompt }, ctx) =>
      asked(ctx, { model: sample(prompt, 100) }, ({ model }) =>
        said(`LLM response: ${model.result.content.text}`),
      ),
  );
  asking(
    "test_missing_capability",
    "Do what needs a client with a model.",
    { model: sample("Say that you are there.", 10) },
    ({ model }) => said(model.result.content.text),
  );
  tool(
    "test_elicitation",
    "Ask the person who they are.",
    z.object({ message: z.string() }),
    async ({ message }, ctx) => {
      const fields = form({
        username: { type: "string", description: "User's response" },
        email: { type: "string", description: "User's email address" },
      });
      return asked(ctx, { form: elicit(message, fields) }, shown("User response"));
    },
  );
  asking(
    "test_elicitation_sep1034_defaults",
    "Show a form with a default of each kind.",
    { form: elicit("Please check what we know about you", DEFAULTS) },
    shown("Elicitation completed"),
  );
  asking(
    "test_elicitation_sep1330_enums",
    "Show a form with a choice of each kind.",
    { form: elicit("Please choose", ENUMS) },
    shown("Elicitation completed"),
  );
  const hello = ({ user_name }) => said(`Hello, ${user_name.content.name}!`);
  tool("test_streaming_elicitation", "Report, then ask.", nothing, async (_, ctx) => {
    await report(ctx, 1, 2);
    return asked(ctx, { user_name: NAME }, hello);
  });
  asking("test_input_required_result_elicitation", "Ask for a name.", { user_name: NAME }, hello);
  asking(
    "test_input_required_result_sampling",
    "Ask the client's model for a capital.",
    { capital_question: sample("What is the capital of France?", 100) },
    ({ capital_question }) => said(capital_question.result.content.text),
  );
  asking(
    "test_input_required_result_list_roots",
    "Ask which folders may be used.",
    { client_roots: inputRequired.listRoots() },
    ({ client_roots }) => said(client_roots.roots.map((root) => root.uri).join(" ")),
  );
  asking("test_input_required_result_request_state", "Keep a state.", { confirm: OK }, () =>
    said("state-ok"),
  );
  asking(
    "test_input_required_result_tampered_state",
    "Ask with a state that nobody else can write.",
    { confirm: OK },
    () => said("Nobody has touched the state."),
  );
  asking(
    "test_input_required_result_multiple_inputs",
    "Ask for a name, a greeting and the folders, all at once.",
    { user_name: NAME, greeting: GREETING, client_roots: inputRequired.listRoots() },
    ({ user_name, greeting }) => said(`${greeting.result.content.text} ${user_name.content.name}`),
  );
  tool(
    "test_input_required_result_multi_round",
    "Ask for a name, and then for a color.",
    nothing,
    async (_, ctx) => {
      const step1 = elicit("Step 1: What is your name?", form({ name: TEXT }));
      const step2 = elicit("Step 2: What is your favorite color?", form({ color: TEXT }));
      return asked(ctx, { step1 }, () =>
        asked(ctx, { step1, step2 }, (both) =>
          said(`${both.step1.content.name} likes ${both.step2.content.color}.`),
        ),
      );
    },
  );
  tool(
    "test_input_required_result_capabilities",
    "Ask for as much as the client can be asked.",
    nothing,
    async (_, ctx) => {
      const can = server.server.getClientCapabilities() ?? {};
      const requests = {};
      if (can.elicitation) requests.user_name = NAME;
      if (can.sampling) requests.greeting = GREETING;
      return asked(ctx, requests, (answers) =>
        said(`Asked for ${Object.keys(answers).join(" and ") || "nothing"}.`),
      );
    },
  );

  server.registerResource("text", "test://static-text", { mimeType: "text/plain" }, (uri) => ({
    contents: [
      {
        uri: uri.href,
        mimeType: "text/plain",
        text: "This is the content of the static text resource.",
      },
    ],
  }));
  server.registerResource("picture", "test://static-binary", { mimeType: "image/png" }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: "image/png", blob: DOT }],
  }));
  server.registerResource(
    "watched",
    "test://watched-resource",
    { mimeType: "text/plain" },
    (uri) => ({
      contents: [{ uri: uri.href, mimeType: "text/plain", text: "Watched resource content" }],
    }),
  );
  server.registerResource(
    "data",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    { mimeType: "application/json" },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: "application/json",
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        },
      ],
    }),
  );
  server.server.setRequestHandler("resources/subscribe", async () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", async () => ({}));

  const user = (content) => ({ role: "user", content });
  const prompt = (name, argsSchema, run) => server.registerPrompt(name, { argsSchema }, run);
  server.registerPrompt("test_simple_prompt", { description: "A prompt." }, () => ({
    messages: [user(text("This is a simple prompt for testing."))],
  }));
  prompt(
    "test_prompt_with_arguments",
    z.object({ arg1: completable(z.string(), word), arg2: z.string() }),
    ({ arg1, arg2 }) => ({
      messages: [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
    }),
  );
  prompt(
    "test_prompt_with_embedded_resource",
    z.object({ resourceUri: z.string() }),
    ({ resourceUri }) => ({
      messages: [
        user(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
        user(text("Please process the embedded resource above.")),
      ],
    }),
  );
  server.registerPrompt("test_prompt_with_image", { description: "A picture." }, () => ({
    messages: [
      user({ type: "image", data: DOT, mimeType: "image/png" }),
      user(text("Please analyze the image above.")),
    ],
  }));
  server.registerPrompt("test_input_required_result_prompt", { description: "Ask." }, (ctx) =>
    asked(
      ctx,
      {
        user_context: elicit(
          "What context should the prompt use?",
          form({ context: { type: "string" } }),
        ),
      },
      ({ user_context }) => ({
        messages: [user(text(`Use this context: ${user_context.content.context}`))],
      }),
    ),
  );
  return server;
}

const sessions = new Map();
const stateless = toNodeHandler(createMcpHandler(build, { legacy: "reject" }));
const isHostAllowed = localhostHostValidation();
const isOriginAllowed = localhostOriginValidation();
createServer(async (req, res) => {
  if (!isHostAllowed(req, res) || !isOriginAllowed(req, res)) return;
  if (req.headers["mcp-protocol-version"] >= "2026") return stateless(req, res);
  let transport = sessions.get(req.headers["mcp-session-id"]);
  if (transport === undefined) {
    if (req.headers["mcp-session-id"] !== undefined) return res.writeHead(404).end();
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await build().connect(transport);
  }
  await transport.handleRequest(req, res);
}).listen(Number(process.argv[3]), "127.0.0.1");
