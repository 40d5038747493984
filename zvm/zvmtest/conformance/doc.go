// Package conformance checks what package rewind relies on against any ZVM,
// simulated or live, one named behaviour after the other.
//
//	tap := conformance.NewTap(transport)
//	client, err := zvm.New(url, credentials, zvm.WithTransport(tap))
//	…
//	report := conformance.Run(t, conformance.Target{Client: client, Tap: tap, VM: "web01"})
//	t.Log(report.Markdown())
//
// The simulator passes with every switch with which a recovery is possible at
// all, which is what makes it worth testing against. A live ZVM that fails a
// behaviour shows where the simulator, or the SDK, has to learn.
//
// On the way the package answers questions about the wire that no public
// source answers (the open questions of the wire fact sheet), as far as a
// probe can. The report carries them and is meant to be passed on: the names
// that the suite knows are replaced by pseudonyms that differ from run to run,
// and ids, addresses and tokens are taken out. It quotes the ZVM's refusals,
// so look it over all the same.
//
// # What it does to a ZVM
//
// Without Target.Mutate it only reads. With it, a tagged checkpoint stays in
// the journal of each VPG of the VM until it ages out, up to three more in one
// of them, and a locally replicated VM is mounted for file-level recovery once.
// Target.Test adds a failover test of the VM. What is opened is closed, after
// a failure too. Nothing else is ever asked of the ZVM: beside the client's
// own requests there are only GETs.
package conformance
