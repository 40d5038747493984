// Turns an answer to tools/list on stdin into a catalogue that lets each of the tools run, as a server of this name.
// usage: node catalogue.mjs SERVER
import { readFileSync } from "node:fs";

const [server] = process.argv.slice(2);
const { tools } = JSON.parse(readFileSync(0, "utf8"));
const names = tools.map((tool) => tool.name);
console.log(JSON.stringify({ version: 1, servers: [{ server, tools: [{ names, class: "read_only" }] }] }));
