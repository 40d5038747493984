// Package zertorewind is the map of this module, which lets an AI agent change a virtual machine that Zerto protects,
// and take the change back.
//
// # The rooms
//
// Imports go down only.
//
//	adapters/cmd/zerto-rewind   the binary
//	adapters/cli                the command line
//	adapters/mcp                the tools for a Model Context Protocol server, yours or our own
//	adapters/hook               the pre-tool-use hook of agent hosts
//	adapters/hook/install       what puts the hook and the MCP server into the settings of agent hosts
//	adapters/proxy              what stands before another MCP server, and lets no call change what is not guarded
//	adapters/ledger             what the adapters remember and share: guards, approvals, a freeze, the record
//	rewind                      the loop: find protection, guard, find again, browse, recover
//	rewind/gate                 may this tool call run now?
//	catalog                     what a tool is: read_only, mutating, unknown
//	catalog/file                the catalogue of a user's own, on disk
//	catalog/shell               which machines a command line addresses, and whether it only reads there
//	zvm                         the client of the ZVM REST API
//	zvm/zvmtest                 a simulated ZVM, for tests: ours and yours
//	zvm/zvmtest/conformance     what a ZVM, simulated or real, is asked to find out how it answers
//	task                        what a Zerto task is, and how one waits for it
//
// Start at package rewind. A program that imports it compiles none of the adapters.
//
// # The words
//
// A tagged checkpoint is a named bookmark in a VPG's journal. It is crash-consistent; it is application-consistent only
// if the caller quiesced first.
//
// A VPG is a Virtual Protection Group: one to many VMs that share a journal. A VM is in at most three.
//
// A protecting VPG is one in which a tagged checkpoint is certain: its status is MeetingSLA or one of the NotMeetingSLA
// kinds, and nothing goes on beside it but a retention job. Only these are tagged.
//
// A change is one intended mutation: agent, action, VM or VMs, change id.
//
// A guard is the proof that a change can be taken back: the tagged checkpoint of every protecting VPG.
//
// A rewind is the loop: find protection, tag every protecting VPG, mutate, then bounded recover.
//
// Bounded recover is file-level recovery, clone, or failover test. Live failover is not a rewind tool.
//
// A Zerto task is what a write returns: an id, never a result. HTTP 200 means queued.
//
// # The laws
//
// Each has tests that bear its number.
//
//  1. A Guard is a proof: every checkpoint in it was read in its journal under exactly our tag.
//  2. A write is never sent twice by itself. A lost answer is looked for, or said to be unknown.
//  3. None or several is a hard stop. What a server-side filter returns is checked again.
//  4. Bounded: nothing here can fail over, move, commit, roll back, restore over, edit or delete.
//  5. What is opened is closed, on a context of its own, or the error says how to close it.
//  6. Unknown is not safe, and a broken gate denies.
//  7. Secrets stay secret, and the bearer goes to the configured origin only.
//  8. Files arrive whole or not at all.
//  9. No hidden waits, no hidden goroutines, no globals.
//  10. Evidence, not prose: results carry ids, times, sizes and hashes.
//
// # The sources
//
// A comment that cites zvm-wire 4.4, hooks 1.5, mcp 1.6 or cases B49 names a section of the project's own fact sheets: of
// the ZVM's REST API, the hooks of agent hosts, the Model Context Protocol and its Go SDK, and what went wrong for others.
// They are kept outside the repository, and were compiled from public sources (the vendor's API pages, the documents of the
// hosts and of the protocol, published source code and reports) and from what was measured on a 10.9 appliance and with the
// SDK.
package zertorewind
