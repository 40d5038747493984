package main

import (
	"context"
	"log"
	"os"
)

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Print(err)
	}
	// Output:
	// find     web01 can be guarded: true
	// change   turned down by the proxy: no guard
	// guard    1 checkpoints, proof task+journal
	// change   ran: server { listen eighty; }
	// recover  as it was: server { listen 80; } (unmounted: true)
}
