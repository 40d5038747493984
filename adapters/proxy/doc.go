// Package proxyadapter stands between an agent's host and an MCP server, so that a call that changes a machine does not
// reach the server without a guard, whatever the host's own hooks can do.
//
// It reads the wire: one JSON-RPC message in each line, in both eras of the protocol. What is not a call of a tool passes
// byte for byte. A call goes through [gate.Gate]. One that can be read in two ways is refused, so that what the server
// runs is what was judged.
package proxyadapter
