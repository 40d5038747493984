// Package task knows what a Zerto task is and how one waits for it.
//
// Every write to a Zerto server answers with a task id, never with a result: the answer means that the work is queued.
// Only the task's [State] tells how it ended. [Wait] looks until it does:
//
//	st, err := task.Wait(ctx, client, id)
//
// The package knows nothing of HTTP. It needs a [Getter], and learns from an error's behaviour (methods NotFound and
// Temporary) whether to look again.
package task
