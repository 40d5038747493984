// Prints what failed in a run of the conformance suite, one SCENARIO CHECK in each line, sorted.
// usage: node failing.mjs DIR, the suite's output folder
import { globSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";

const [dir] = process.argv.slice(2);
const files = globSync(`${dir}/*/checks.json`);
if (files.length === 0) throw new Error(`no results in ${dir}`);
const failed = files.flatMap((file) => {
  const scenario = basename(dirname(file)).replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT[\dZ-]+$/, "");
  const checks = JSON.parse(readFileSync(file, "utf8"));
  return checks.filter((check) => check.status === "FAILURE").map((check) => `${scenario} ${check.id}`);
});
for (const line of [...new Set(failed)].sort()) console.log(line);
