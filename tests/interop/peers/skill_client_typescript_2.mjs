// A client of the official TypeScript SDK v2 that reads all skills; prints what it saw as a line of
// JSON. Arguments: the mode, then the URL of a server or its command.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SKILLS_EXTENSION_ID, SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [mode, target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const client = new Client(
  { name: "peer", version: "1.0.0" },
  { capabilities: { extensions: { [SKILLS_EXTENSION_ID]: {} } }, versionNegotiation: { mode } },
);
await client.connect(transport);

async function failure(attempt) {
  try {
    await attempt();
  } catch (error) {
    return error.reason ?? error.code;
  }
}

const skills = new SkillsClient(client);
const seen = { supported: skills.supported, directoryRead: skills.directoryRead };
if (!skills.supported) {
  console.log(JSON.stringify(seen));
  await client.close();
  process.exit();
}
const { skills: entries, invalid } = await skills.list();
seen.invalid = invalid;
seen.skills = {};
for (const entry of entries) {
  const { skill } = await skills.get(entry.uri);
  const main = await skills.read(skill);
  const files = {};
  if (skill.resources !== "dynamic")
    for (const { uri } of skill.resources) {
      const { bytes, verified } = await skills.read(skill, uri);
      files[uri] = [Buffer.from(bytes).toString("base64"), verified];
    }
  seen.skills[skill.uri] = {
    frontmatter: main.frontmatter,
    verified: main.verified,
    body: main.body,
    files,
  };
}
seen.unknown = await failure(() => skills.get("skill://nothing/SKILL.md"));
const [first] = entries.filter((entry) => entry.resources !== "dynamic");
seen.unlisted = await failure(() => skills.read(first, "another.md"));
const directory = first.uri.replace(/\/SKILL\.md$/, "");
const { resources } = await skills.readDirectory(directory);
seen.directory = resources.map((child) => [child.uri, child.mimeType]);
console.log(JSON.stringify(seen));
await client.close();
