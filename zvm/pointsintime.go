package zvm

import (
	"context"
	"net/http"
)

// PointInTime is a checkpoint as one VM sees it (zvm-wire 2.7).
type PointInTime struct {
	Checkpoint Checkpoint
	// CanMount is whether the server would mount the VM from here; nil when it does not say.
	CanMount *bool
	Reason   string // why it would not, in the server's words
}

type wirePointInTime struct {
	Checkpoint *wireCheckpoint
	CanMount   *struct {
		IsAllowed *bool
		Reason    string
	}
}

func (w wirePointInTime) pointInTime() (PointInTime, error) {
	var p PointInTime
	if w.Checkpoint != nil {
		cp, err := w.Checkpoint.checkpoint()
		if err != nil {
			return PointInTime{}, err
		}
		p.Checkpoint = cp
	}
	if w.CanMount != nil {
		p.CanMount, p.Reason = w.CanMount.IsAllowed, w.CanMount.Reason
	}
	return p, nil
}

// ListPointsInTime returns the checkpoints of a VM in one VPG within a window, with whether each can be mounted. Rows
// without a checkpoint, such as retention sets, are left out.
func (c *Client) ListPointsInTime(ctx context.Context, vm VMID, vpg VPGID, window Window) ([]PointInTime, error) {
	path, err := apiPath("v1", "vms", string(vm), "pointsInTime")
	if err != nil {
		return nil, err
	}
	q := window.query()
	setNonEmpty(q, "vpgIdentifier", string(vpg))
	cl := call{op: "ListPointsInTime", method: http.MethodGet, path: path, query: q}
	return list(ctx, c, cl, wirePointInTime.pointInTime, func(p PointInTime) bool {
		return p.Checkpoint.ID != "" && (p.Checkpoint.Time.Raw != "" || window.Contains(p.Checkpoint.Time.Time))
	})
}
