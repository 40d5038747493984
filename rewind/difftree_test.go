package rewind_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const (
	download = "/v1/flrs/*/download"
	browse   = "/v1/flrs/*/browse"
)

// reasons are those of a difference, by path.
func reasons(d *rewind.Difference) map[string]string {
	m := map[string]string{}
	for _, u := range d.Unread {
		m[u.Path] = u.Reason
	}
	return m
}

// A backslash is a letter on Linux and no part of a session's path: systemd escapes with it.
func TestDiffComparesByTheListWhatCannotBeAPathInASession(t *testing.T) {
	t.Parallel()
	if !tellsAll() {
		return // the list itself may tell nothing to compare
	}
	w := newWorld(t)
	guest := w.web.Guest()
	for _, path := range []string{`/etc/systemd/snap-kept\x2da.mount`, `/etc/systemd/snap-edited\x2db.mount`, `/etc/od\d/below`} {
		must(t, guest.WriteFile(path, []byte("x")))
	}
	before, after := w.twice(t, func(g *zvmtest.Guest) {
		must(t, g.WriteFile("/etc/new", []byte("n")))
		must(t, g.WriteFile(`/etc/n\ew`, []byte("n")))
		must(t, g.WriteFile(`/etc/systemd/snap-edited\x2db.mount`, []byte("longer")))
		must(t, g.WriteFile(`/etc/od\d/new`, nil))
	})
	d, err := w.Diff(t.Context(), before, after, "/etc", rewind.WithContents())
	must(t, err)
	want := strings.Join([]string{
		`+ n\ew`, "+ new", `~ systemd/snap-edited\x2db.mount size,written`, `? od\d`, `? systemd/snap-kept\x2da.mount`,
	}, "\n")
	if diff := cmp.Diff(want, told(d)); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	const reason = "its path cannot be asked for in an FLR session"
	if diff := cmp.Diff(map[string]string{`od\d`: reason, `systemd/snap-kept\x2da.mount`: reason}, reasons(d)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if a := d.Added[0]; a.Unread != reason || a.SHA256 != "" || a.Bytes == nil || *a.Bytes != 1 {
		t.Errorf("added without having been read: %+v", a)
	}
	if d.Same != 1 || d.Complete { // nginx/nginx.conf
		t.Errorf("same %d, complete %t, want 1 and false for a folder that was not listed", d.Same, d.Complete)
	}
	w.nothingMounted(t)
}

func TestDiffGoesOnWithoutAFileThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"with 400": 400, "with 500": 500} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			must(t, w.web.Guest().WriteFile("/data/kept", []byte("x")))
			must(t, w.web.Guest().WriteFile("/data/size", []byte("x")))
			before, after := w.twice(t, func(g *zvmtest.Guest) { must(t, g.WriteFile("/data/size", []byte("longer"))) })
			w.sim.On("POST", download).After(2).Always().Status(status, `{"Message":"scripted: encrypted"}`)
			d, err := w.Diff(t.Context(), before, after, "/data")
			must(t, err)
			by := "size,written"
			if !tellsAll() {
				by = "size"
			}
			if diff := cmp.Diff("~ size "+by+"\n? kept", told(d)); diff != "" || d.Same != 0 || !d.Complete {
				t.Errorf("same %d, complete %t, difference (-want +got):\n%s", d.Same, d.Complete, diff)
			}
			if r := reasons(d)["kept"]; r != "scripted: encrypted" || d.Changed[0].After.Unread != r {
				t.Errorf("reasons %q and %q", r, d.Changed[0].After.Unread)
			}
			w.nothingMounted(t)
		})
	}
}

// What is below a folder that was listed on one side alone was neither added nor removed.
func TestDiffGoesOnWithoutAFolderThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after bool
		want          string
	}{
		"before the change": {true, false, "+ first/new\n? second\n? second/deep\n? second/deep/kept\n? second/new"},
		"after the change":  {false, true, "+ first/new\n? second\n? second/deep\n? second/deep/kept\n? second/gone"},
		"throughout":        {true, true, "+ first/new\n? second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			must(t, w.web.Guest().WriteFile("/data/first/kept", []byte("x")))
			must(t, w.web.Guest().WriteFile("/data/second/gone", []byte("x")))
			must(t, w.web.Guest().WriteFile("/data/second/deep/kept", []byte("x")))
			before, after := w.twice(t, func(g *zvmtest.Guest) {
				must(t, g.WriteFile("/data/first/new", nil))
				must(t, g.WriteFile("/data/second/new", nil))
				must(t, g.Remove("/data/second/gone"))
			})
			start := w.sim.Count("POST", browse)
			_, err := w.Diff(t.Context(), before, after, "/data")
			must(t, err)
			// Each side ends with the listing of second, and then of deep.
			side := (w.sim.Count("POST", browse) - start) / 2
			const refusal = `{"Message":"scripted: damaged"}`
			seen := side
			if tt.before {
				w.sim.On("POST", browse).After(side-2).Status(500, refusal)
				seen -= 2 // deep is not asked for, and what one fault takes the next does not count
			}
			if tt.after {
				w.sim.On("POST", browse).After(seen+side-2).Status(400, refusal)
			}
			d, err := w.Diff(t.Context(), before, after, "/data")
			must(t, err)
			if diff := cmp.Diff(tt.want, told(d)); diff != "" || d.Complete || d.Same != 1 {
				t.Errorf("complete %t, same %d, difference (-want +got):\n%s", d.Complete, d.Same, diff)
			}
			if r := reasons(d)["second"]; r != "scripted: damaged" {
				t.Errorf("reason %q", r)
			}
			w.nothingMounted(t)
		})
	}
}

