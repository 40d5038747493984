// Package mcpadapter offers the rewind loop to AI agents as tools of the Model Context Protocol.
//
// [Register] adds the tools to somebody's server, [NewServer] makes a server of nothing else, and [Serve] runs one over
// a pair of streams, such as a process's standard input and output.
//
// An answer is evidence: structured content with ids, times, sizes and hashes, and the step to take next. A refusal is a
// tool error whose structured content holds an "error" object: a code that does not change between releases, what was
// not done, and what to do. Names and words that come from a guest, from the ZVM or from the operator's inventory appear
// as values of structured fields alone, never inside a sentence of ours, so that a file name cannot give an agent orders.
package mcpadapter
