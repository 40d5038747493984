// Package zvmtest is a simulated ZVM for tests, as net/http/httptest is a
// simulated web server: a real TLS socket, real tokens, VPGs with journals,
// tasks that take their time, and guests whose files can be had back as they
// were at any checkpoint.
//
//	func TestMyAgent(t *testing.T) {
//		s := zvmtest.Start(t, zvmtest.WithProfile(zvmtest.Quick))
//		vpg := s.AddVPG("web", zvmtest.VPGConfig{})
//		vm := s.AddVM("web01", vpg)
//		err := vm.Guest().WriteFile("/etc/app.conf", []byte("before"))
//		…
//		client := …                     // s.URL(), s.CertPool(), s.Username(), s.Password()
//		…                               // let the agent do its work
//		if n := s.TokenRequests(); n != 1 { … }
//	}
//
// # Inventory
//
// A server has a local site and any number of peers. AddVPG makes a local VPG
// unless its configuration names another site; AddVM puts a VM into one to
// three of them. The handles steer what the API shows from then on: a VPG
// falls into bitmap sync, loses a checkpoint, is resynchronised or is busy
// with somebody else's insert; a VM's Guest is written to, and MountDir shows a
// directory of this computer in it. WithInventory reads all of it from a JSON
// document instead, and VMs and VPGs give the handles. WithUser and
// WithServiceClient add accounts with the roles that there are.
//
// StartPeer starts the ZVM of a peer beside it, which lists the VPGs that
// recover there and serves file-level recovery for them.
//
// # Time
//
// Tasks are state and a due time. Nothing sleeps: what is due by the server's
// clock has happened when anybody looks. The clock is time.Now, or with
// WithManualClock one that Advance moves, so that a test of a 30-second
// insert takes no time. Only scripted delays and hangs are real time.
//
// Automatic checkpoints are computed from the clock and never stored. A
// journal of 30 days costs nothing until it is listed. A tagged checkpoint
// holds the guests as they were when its task was done: a change that was made
// after it, in the same instant of a manual clock too, is not in it.
//
// # The wire
//
// The server answers as a 10.9 appliance does where that is known, and as the
// documents say where it is not. Where those leave a choice, a Switch turns
// to the other side: Switch has the table. WithProfile(Hostile) turns them by
// the seed.
//
// Routes match in any case, as do the names in queries and bodies. A call of
// an operation that a rewind must never send, such as live failover, is
// answered 403; one that the server does not know is answered 501; and both
// fail the test that called Start. Support lists what there is.
//
// # Faults
//
// On scripts what happens to requests: an answer, a cut before or after the
// work was done, a hang, a body that is truncated or drips. ScriptTask scripts how the next
// task of a type ends. Both are exact: nothing is random, and a script that did not run
// fails the test.
//
// # Evidence
//
// Requests, Count, MaxInFlight and TokenRequests tell what was sent, and
// WithOnRequest as it happens; VPG.MaxInFlight tells how many inserts ran at
// one VPG at a time; LiveFLRSessions, LiveTests and Clones what was left open. Every secret that
// the server knows or hands out begins with "MARKER-", so that a test can
// search logs and outputs for it.
//
// # As a process
//
// The command "zerto-rewind sim" runs a Server for any client in any language,
// with flags for the options that matter there: --inventory, --guest,
// --profile, --seed, --token-ttl, --insert-time and --keycloak. A program that
// runs one for long bounds its log by WithRequestLog, and hands out the
// authority by CAFile.
package zvmtest