// A server may refuse everything in a session that is gone, or about to go, as it refuses one item.
func TestDiffEndsWhenItIsTheSessionThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]struct {
		status     int
		body, says string
	}{
		"the session is not known":   {500, `{"Message":"scripted: no such session"}`, "no such session"},
		"the session is being ended": {200, `{"FlrSessionIdentifier":"%s","FlrSessionStatus":"UnmountInProgress"}`, "UnmountInProgress"},
	} {
		for what, pattern := range map[string]string{"a file": download, "a folder": browse} {
			t.Run(what+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
					if e.Stage == rewind.StageDownloading && e.Bytes == 0 {
						body := strings.Replace(look.body, "%s", string(e.Session), 1)
						w.sim.On("GET", "/v1/flrs/"+string(e.Session)).Always().Status(look.status, body)
						w.sim.On("POST", pattern).Always().Status(500, `{"Message":"scripted"}`)
					}
				}))
				g, err := s.Protect(t.Context(), "web01", rewind.Change{})
				must(t, err)
				// The top of a session is listed without having been looked for.
				d, err := s.Diff(t.Context(), g, g, "/")
				if err == nil || !strings.Contains(err.Error(), look.says) || d != nil || w.sim.Count("POST", "/v1/flrs") != 1 {
					t.Errorf("got %+v, %v after %d mounts", d, err, w.sim.Count("POST", "/v1/flrs"))
				}
				w.nothingMounted(t)
			})
		}
	}
}

func TestDiffEndsWithWhatConcernsEverything(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lay  func(*world)
		want error // nil for any
	}{
		"a login that is refused":    {func(w *world) { w.sim.On("POST", download).Always().Status(401, "") }, zvm.ErrUnauthorized},
		"a user who may not":         {func(w *world) { w.sim.On("POST", download).Always().Status(403, "") }, zvm.ErrForbidden},
		"a session that is gone":     {func(w *world) { w.sim.On("POST", download).Always().Status(404, "") }, zvm.ErrNotFound},
		"a server that is not ready": {func(w *world) { w.sim.On("POST", download).Always().Status(503, "") }, zvm.ErrUnavailable},
		"a lost connection":          {func(w *world) { w.sim.On("POST", download).Always().CutBefore() }, zvm.ErrUnavailable},
		"a listing that is refused to this user": {
			func(w *world) { w.sim.On("POST", browse).After(4).Always().Status(403, "") }, zvm.ErrForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.guard(t, "web01")
			tt.lay(w)
			if d, err := w.Diff(t.Context(), g, g, "/etc"); !errors.Is(err, tt.want) || d != nil {
				t.Errorf("got %+v, %v, want %v alone", d, err, tt.want)
			}
		})
	}
}

func TestDiffEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	w.sim.On("POST", download).Always().Hang()
	if d, err := w.Diff(w.untilSeen(t, "POST", download), g, g, "/etc"); !errors.Is(err, context.Canceled) || d != nil {
		t.Errorf("got %+v, %v", d, err)
	}
	w.nothingMounted(t)
}

func TestDiffReadsFoldersHoweverDeepTheyLie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deep := strings.Repeat("/d", 130)
	must(t, w.web.Guest().WriteFile("/srv"+deep+"/f", []byte("x")))
	before, after := w.twice(t, func(g *zvmtest.Guest) {
		must(t, g.Remove("/srv"+deep+"/f"))
		must(t, g.WriteFile("/srv"+deep+"/new", nil))
	})
	d, err := w.Diff(t.Context(), before, after, "/srv")
	must(t, err)
	want := fmt.Sprintf("+ %[1]s/new\n- %[1]s/f", deep[1:])
	if diff := cmp.Diff(want, told(d)); diff != "" || !d.Complete || d.Before.Items != 132 {
		t.Errorf("complete %t of %d items, difference (-want +got):\n%s", d.Complete, d.Before.Items, diff)
	}
}
