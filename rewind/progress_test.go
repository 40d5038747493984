package rewind_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// downloads keeps the events that tell of bytes.
type downloads struct {
	mu     sync.Mutex
	events []rewind.Event
}

func (d *downloads) take(e rewind.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.Stage == rewind.StageDownloading || e.Stage == rewind.StageDownloaded {
		d.events = append(d.events, e)
	}
}

// check fails unless the events start at nothing, grow, and end with the whole.
func (d *downloads) check(t *testing.T, total, whole int64) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.events) < 2 {
		t.Fatalf("told of %+v", d.events)
	}
	for i, e := range d.events {
		first, last := i == 0, i == len(d.events)-1
		switch {
		case first && (e.Bytes != 0 || e.Rate != 0), !first && !last && e.Bytes <= d.events[i-1].Bytes:
			t.Errorf("event %d is %+v after %+v", i, e, d.events[max(0, i-1)])
		case last && (e.Stage != rewind.StageDownloaded || e.Bytes != whole || e.Total != whole):
			t.Errorf("the last event is %+v, want all %d bytes", e, whole)
		case !last && (e.Stage != rewind.StageDownloading || e.Total != total):
			t.Errorf("event %d is %+v, want a total of %d", i, e, total)
		case e.Session == "" || !first && e.Rate <= 0:
			t.Errorf("event %d is %+v", i, e)
		}
	}
}

// A download whose watcher does not return goes on: here it does not until every byte has arrived.
func TestProgressOfADownloadNeverHoldsUpItsBytes(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	w := newWorld(t)
	must(t, w.web.Guest().WriteZeros("/big", size))
	var told downloads
	half, all := make(chan struct{}), make(chan struct{})
	var once sync.Once
	_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
		told.take(e)
		if e.Stage == rewind.StageDownloading && e.Bytes > 0 {
			once.Do(func() { close(half) })
			<-all
		}
	}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	written := 0
	_, err = s.Recover(t.Context(), g, "/big", rewind.ToWriter(writerFunc(func(b []byte) (int, error) {
		if written > 0 {
			<-half
		}
		if written += len(b); written == size {
			close(all)
		}
		return len(b), nil
	})))
	must(t, err)
	told.check(t, size, size)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestEveryKindOfRecoveryTellsOfItsBytes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		total int64
		do    func(*testing.T, *rewind.Session, *rewind.Guard) (whole int64)
	}{
		"Recover": {int64(len(goodConfig)), func(t *testing.T, s *rewind.Session, g *rewind.Guard) int64 {
			t.Helper()
			r, err := s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(io.Discard))
			must(t, err)
			return r.Bytes
		}},
		"RecoverTree": {-1, func(t *testing.T, s *rewind.Session, g *rewind.Guard) int64 {
			t.Helper()
			root, _ := folderRoot(t)
			r, err := s.RecoverTree(t.Context(), g, "/srv/site", root)
			must(t, err)
			return r.Bytes
		}},
		"Open": {int64(len(goodConfig)), func(t *testing.T, s *rewind.Session, g *rewind.Guard) int64 {
			t.Helper()
			f, err := s.Open(t.Context(), g, nginxConf)
			must(t, err)
			n, err := io.Copy(io.Discard, f)
			must(t, errors.Join(err, f.Close()))
			return n
		}},
		"Plan": {int64(len(goodConfig)), func(t *testing.T, s *rewind.Session, g *rewind.Guard) int64 {
			t.Helper()
			p, err := s.Plan(t.Context(), g, nginxConf, rewind.LiveContent{})
			must(t, err)
			return p.Pinned.Bytes
		}},
	} {
		for how, opts := range map[string][]zvmtest.Option{
			"bytes": {zvmtest.WithSwitch(zvmtest.DownloadSeveralRefused)}, "zip": {zvmtest.WithSwitch(zvmtest.DownloadZipped)},
		} {
			t.Run(name+" as "+how, func(t *testing.T) {
				t.Parallel()
				w := newTreeWorld(t, opts...)
				var told downloads
				_, s := connect(t, w.sim, rewind.WithProgress(told.take))
				g, err := s.Protect(t.Context(), "web01", rewind.Change{})
				must(t, err)
				told.check(t, tt.total, tt.do(t, s, g))
			})
		}
	}
}

func TestADownloadThatFailsIsNotToldToBeWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var told downloads
	_, s := connect(t, w.sim, rewind.WithProgress(told.take))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	if _, err := s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(writerFunc(func([]byte) (int, error) {
		return 0, errors.New("full")
	}))); err == nil {
		t.Error("a writer that fails is no error")
	}
	if len(told.events) != 1 || told.events[0].Stage != rewind.StageDownloading {
		t.Errorf("told of %+v", told.events)
	}
}

func TestResultsTellTheirStagesAndTheTimesOfTheSource(t *testing.T) {
	t.Parallel()
	if !tellsAll() {
		return // the times of a file are optional
	}
	w := newTreeWorld(t)
	g := w.guard(t, "web01")
	r, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}), rewind.PinFirst())
	must(t, err)
	root, _ := folderRoot(t)
	tree, err := w.RecoverTree(t.Context(), g, "/srv/site", root, rewind.PinFirst())
	must(t, err)
	if r.Pinned == nil || tree.Pinned == nil || r.Pinned.ChangeID == tree.Pinned.ChangeID {
		t.Errorf("pinned %+v and %+v", r.Pinned, tree.Pinned)
	}
	f, err := w.Open(t.Context(), g, nginxConf)
	must(t, err)
	_, err = io.Copy(io.Discard, f)
	must(t, errors.Join(err, f.Close()))
	const plain, pinned = "check mount browse download unmount", "check pin mount browse download unmount"
	for _, tt := range []struct {
		want string
		got  []rewind.StageTime
	}{{pinned, r.Stages}, {pinned, tree.Stages}, {plain, f.Recovery().Stages}} {
		var names []string
		sum := 0.0
		for _, s := range tt.got {
			names = append(names, s.Stage)
			sum += s.Seconds
		}
		if diff := cmp.Diff(tt.want, strings.Join(names, " ")); diff != "" || sum <= 0 {
			t.Errorf("stages of %v s in all (-want +got):\n%s", sum, diff)
		}
	}
	times := []*time.Time{r.Created, r.Accessed, r.Written, f.Recovery().Created}
	for _, file := range tree.Files {
		times = append(times, file.Written)
	}
	for i, at := range times {
		if at == nil || at.IsZero() {
			t.Errorf("time %d is not told", i)
		}
	}
}

func TestDiffTellsOfTheBytesOfEachSide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var told downloads
	_, s := connect(t, w.sim, rewind.WithProgress(told.take))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	_, err = s.Diff(t.Context(), g, g, "/etc")
	must(t, err)
	whole := int64(len(goodConfig))
	at := slices.IndexFunc(told.events, func(e rewind.Event) bool { return e.Stage == rewind.StageDownloaded })
	now := downloads{events: told.events[at+1:]}
	told.events = told.events[:at+1]
	told.check(t, -1, whole)
	now.check(t, -1, whole)
}
