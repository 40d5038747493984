package mcpadapter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const diffTool = "zerto_diff"

type differed struct {
	rewind.Difference

	More     int
	NextStep string
	LeftOpen *struct{ What, ID, Command string }
}

// told is a difference in short.
func (d differed) told() string {
	var all []string
	for _, i := range d.Added {
		all = append(all, "+"+i.Path)
	}
	for _, i := range d.Removed {
		all = append(all, "-"+i.Path)
	}
	for _, i := range d.Changed {
		all = append(all, "~"+i.Path)
	}
	for _, i := range d.Unread {
		all = append(all, "?"+i.Path)
	}
	return strings.Join(all, " ")
}

// differing guards a VM whose guest is then changed.
func (w *world) differing(t *testing.T) (changeID string) {
	t.Helper()
	guest := w.vm.Guest()
	must(t, guest.WriteFile("/srv/gone", []byte("x")))
	must(t, guest.WriteFile("/srv/kept", []byte("x")))
	change := w.guarded(t, "/srv/edited", []byte("before"))
	must(t, guest.WriteFile("/srv/edited", []byte("after")))
	must(t, guest.WriteFile("/srv/new", []byte("x")))
	must(t, guest.Remove("/srv/gone"))
	return change
}

func TestDiffTellsWhatCameToDifferBetweenTwoChanges(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		change := w.differing(t)
		later := w.guarded(t, "/elsewhere", nil)
		tags := len(w.vpg.TaggedCheckpoints())
		d := call[differed](t, w.connect(t, era), diffTool, args{"changeId": change, "to": later, "path": "/srv", "vm": "web01"})
		if diff := cmp.Diff("+new -gone ~edited", d.told()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if d.Before.ChangeID != change || d.After.ChangeID != later || d.Same != 1 || !d.Complete || d.More != 0 ||
			d.Changed[0].Before.SHA256 == "" || strings.Contains(d.NextStep, "Not everything") {
			t.Errorf("result = %+v", d)
		}
		if n := len(w.vpg.TaggedCheckpoints()); n != tags {
			t.Errorf("%d tagged checkpoints after %d", n, tags)
		}
		w.requireClosed(t)
	})
}

func TestDiffWithoutALaterChangeGuardsTheVMInTheClientsName(t *testing.T) {
	t.Parallel()
	for agent, opts := range map[string][]mcpadapter.Option{"patch-bot": nil, "given": {mcpadapter.WithAgent("given")}} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			change := w.differing(t)
			d := call[differed](t, w.connect(t, eras[1], opts...), diffTool, args{"changeId": change, "path": "/srv"})
			if d.told() != "+new -gone ~edited" || d.After.ChangeID == change || !strings.HasPrefix(d.After.Tag, "ai:"+agent+" | ") {
				t.Errorf("result = %+v", d)
			}
			w.requireClosed(t)
		})
	}
}

func TestDiffWithoutALaterChangeSaysThatItIsTheComparisonThatIsNotGuarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change := w.differing(t)
	w.zvm.On("POST", "/v1/vpgs/*/checkpoints").Status(403, `{"Message":"scripted"}`)
	f := refusedCall(t, w.connect(t, eras[0]), diffTool, args{"changeId": change, "path": "/srv"})
	if f.Code != "partial_guard" || f.NotDone != "Nothing was compared." || f.ChangeID == "" || f.ChangeID == change {
		t.Errorf("refusal = %+v", f)
	}
}

func TestDiffOfMuchSaysHowMuchItLeavesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change := w.guarded(t, "/srv/f", nil)
	for i := range 250 {
		must(t, w.vm.Guest().WriteFile(fmt.Sprintf("/srv/%03d", i), nil))
	}
	d := call[differed](t, w.connect(t, eras[0]), diffTool, args{"changeId": change, "path": "/srv"})
	if len(d.Added) != 200 || d.More != 50 || !strings.Contains(d.NextStep, "Not everything") {
		t.Errorf("%d added and %d more, next step %q", len(d.Added), d.More, d.NextStep)
	}
}

func TestDiffRefusesWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change := w.guarded(t, "/f", nil)
	client := w.connect(t, eras[0])
	for want, a := range map[string]args{
		"path_not_found":    {"changeId": change, "to": change, "path": "/none"},
		"not_found":         {"changeId": change, "to": "none", "path": "/"},
		"invalid_arguments": {"changeId": change, "path": "/", "since": "1h"},
	} {
		if f := refusedCall(t, client, diffTool, a); f.Code != want {
			t.Errorf("%v: refusal = %+v", a, f)
		}
	}
	w.requireClosed(t)
}

func TestAPathThatMayHaveBeenThereIsNotToldToBeMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.guarded(t, "/f", []byte("first"))
	if err := w.vm.Guest().AddPartition("Volume2-Ext4", "/data", zvmtest.Ext4); err != nil {
		t.Fatal(err)
	}
	after := w.guarded(t, "/data/made", []byte("second"))
	client := w.connect(t, eras[0])
	for tool, a := range map[string]args{
		diffTool:    {"changeId": before, "to": after, "path": "/data/made", "vm": "web01"},
		recoverTool: {"changeId": before, "path": "/data/made"},
	} {
		if f := refusedCall(t, client, tool, a); !strings.Contains(f.Message, "Do not take it for missing") {
			t.Errorf("%s: refusal = %+v", tool, f)
		}
	}
}
