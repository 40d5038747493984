// Command quickstart does what an agent does: it finds the protection of a VM, guards a change, makes the change, and
// takes one file back because the change was wrong.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -zvm https://zvm.example.com -vm web01 -path /etc/hosts
//
// Without -zvm it starts a simulated ZVM in this process. With -zvm it talks to that one, an appliance or "zerto-rewind
// sim", and takes the user, the secret and the trust from the environment variables that zerto-rewind reads.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, cli.OS(), os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, io cli.IO, args []string) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Err)
	url := flags.String("zvm", "", "`URL` of a ZVM, for example https://zvm.example.com; without it one is simulated")
	vm := flags.String("vm", "web01", "`VM` to guard, by name or id")
	path := flags.String("path", "/etc/nginx/nginx.conf", "`file` of the guest to bring back")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *url == "" {
		return simulated(ctx, io.Out, *vm, *path)
	}
	client, err := cli.Connect(io, *url)
	if err != nil {
		return err
	}
	return story{client: client, vm: *vm, path: *path, out: io.Out}.tell(ctx)
}
