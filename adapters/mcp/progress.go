package mcpadapter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// beat tells a client that asked for progress, again and again, that the call is under way. The function it returns ends
// that, and returns when no more notification will follow: none may come after the answer.
func (t *toolset) beat(ctx context.Context, request *mcp.CallToolRequest, title string) (stop func()) {
	token := request.Params.GetProgressToken()
	if token == nil || request.Session == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() {
		start := time.Now()
		ticker := time.NewTicker(t.heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			spent := time.Since(start)
			err := request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token,
				Progress:      spent.Seconds(),
				Message:       fmt.Sprintf("%s: under way for %v", title, spent.Round(time.Second)),
			})
			if err != nil {
				return
			}
		}
	})
	return func() {
		cancel()
		beating.Wait()
	}
}
