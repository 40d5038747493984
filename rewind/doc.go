// Package rewind lets an agent change a virtual machine and take the change back.
//
// The loop: find the VM's protection, guard the change, make it, and recover from exactly the guard's point if it went
// wrong.
//
//	s, err := rewind.NewSession(client, rewind.WithAgent("patch-bot"))
//	g, err := s.Protect(ctx, "web01", rewind.Change{Action: "upgrade nginx"})
//	// ... the change ...
//	r, err := s.Recover(ctx, g, "/etc/nginx/nginx.conf", rewind.ToFile("nginx.conf"))
//
// A [Guard] is a proof: it exists only after every protecting VPG's task was read as Completed and every tagged
// checkpoint was read back from its journal. The journals are the store of truth: [Session.Guards] and
// [Session.FindGuard] find guards again without any state of their own, in another process, after a crash.
//
// Nothing here can fail over, move, commit, roll back, restore over, edit or delete anything.
package rewind
