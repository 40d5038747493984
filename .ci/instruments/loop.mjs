// Has the two TypeScript SDKs go the whole loop: find, ask, guard, change, compare, recover, sweep.
// usage: node loop.mjs SERVER GUEST BACK
//   SERVER is the command, GUEST the folder that is the disk of web01, BACK the server's folder for recovered files.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client as ClientV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";

const [server, guest, back] = process.argv.slice(2);
const capabilities = { elicitation: { form: {} } };
const info = { name: "loop", version: "1" };

const clients = {
  async "v1, legacy"(answer) {
    const client = new ClientV1(info, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, answer);
    await client.connect(new StdioV1({ command: server }));
    return client;
  },
  "v2, legacy": (answer) => connectV2(answer, "legacy", "2025-11-25"),
  "v2, modern": (answer) => connectV2(answer, "auto", "2026-07-28"),
};

async function connectV2(answer, mode, version) {
  const client = new ClientV2(info, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", answer);
  await client.connect(new StdioV2({ command: server }));
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  return client;
}

async function loop(name, connect) {
  const asked = [];
  const client = await connect(async (request) => {
    asked.push(request.params.message);
    return { action: "accept", content: { answer: "checkpoint" } };
  });
  const call = async (tool, args) => {
    const result = await client.callTool({ name: tool, arguments: args });
    assert.ok(!result.isError, `${tool}: ${JSON.stringify(result)}`);
    return result.structuredContent;
  };

  const { tools } = await client.listTools();
  assert.equal(tools.length, 14);
  assert.ok(tools.every((tool) => tool.outputSchema && Object.keys(tool.annotations).length >= 4));

  assert.equal((await call("zerto_find_protection", { vm: "web01" })).protected, true);

  const checked = await call("zerto_check_tool", { server: "ssh", tool: "defragment", vm: "web01" });
  assert.deepEqual([checked.class, checked.answer, checked.mayRun], ["unknown", "checkpoint", false]);
  assert.equal(asked.length, 1);

  const folder = `/etc/${name.replace(/\W+/g, "-")}`;
  const path = `${folder}/app.conf`;
  const before = "listen 80;\n", after = "listen 8080;\n";
  await mkdir(join(guest, folder), { recursive: true });
  await writeFile(join(guest, path), before);
  const guard = await call("zerto_guard_before_mutate", { vm: "web01", action: "move the port" });
  assert.equal(guard.proof, "task+journal");
  await writeFile(join(guest, path), after);
  const { changeId } = guard;

  const difference = await call("zerto_diff", { changeId, path: folder });
  assert.deepEqual([difference.changed.length, difference.added.length, difference.removed.length], [1, 0, 0]);

  const inline = await call("zerto_recover_file", { changeId, path });
  assert.deepEqual([inline.inline, inline.content], [true, before]);
  const written = await call("zerto_recover_file", { changeId, path, dest: `${changeId}.conf` });
  assert.equal(await readFile(join(back, `${changeId}.conf`), "utf8"), before);
  assert.equal(written.sha256, createHash("sha256").update(before).digest("hex"));

  assert.deepEqual((await call("zerto_sweep", {})).left, []);
  const refused = await client.callTool({ name: "zerto_find_protection", arguments: { vm: "nobody" } });
  assert.equal(refused.isError, true);
  await client.close();
  console.log(`TypeScript SDK ${name}: the loop closes`);
}

for (const [name, connect] of Object.entries(clients)) await loop(name, connect);
