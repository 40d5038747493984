package mcpadapter_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const guardTool = "zerto_guard_before_mutate"

func TestGuardReturnsTheRecordOfAProvenGuard(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		record := call[rewind.GuardRecord](t, w.connect(t, era), guardTool, args{"vm": "web01", "action": "upgrade nginx"})

		if record.Proof != rewind.ProofTaskAndJournal || len(record.Checkpoints) != 1 || record.Action != "upgrade nginx" {
			t.Errorf("record = %+v", record)
		}
		if record.Agent != "patch-bot" {
			t.Errorf("agent = %q, want the name of the client", record.Agent)
		}
		if _, err := w.session.Reprove(t.Context(), record); err != nil {
			t.Errorf("the record does not hold: %v", err)
		}
	})
}

func TestGuardNamesTheConfiguredAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record := call[rewind.GuardRecord](t, w.connect(t, eras[0], mcpadapter.WithAgent("night-shift")), guardTool,
		args{"vm": "web01", "action": "x"})
	if record.Agent != "night-shift" {
		t.Errorf("agent = %q", record.Agent)
	}
}

func TestGuardCoversSeveralVMsWithOneChange(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		w.zvm.AddVM("db01", w.zvm.AddVPG("db", zvmtest.VPGConfig{}))
		record := call[rewind.GuardRecord](t, w.connect(t, era), guardTool, args{"vms": []string{"web01", "db01"}, "action": "x"})
		if len(record.VMs) != 2 || len(record.Checkpoints) != 2 {
			t.Errorf("record = %+v", record)
		}
	})
}

func TestGuardsMadeAtOnceShareOneToken(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		const calls = 64
		w := newWorld(t, zvmtest.WithInsertTime(time.Millisecond), zvmtest.WithTokenTTL(time.Hour))
		client := w.connect(t, era)
		results := make([]*mcp.CallToolResult, calls)
		var g errgroup.Group
		for i := range calls {
			g.Go(func() error {
				result, err := client.CallTool(t.Context(), &mcp.CallToolParams{
					Name: guardTool, Arguments: map[string]any{"vm": "web01", "action": "x"},
				})
				results[i] = result
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}

		changes := map[string]bool{}
		for _, result := range results {
			r := structured[rewind.GuardRecord](t, result)
			changes[r.ChangeID] = r.Proof == rewind.ProofTaskAndJournal && len(r.Checkpoints) == 1
		}
		if len(changes) != calls {
			t.Errorf("%d different changes, want %d", len(changes), calls)
		}
		for id, valid := range changes {
			if !valid {
				t.Errorf("change %s has no valid guard", id)
			}
		}
		if n := w.zvm.TokenRequests(); n != 1 {
			t.Errorf("%d token requests, want 1", n)
		}
	})
}

func TestGuardRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args args
		code string
	}{
		{"neither vm nor vms", args{"action": "x"}, "invalid_arguments"},
		{"both vm and vms", args{"vm": "web01", "vms": []string{"web01"}, "action": "x"}, "invalid_arguments"},
		{"an empty list", args{"vms": []string{}, "action": "x"}, "invalid_arguments"},
		{"an empty name in the list", args{"vms": []string{""}, "action": "x"}, "invalid_arguments"},
		{"no action", args{"vm": "web01"}, "invalid_arguments"},
		{"an unknown VM", args{"vm": "web99", "action": "x"}, "not_found"},
	}
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		client := w.connect(t, era)
		for _, tt := range tests {
			if f := refusedCall(t, client, guardTool, tt.args); f.Code != tt.code {
				t.Errorf("code = %s, want %s", f.Code, tt.code)
			}
		}
		if n := w.zvm.Count("POST", "/v1/vpgs/*/checkpoints"); n != 0 {
			t.Errorf("%d inserts were sent", n)
		}
	})
}

func TestAmbiguousVMListsCandidatesToChooseFrom(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		w.zvm.AddVM("web01", w.zvm.AddVPG("web-copy", zvmtest.VPGConfig{}))
		client := w.connect(t, era)

		f := refusedCall(t, client, guardTool, args{"vm": "web01", "action": "x"})
		if f.Code != "ambiguous_vm" || len(f.Candidates) != 2 {
			t.Fatalf("refusal = %+v", f)
		}
		var vpgs []string
		for _, c := range f.Candidates {
			record := call[rewind.GuardRecord](t, client, guardTool, args{"vm": string(c.VM.ID), "action": "x"})
			vpgs = append(vpgs, record.Checkpoints[0].VPGName)
		}
		if diff := cmp.Diff([]string{f.Candidates[0].VPGs[0].VPGName, f.Candidates[1].VPGs[0].VPGName}, vpgs); diff != "" {
			t.Errorf("guarded VPGs (-want +got):\n%s", diff)
		}
	})
}
