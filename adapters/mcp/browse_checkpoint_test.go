package mcpadapter_test

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const browseTool = "zerto_browse_checkpoint"

type browsed struct {
	ChangeID, VM, VPGID, CheckpointID, GuestPath, NextStep string

	Items []struct {
		Path, Type, Written, Reason string
		Bytes                       *int64
		Downloadable                bool
	}
	More                int
	Complete, Unmounted bool
	LeftOpen            *struct{ What, ID, Command string }
}

func (b browsed) names() []string {
	var all []string
	for _, i := range b.Items {
		all = append(all, path.Base(i.Path))
	}
	return all
}

func TestBrowseListsTheFolderAsItWas(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		must(t, w.vm.Guest().Symlink("a", "/srv/link"))
		must(t, w.vm.Guest().Mkdir("/srv/sub"))
		change := w.guarded(t, "/srv/a", []byte("before"))
		must(t, w.vm.Guest().WriteFile("/srv/late", nil))
		client := w.connect(t, era)
		r := call[browsed](t, client, browseTool, args{"changeId": change, "path": "/srv", "vm": "web01"})
		if diff := cmp.Diff([]string{"a", "link", "sub"}, r.names()); diff != "" {
			t.Fatalf("items (-want +got):\n%s", diff)
		}
		a, link, sub := r.Items[0], r.Items[1], r.Items[2]
		if *a.Bytes != 6 || a.Written == "" || !a.Downloadable || link.Downloadable || link.Reason == "" || sub.Bytes != nil {
			t.Errorf("items = %+v", r.Items)
		}
		if r.ChangeID != change || r.VM != "web01" || r.VPGID == "" || r.CheckpointID == "" || r.More != 0 || !r.Complete || !r.Unmounted ||
			!strings.Contains(r.NextStep, recoverTool) || strings.Contains(r.NextStep, "Not every") {
			t.Errorf("result = %+v", r)
		}
		file := call[recovered](t, client, recoverTool, args{"changeId": change, "path": a.Path})
		if file.Content != "before" {
			t.Errorf("the listed path brings %q", file.Content)
		}
		if roots := call[browsed](t, client, browseTool, args{"changeId": change, "path": "/"}); len(roots.Items) != 1 || roots.Items[0].Type != "Partition" {
			t.Errorf("partitions = %+v", roots.Items)
		}
		w.requireClosed(t)
	})
}

func TestBrowseOfALargeFolderSaysHowMuchItLeavesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.vm.Guest().WriteManyFiles("/many", 500))
	r := call[browsed](t, w.connect(t, eras[0]), browseTool, args{"changeId": w.guarded(t, "/f", nil), "path": "/many"})
	if len(r.Items) != 200 || r.More != 300 || !strings.Contains(r.NextStep, "Not every item") {
		t.Errorf("%d items and %d more, next step %q", len(r.Items), r.More, r.NextStep)
	}
}

func TestBrowseRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change := w.guarded(t, "/f", nil)
	client := w.connect(t, eras[0])
	for want, a := range map[string]args{
		"path_not_found":    {"changeId": change, "path": "/none"},
		"not_found":         {"changeId": "none", "path": "/"},
		"invalid_arguments": {"changeId": change, "path": ""},
	} {
		if f := refusedCall(t, client, browseTool, a); f.Code != want {
			t.Errorf("%v: refusal = %+v", a, f)
		}
	}
	w.requireClosed(t)
}

func TestAListingIsNoFailureWhenItsSessionStaysOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change := w.guarded(t, "/f", nil)
	w.zvm.On("DELETE", "/v1/flrs/*").Status(403, `{"Message":"scripted"}`).Always()
	r := call[browsed](t, w.connect(t, eras[0]), browseTool, args{"changeId": change, "path": "/"})
	if len(r.Items) != 1 || r.Unmounted || r.LeftOpen == nil || r.LeftOpen.Command == "" || !strings.Contains(r.NextStep, "leftOpen") {
		t.Errorf("result = %+v", r)
	}
}

// A name that hides or reorders text reaches a client exactly, and nowhere in a form that a person cannot see.
func TestNamesThatCannotBeSeenAreEscaped(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		hostile := []string{"bidi\u202etxt", "esc\x1b[2J", "line\nforged", "tag\U000e0041\U000e0042", "zero\u200bwidth"}
		for _, name := range hostile {
			must(t, w.vm.Guest().WriteFile("/in/"+name, []byte("x")))
		}
		change := w.guarded(t, "/in/\u00fcber", nil)
		client := w.connect(t, era)
		result := callAny(t, client, browseTool, args{"changeId": change, "path": "/in"})
		if diff := cmp.Diff(append(hostile, "\u00fcber"), structured[browsed](t, result).names()); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		shown := result.Content[0].(*mcp.TextContent).Text
		for _, hidden := range []string{"\u202e", "\x1b", "\n", "\U000e0041", "\u200b"} {
			if strings.Contains(shown, hidden) {
				t.Errorf("the text holds %q", hidden)
			}
		}
		if !strings.Contains(shown, "\u00fcber") || !strings.Contains(shown, `tag\udb40\udc41\udb40\udc42`) {
			t.Errorf("text = %s", shown)
		}
		r := call[recovered](t, client, recoverTool, args{"changeId": change, "path": "/in/" + hostile[3]})
		if r.Content != "x" {
			t.Errorf("content = %q", r.Content)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
