// Command zerto-rewind guards changes to virtual machines and takes them back.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(cli.Run(ctx, cli.OS(), os.Args[1:]))
}
