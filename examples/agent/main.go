// Command agent shows an agent at work behind the proxy. Its SSH server runs whatever it is told; the proxy before that
// server lets nothing change a VM that is not guarded. The agent is turned down, guards the VM, makes its change, and takes
// it back.
//
//	go run ./examples/agent
//
// The ZVM and the VM are simulated in this process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	w, err := newWorld() //nolint:contextcheck // a simulation is ended by its Close, not by a context
	if err != nil {
		return err
	}
	defer w.sim.Close()
	session, err := rewind.NewSession(w.client)
	if err != nil {
		return err
	}
	rewindServer, err := mcpadapter.NewServer(session)
	if err != nil {
		return err
	}
	loop, err := connect(ctx, rewindServer)
	if err != nil {
		return err
	}
	defer loop.Close() //nolint:errcheck // its server ends with this process
	ssh, closeSSH, err := w.throughProxy(ctx, session)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSSH()) }()
	return agent{loop: loop, ssh: ssh, out: out}.work(ctx)
}

// agent is what a model would decide, written down.
type agent struct {
	loop, ssh *mcp.ClientSession
	out       io.Writer
}

func (a agent) work(ctx context.Context) error {
	protection, err := call[struct {
		Protected bool `json:"protected"`
	}](ctx, a.loop, "zerto_find_protection", args{"vm": vmName})
	if err != nil {
		return err
	}
	a.say("find     %s can be guarded: %t", vmName, protection.Protected)

	change := args{"server": vmName, "command": "sed -i s/80/eighty/ " + configPath}
	if _, err := call[struct{}](ctx, a.ssh, "ssh_execute", change); err == nil {
		return errors.New("the change ran without a guard")
	}
	a.say("change   turned down by the proxy: no guard")

	guard, err := call[struct {
		ChangeID    string `json:"changeId"`
		Proof       string `json:"proof"`
		Checkpoints []any  `json:"checkpoints"`
	}](ctx, a.loop, "zerto_guard_before_mutate", args{"vm": vmName, "action": "edit " + configPath})
	if err != nil {
		return err
	}
	a.say("guard    %d checkpoints, proof %s", len(guard.Checkpoints), guard.Proof)

	if _, err := call[struct{}](ctx, a.ssh, "ssh_execute", change); err != nil {
		return err
	}
	now, err := call[struct {
		Output string `json:"output"`
	}](ctx, a.ssh, "ssh_execute", args{"server": vmName, "command": "cat " + configPath})
	if err != nil {
		return err
	}
	a.say("change   ran: %s", now.Output)

	file, err := call[struct {
		Content   string `json:"content"`
		Unmounted bool   `json:"unmounted"`
	}](ctx, a.loop, "zerto_recover_file", args{"vm": vmName, "changeId": guard.ChangeID, "path": configPath})
	if err != nil {
		return err
	}
	a.say("recover  as it was: %s (unmounted: %t)", file.Content, file.Unmounted)
	return nil
}

func (a agent) say(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }
