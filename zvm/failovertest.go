package zvm

import (
	"context"
	"errors"
	"net/http"
)

// StartFailoverTest starts a failover test of the given VMs at exactly the given checkpoint and returns its task
// (zvm-wire 7.1). Both are required: a server takes a missing checkpoint for the latest and missing VMs for all. When
// the answer is lost the error matches [ErrOutcomeUnknown].
func (c *Client) StartFailoverTest(ctx context.Context, vpg VPGID, checkpoint CheckpointID, vms []VMID) (TaskID, error) {
	path, err := apiPath("v1", "vpgs", string(vpg), "FailoverTest")
	if err != nil {
		return "", err
	}
	if checkpoint == "" || len(vms) == 0 {
		return "", errors.New("zvm: a failover test needs a checkpoint and VMs")
	}
	return c.startTask(ctx, call{
		op: "StartFailoverTest", method: http.MethodPost, path: path,
		body: struct {
			Checkpoint CheckpointID `json:"checkpointIdentifier"`
			VMs        []VMID       `json:"vmIdentifiers"`
		}{checkpoint, vms},
	})
}

// StopFailoverTest stops the failover test of a VPG, with its result and a summary for the site's records, and returns
// its task. When the answer is lost the error matches [ErrOutcomeUnknown].
func (c *Client) StopFailoverTest(ctx context.Context, vpg VPGID, success bool, summary string) (TaskID, error) {
	path, err := apiPath("v1", "vpgs", string(vpg), "FailoverTestStop")
	if err != nil {
		return "", err
	}
	return c.startTask(ctx, call{
		op: "StopFailoverTest", method: http.MethodPost, path: path,
		body: struct {
			Success bool   `json:"failoverTestSuccess"`
			Summary string `json:"failoverTestSummary"`
		}{success, summary},
	})
}
