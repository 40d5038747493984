package rewind_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestStat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().Symlink("/etc/hosts", "/etc/link"))
	g := w.guard(t, "web01")
	item, err := w.Stat(t.Context(), g, nginxConf)
	must(t, err)
	size := int64(len(goodConfig))
	want := &rewind.ListedItem{
		Name: "nginx.conf", Path: "Volume1-Ext4/etc/nginx/nginx.conf", Type: item.Type, Bytes: &size, Written: item.Written, Downloadable: true,
	}
	if diff := cmp.Diff(want, item); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
	if link, err := w.Stat(t.Context(), g, "/etc/link"); err != nil || link.Downloadable {
		t.Errorf("a link is %+v, %v, want what cannot be downloaded", link, err)
	}
	var missing *rewind.PathNotFoundError
	if _, err := w.Stat(t.Context(), g, "/etc/none"); !errors.As(err, &missing) {
		t.Errorf("got %v, want *PathNotFoundError", err)
	}
	if _, err := w.Stat(t.Context(), g, "/"); err == nil {
		t.Error("all partitions at once are no item")
	}
	w.nothingMounted(t)
}

func TestOpenStreamsTheGuardedBytesWithEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	must(t, w.web.Guest().WriteFile(nginxConf, []byte("broken by the agent")))
	f, err := w.Open(t.Context(), g, nginxConf)
	must(t, err)
	got, err := io.ReadAll(f)
	must(t, err)
	must(t, f.Close())
	w.nothingMounted(t)
	sum := sha256.Sum256([]byte(goodConfig))
	r := f.Recovery()
	if string(got) != goodConfig || f.Item().Name != "nginx.conf" || r == nil {
		t.Fatalf("read %q of %+v, evidence %+v", got, f.Item(), r)
	}
	if r.SHA256 != hex.EncodeToString(sum[:]) || !r.Unmounted || r.ChangeID != g.ChangeID() || r.FLRSessionID == "" {
		t.Errorf("evidence %+v", r)
	}
}

func TestOpenRefusesAsRecoverDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	var refused *rewind.NotDownloadableError
	if _, err := w.Open(t.Context(), g, "/etc"); !errors.As(err, &refused) {
		t.Errorf("a folder gives %v, want *NotDownloadableError", err)
	}
	var missing *rewind.PathNotFoundError
	if _, err := w.Open(t.Context(), g, "/etc/none"); !errors.As(err, &missing) {
		t.Errorf("got %v, want *PathNotFoundError", err)
	}
	w.nothingMounted(t)
}

func TestLaw5_ClosingAFileHalfWayClosesTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().WriteZeros("/big", 8<<20))
	f, err := w.Open(t.Context(), w.guard(t, "web01"), "/big")
	must(t, err)
	_, err = io.ReadFull(f, make([]byte, 1<<16))
	must(t, err)
	must(t, f.Close())
	must(t, f.Close())
	w.nothingMounted(t)
	if _, err := f.Read(make([]byte, 1)); err == nil || f.Recovery() != nil {
		t.Errorf("reading what is closed gives %v, evidence %+v", err, f.Recovery())
	}
}

func TestLaw5_AFileThatNobodyClosesIsClosedWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().WriteZeros("/big", 8<<20))
	g := w.guard(t, "web01")
	unmounted := make(chan struct{})
	s, err := w.With(rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageUnmounted {
			close(unmounted)
		}
	}))
	must(t, err)
	gone := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	f, err := s.Open(ctx, g, "/big")
	must(t, err)
	cancel(gone)
	<-unmounted
	w.nothingMounted(t)
	if _, err := io.Copy(io.Discard, f); !errors.Is(err, gone) {
		t.Errorf("reading on gives %v, want the context's cause", err)
	}
}

func TestLaw8_AFileThatIsCutIsNoEOF(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithSwitch(zvmtest.DownloadLinkAbsolute))
	g := w.guard(t, "web01")
	w.sim.On("GET", "/v1/downloads/*").Truncate(3)
	f, err := w.Open(t.Context(), g, nginxConf)
	if err == nil {
		_, err = io.ReadAll(f)
		must(t, f.Close())
	}
	if err == nil || f != nil && f.Recovery() != nil {
		t.Errorf("a cut file was read to its end: %v", err)
	}
	w.nothingMounted(t)
}

func TestLaw5_AFileWhoseSessionStaysOpenSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithSwitch(zvmtest.UnmountFails))
	_, s := connect(t, w.sim, rewind.WithLimits(rewind.Limits{Unmount: 100 * time.Millisecond}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	f, err := s.Open(t.Context(), g, nginxConf)
	must(t, err)
	_, err = io.ReadAll(f)
	must(t, err)
	var open *rewind.LeftOpenError
	if err := f.Close(); !errors.As(err, &open) || open.ID != string(f.Recovery().FLRSessionID) || f.Recovery().Unmounted {
		t.Errorf("got %v, want a *LeftOpenError of %+v", err, f.Recovery())
	}
}
