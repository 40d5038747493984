package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const (
	rightConfig = "events {}\nhttp {\n    server { listen 80; root /srv/www; }\n}\n"
	wrongConfig = "events {}\nhttp {\n    server { listen eighty; }\n"
)

// simulated tells the story at a simulated ZVM, which protects the VM within its own site and to another one.
func simulated(ctx context.Context, out io.Writer, vmName, path string) (err error) {
	sim, err := zvmtest.New( //nolint:contextcheck // a simulation is ended by its Close, not by a context
		zvmtest.WithInsertTime(time.Second),
		zvmtest.WithMountTime(500*time.Millisecond),
		zvmtest.WithUnmountTime(200*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer sim.Close()
	local := sim.AddVPG("web-local", zvmtest.VPGConfig{})
	remote := sim.AddVPG("web-remote", zvmtest.VPGConfig{RecoverySite: sim.AddPeerSite("Recovery")})
	guest := sim.AddVM(vmName, local, remote).Guest()
	if err := guest.WriteFile(path, []byte(rightConfig)); err != nil {
		return err
	}

	client, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()))
	if err != nil {
		return err
	}
	err = story{
		client: client, vm: vmName, path: path, out: out,
		before: []byte(rightConfig),
		spoil:  func() error { return guest.WriteFile(path, []byte(wrongConfig)) },
	}.tell(ctx)
	return errors.Join(err, leftBehind(sim))
}

// leftBehind says what the story should not have left or done.
func leftBehind(sim *zvmtest.Server) error {
	if live := sim.LiveFLRSessions(); len(live) > 0 {
		return fmt.Errorf("%d FLR sessions are still open", len(live))
	}
	if problems := sim.Problems(); len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}
