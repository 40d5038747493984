// Answers the questions of the server in the place of a person, with the Inspector's mcpdo, in both eras.
// usage: node elicitation.mjs SERVER
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";

const [server] = process.argv.slice(2);

// A refusal of the server is a failed command whose result is on stdout all the same.
function mcpdo(...args) {
  const run = spawnSync("mcpdo", ["--format", "json", ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  assert.notEqual(run.stdout.trim(), "", `mcpdo ${args.join(" ")}: ${run.stderr}`);
  return JSON.parse(run.stdout);
}

const call = (tool, ...args) => mcpdo("--connection", server, "tools/call", tool, ...args);
const answer = (pending, ...how) => mcpdo("--connection", server, "elicitation/respond", pending.elicitationId, ...how);

// The id of a change may look like a number, so it goes as JSON.
const ofChange = (id) => `changeId:=${JSON.stringify(id)}`;

function ask(tool, changeId, origin) {
  const { elicitationPending: pending } = call(tool, ofChange(changeId));
  assert.equal(pending?.origin, origin);
  assert.deepEqual(pending.requestedSchema.required, ["vm"]);
  return pending;
}

for (const [era, origin] of [["legacy", "server-request"], ["modern", "input-required"]]) {
  assert.equal(mcpdo("connect", "--era", era, "--elicit", "form", server).protocolEra, era);
  const guard = call("zerto_guard_before_mutate", 'vm:="web01"', 'action:="be asked"');
  const { changeId } = guard.structuredContent;
  assert.match(changeId, /./);

  for (const [how, words] of [["--decline", "declined"], ["--cancel", "closed the question"], ['vm:="web02"', "is not the name"]]) {
    const refused = answer(ask("zerto_start_failover_test", changeId, origin), how);
    assert.equal(refused.isError, true, how);
    assert.equal(refused.structuredContent.error.code, "no_consent");
    assert.match(refused.content[0].text, new RegExp(`${words}.*No failover test was started`));
  }

  const started = answer(ask("zerto_start_failover_test", changeId, origin), 'vm:="web01"');
  assert.equal(started.structuredContent.stopped, false);
  const stopped = answer(ask("zerto_stop_failover_test", changeId, origin), 'vm:="web01"');
  assert.equal(stopped.structuredContent.stopped, true);
  assert.equal(stopped.structuredContent.changeId, changeId);

  mcpdo("disconnect", server);
  console.log(`mcpdo, ${era}: accept, decline, cancel, another name`);
}
