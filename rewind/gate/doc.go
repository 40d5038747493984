// Package gate answers one question about a tool call of an AI agent: may it run now?
//
//	g, err := gate.New(c, func() (gate.Guards, error) { return openSession() }, gate.Policy{})
//	v := g.Decide(ctx, gate.Call{Name: name, Args: args})
//
// The verdict on a call:
//
//	its tool is local                        no opinion: it reaches no machine that a checkpoint could bring back,
//	                                         unless it changes the agent's own and that is [Policy.LocalVM]
//	it reads                                 allow
//	anything else, while a freeze is on      deny
//	it makes a recovery point                allow
//	it deletes or rolls back one             ask
//	it changes machines, all of them guarded allow
//	it changes one that has no guard         deny, with the call that makes the guard
//	its machines cannot be told or found     ask
//	it is unknown                            ask
//	anything else went wrong                 deny
//
// A machine is guarded while the journals hold a proven and complete guard of it that is younger than [Policy.MaxAge].
// A verdict that needs no guard opens no connection, and one on a read or on a local call opens no file either.
//
// # What the ledger adds
//
// With a [Ledger], a person's leave stands in for a guard, once: what would be denied or asked about is allowed if an
// [Approval] fits, which it uses up. An unknown tool is not asked about again while the guard stands for which a person has
// agreed to it; that a call was repeated is no agreement. The ledger closes guards and knows which are void, and every
// verdict but those on reads and on calls that reach no other machine goes into its record. What it claims of a guard is
// proven in the journals each time, since the agent may be able to write it.
//
// A ledger that cannot be used denies what changes machines or may, and stops neither reads nor what makes recovery points.
//
// # What a name can prove
//
// A call names a machine in its own words, and the gate looks for the VM that Zerto knows by that name, host name,
// address or id. Where the settings of a server give one machine's name to another, the gate is deceived. It is a guard
// rail for agents that mean well, not a sandbox.
//
// # Shells
//
// A command line is judged by what [Policy.Commands] reads in it: no opinion on one that addresses no other machine,
// guards for each machine that it changes, and a question about one that leaves its machines open. A machine that it
// certainly changes needs a guard even then.
//
// Without a reader of command lines the gate has no opinion on a Bash command of plain words that begins with one of a
// few programs that can only read the agent's own machine, such as ls and cat, and asks about every other. With and
// without one it allows "zerto-rewind protect" with the options that cannot send a password elsewhere, since the gate
// itself tells agents to run it.
package gate
