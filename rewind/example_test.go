package rewind_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// The whole loop: guard a change, make it, and take it back. The ZVM is simulated; a real one differs in the address and
// the credentials alone.
func Example() {
	sim, err := zvmtest.New(quick...)
	if err != nil {
		log.Fatal(err)
	}
	defer sim.Close()
	web01 := sim.AddVM("web01", sim.AddVPG("web-local", zvmtest.VPGConfig{}))
	if err := web01.Guest().WriteFile("/etc/nginx/nginx.conf", []byte("listen 80;")); err != nil {
		log.Fatal(err)
	}

	loop := func(ctx context.Context) error {
		client, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()))
		if err != nil {
			return err
		}
		s, err := rewind.NewSession(client, rewind.WithAgent("patch-bot"))
		if err != nil {
			return err
		}
		guard, err := s.Protect(ctx, "web01", rewind.Change{Action: "upgrade nginx"})
		if err != nil {
			return err // not guarded: do not change anything
		}
		fmt.Println("guarded, proof:", guard.Record().Proof)

		// The change goes wrong.
		if err := web01.Guest().WriteFile("/etc/nginx/nginx.conf", []byte("oops")); err != nil {
			return err
		}
		r, err := s.Recover(ctx, guard, "/etc/nginx/nginx.conf", rewind.ToWriter(os.Stdout))
		if err != nil {
			return err
		}
		fmt.Printf("\n%d bytes of %s are back, unmounted: %t\n", r.Bytes, r.GuestPath, r.Unmounted)
		return nil
	}
	if err := loop(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// guarded, proof: task+journal
	// listen 80;
	// 10 bytes of Volume1-Ext4/etc/nginx/nginx.conf are back, unmounted: true
}
