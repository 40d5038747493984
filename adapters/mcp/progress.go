package mcpadapter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// watch returns a session that tells a client that asked for progress of each stage at once, and again and again that the
// call is under way. The function it returns ends that, and returns when no more notification will follow: none may come
// after the answer.
func (t *toolset) watch(ctx context.Context, request *mcp.CallToolRequest, title string) (session *rewind.Session, stop func()) {
	token := request.Params.GetProgressToken()
	if token == nil || request.Session == nil {
		return t.session, func() {}
	}
	stages := make(chan string, 1)
	session, err := t.session.With(rewind.WithProgress(func(e rewind.Event) {
		select {
		case <-stages: // only the latest is worth telling
		default:
		}
		select {
		case stages <- stageText(e):
		default:
		}
	}))
	if err != nil {
		session = t.session
	}
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { t.tell(ctx, request, title, stages) })
	return session, func() {
		cancel()
		telling.Wait()
	}
}

func (t *toolset) tell(ctx context.Context, request *mcp.CallToolRequest, title string, stages <-chan string) {
	start := time.Now()
	ticker := time.NewTicker(t.heartbeat)
	defer ticker.Stop()
	stage := ""
	for {
		select {
		case <-ctx.Done():
			return
		case stage = <-stages:
		case <-ticker.C:
		}
		spent := time.Since(start)
		message := fmt.Sprintf("%s: under way for %v", title, spent.Round(time.Second))
		if stage != "" {
			message += ", " + stage
		}
		err := request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: request.Params.GetProgressToken(), Progress: spent.Seconds(), Message: message,
		})
		if err != nil {
			return
		}
	}
}

// bytesText says how far a download has come, once it has begun to.
func bytesText(e rewind.Event) string {
	switch {
	case e.Bytes == 0:
		return ""
	case e.Total < 0:
		return fmt.Sprintf(", %d bytes so far at %.0f bytes/s", e.Bytes, e.Rate)
	}
	return fmt.Sprintf(", %d of %d bytes at %.0f bytes/s", e.Bytes, e.Total, e.Rate)
}

// stageText says what a stage is, in our words alone: names are the server's and the guest's.
func stageText(e rewind.Event) string {
	switch e.Stage {
	case rewind.StageFound:
		return "found the VM's protection"
	case rewind.StageInserting:
		return "inserting a tagged checkpoint"
	case rewind.StageTask:
		return "the insert's task is " + e.Task.State.String()
	case rewind.StageListed:
		return "the tag stands in the journal"
	case rewind.StageProven:
		return "the guard is proven"
	case rewind.StageMounting:
		return "mounting the checkpoint"
	case rewind.StageMounted:
		return "the checkpoint is mounted"
	case rewind.StageDownloading:
		return "downloading" + bytesText(e)
	case rewind.StageDownloaded:
		return fmt.Sprintf("all %d bytes have arrived", e.Bytes)
	case rewind.StageUnmounted:
		return "the session is closed"
	}
	return string(e.Stage)
}
