package rewind_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const nginxConf = "/etc/nginx/nginx.conf"

func TestLaw10_RecoveryBringsBackTheGuardedBytesWithEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	must(t, w.web.Guest().WriteFile(nginxConf, []byte("broken by the agent")))
	w.guard(t, "web01") // a later guard must not be the one that is read
	dest := filepath.Join(t.TempDir(), "nginx.conf")
	r, err := w.Recover(t.Context(), g, nginxConf, rewind.ToFile(dest))
	must(t, err)
	got, err := os.ReadFile(dest)
	must(t, err)
	if diff := cmp.Diff(goodConfig, string(got)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	sum := sha256.Sum256(got)
	var local rewind.TaggedCheckpoint
	for _, c := range g.Record().Checkpoints {
		if c.Local {
			local = c
		}
	}
	want := &rewind.Recovery{
		ChangeID: g.ChangeID(), VM: "web01", VMID: vmid(w.web), VPGID: local.VPGID, CheckpointID: local.CheckpointID,
		Tag: local.Tag, CheckpointTime: local.Timestamp, Created: r.Created, Accessed: r.Accessed, Written: r.Written, GuestPath: "Volume1-Ext4/etc/nginx/nginx.conf", Dest: dest, Bytes: int64(len(got)),
		SHA256: hex.EncodeToString(sum[:]), FLRSessionID: r.FLRSessionID, Unmounted: true, Stages: r.Stages,
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("recovery (-want +got):\n%s", diff)
	}
	if tellsAll() && (r.Written == nil || r.Written.Truncate(time.Second).After(local.Timestamp)) {
		t.Errorf("written %v, which is after the checkpoint of %v", r.Written, local.Timestamp)
	}
	info, err := os.Stat(dest)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	w.nothingMounted(t)
	folderIs(t, filepath.Dir(dest), "nginx.conf")
}

func TestRecoveryJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(rewind.Recovery{})
	must(t, err)
	want := "bytes changeId checkpointId checkpointTime dest flrSessionId guestPath sha256 stages tag unmounted vm vmId vpgId"
	if diff := cmp.Diff(want, strings.Join(keys(t, data), " ")); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeDownloadedIsRefusedInTheServersWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().Symlink("/etc/hosts", "/etc/link"))
	g := w.guard(t, "web01")
	for path, reason := range map[string]string{"/etc/link": "Links are not supported", "/etc": "folder"} {
		_, err := w.Recover(t.Context(), g, path, rewind.ToWriter(&bytes.Buffer{}))
		var refused *rewind.NotDownloadableError
		if !errors.As(err, &refused) || tellsAll() && !strings.Contains(refused.Reason, reason) {
			t.Errorf("%s: got %v, want *NotDownloadableError with %q", path, err, reason)
		}
	}
	if n := w.sim.Count("POST", "/v1/flrs/*/download"); n != 0 {
		t.Errorf("%d downloads asked for", n)
	}
}

func TestRecoverNeedsALocalVPG(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.AddVM("dr01", w.remote)
	g := w.guard(t, "dr01")
	_, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
	if !errors.Is(err, rewind.ErrNotLocal) || !strings.Contains(err.Error(), "DR") {
		t.Errorf("got %v, want ErrNotLocal naming the recovery site", err)
	}
	if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
		t.Errorf("%d mounts sent", n)
	}
}

func TestRecoverNeverTakesAnotherCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	for _, c := range g.Record().Checkpoints {
		if c.Local {
			w.local.LoseCheckpoint(string(c.CheckpointID))
		}
	}
	_, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
	if !errors.Is(err, rewind.ErrCheckpointGone) {
		t.Errorf("got %v, want ErrCheckpointGone", err)
	}
	if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
		t.Errorf("%d mounts sent", n)
	}
}

func TestRecoverFromAGuardOfSeveralVMs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.sim.AddVM("db01", w.local)
	must(t, db.Guest().WriteFile("/etc/my.cnf", []byte("db")))
	g, err := w.ProtectAll(t.Context(), []string{"web01", "db01"}, rewind.Change{})
	must(t, err)
	var ambiguous *rewind.AmbiguousVMError
	if _, err := w.Recover(t.Context(), g, "/etc/my.cnf", rewind.ToWriter(&bytes.Buffer{})); !errors.As(err, &ambiguous) {
		t.Errorf("got %v, want *AmbiguousVMError", err)
	}
	var got bytes.Buffer
	if _, err := w.Recover(t.Context(), g, "/etc/my.cnf", rewind.ToWriter(&got), rewind.FromVM("db01")); err != nil || got.String() != "db" {
		t.Errorf("got %q, %v", got.String(), err)
	}
}

func TestBrowse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().Symlink("/etc/hosts", "/etc/nginx/link"))
	g := w.guard(t, "web01")
	for path, want := range map[string]string{
		"":                 "Volume1-Ext4",
		"/":                "Volume1-Ext4",
		"/etc/nginx":       "link nginx.conf",
		"Volume1-Ext4/etc": "nginx",
	} {
		l, err := w.Browse(t.Context(), g, path)
		must(t, err)
		var names []string
		for _, i := range l.Items {
			names = append(names, i.Name)
		}
		if got := strings.Join(sorted(names), " "); got != want || !l.Unmounted {
			t.Errorf("%q holds %q, want %q; unmounted %t", path, got, want, l.Unmounted)
		}
	}
	w.nothingMounted(t)
}

func TestLaw5_NothingStaysMounted(t *testing.T) {
	t.Parallel()
	steps := []struct{ method, pattern string }{
		{"POST", "/v1/flrs"},
		{"GET", "/v1/flrs/*"},
		{"POST", "/v1/flrs/*/browse"},
		{"POST", "/v1/flrs/*/download"},
		{"GET", "/v1/downloads/*"},
		{"DELETE", "/v1/flrs/*"},
	}
	faults := map[string]func(*zvmtest.Fault){
		"500":        func(f *zvmtest.Fault) { f.Status(500, `{"Message":"scripted"}`) },
		"403":        func(f *zvmtest.Fault) { f.Status(403, `{"Message":"scripted"}`) },
		"cut before": func(f *zvmtest.Fault) { f.CutBefore() },
		"cut after":  func(f *zvmtest.Fault) { f.CutAfter() },
		"truncated":  func(f *zvmtest.Fault) { f.Truncate(3) },
		"502 after":  func(f *zvmtest.Fault) { f.StatusAfter(502, "<html></html>") },
		"hangs":      func(f *zvmtest.Fault) { f.Hang() },
	}
	for _, step := range steps {
		for fault, apply := range faults {
			t.Run(step.method+" "+step.pattern+" "+fault, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, zvmtest.WithSwitch(zvmtest.DownloadLinkAbsolute))
				g := w.guard(t, "web01")
				apply(w.sim.On(step.method, step.pattern))
				dir := t.TempDir()
				dest := filepath.Join(dir, "nginx.conf")
				must(t, os.WriteFile(dest, []byte("mine"), 0o600))
				ctx := t.Context()
				if fault == "hangs" {
					ctx = w.untilSeen(t, step.method, step.pattern)
				}
				_, err := w.Recover(ctx, g, nginxConf, rewind.ToFile(dest, rewind.Replace()))
				var open *rewind.LeftOpenError
				switch left := w.sim.LiveFLRSessions(); {
				case len(left) > 0 && !errors.As(err, &open):
					t.Errorf("left mounted and not said so: %v", err)
				case len(left) > 0 && step.method != "DELETE":
					t.Errorf("left mounted although closing works: %v", err)
				}
				want := "mine"
				if err == nil || errors.As(err, &open) && open != nil && strings.HasPrefix(err.Error(), "FLR session") {
					want = goodConfig
				}
				if got, _ := os.ReadFile(dest); string(got) != want {
					t.Errorf("%v, and the destination holds %q, want %q", err, got, want)
				}
				folderIs(t, dir, "nginx.conf")
			})
		}
	}
}

func TestLaw5_CancellingAtAnyStageClosesTheSession(t *testing.T) {
	t.Parallel()
	for _, stage := range []rewind.Stage{rewind.StageMounting, rewind.StageMounted, rewind.StageDownloading} {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, zvmtest.WithMountTime(lasting(50*time.Millisecond)))
			must(t, w.web.Guest().WriteZeros("/big", 1<<40))
			g := w.guard(t, "web01")
			ctx, cancel := context.WithCancel(t.Context())
			_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
				if e.Stage == stage {
					cancel()
				}
			}))
			again, err := s.Reprove(t.Context(), g.Record())
			must(t, err)
			dir := t.TempDir()
			_, err = s.Recover(ctx, again, "/big", rewind.ToFile(filepath.Join(dir, "big")))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want it cancelled", err)
			}
			w.nothingMounted(t)
			folderIs(t, dir)
		})
	}
}

func TestLaw5_AnUnmountThatFailsIsSaidAndKeepsTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithSwitch(zvmtest.UnmountFails))
	_, s := connect(t, w.sim, rewind.WithLimits(rewind.Limits{Unmount: 100 * time.Millisecond}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	dest := filepath.Join(t.TempDir(), "f")
	r, err := s.Recover(t.Context(), g, nginxConf, rewind.ToFile(dest))
	var open *rewind.LeftOpenError
	if !errors.As(err, &open) || r == nil || r.Unmounted {
		t.Fatalf("got %+v, %v, want the result and a *LeftOpenError", r, err)
	}
	if !strings.Contains(err.Error(), string(r.FLRSessionID)) || open.Command == "" {
		t.Errorf("%q does not name the session and the command that closes it", err)
	}
	if got, _ := os.ReadFile(dest); string(got) != goodConfig {
		t.Errorf("the file holds %q", got)
	}
}

func TestLaw8_FilesArriveWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	t.Run("an existing file is refused before anything is mounted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		g := w.guard(t, "web01")
		dest := filepath.Join(t.TempDir(), "f")
		must(t, os.WriteFile(dest, []byte("mine"), 0o600))
		_, err := w.Recover(t.Context(), g, nginxConf, rewind.ToFile(dest))
		if got, _ := os.ReadFile(dest); !errors.Is(err, fs.ErrExist) || string(got) != "mine" {
			t.Errorf("got %v, the file holds %q", err, got)
		}
		if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
			t.Errorf("%d mounts sent", n)
		}
	})
	t.Run("a file that appears meanwhile is not replaced", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		dest := filepath.Join(t.TempDir(), "f")
		_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
			if e.Stage == rewind.StageDownloading {
				_ = os.WriteFile(dest, []byte("mine"), 0o600)
			}
		}))
		g, err := s.Protect(t.Context(), "web01", rewind.Change{})
		must(t, err)
		_, err = s.Recover(t.Context(), g, nginxConf, rewind.ToFile(dest))
		if got, _ := os.ReadFile(dest); !errors.Is(err, fs.ErrExist) || string(got) != "mine" {
			t.Errorf("got %v, the file holds %q", err, got)
		}
		folderIs(t, filepath.Dir(dest), "f")
		w.nothingMounted(t)
	})
	t.Run("links and folders are never replaced", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		g := w.guard(t, "web01")
		dir := t.TempDir()
		link := filepath.Join(dir, "link")
		must(t, os.Symlink(filepath.Join(dir, "elsewhere"), link))
		for _, dest := range []string{link, dir} {
			if _, err := w.Recover(t.Context(), g, nginxConf, rewind.ToFile(dest, rewind.Replace())); err == nil {
				t.Errorf("recovered to %s", dest)
			}
		}
		folderIs(t, dir, "link")
	})
	t.Run("a size that differs from the browsed one leaves no file", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, zvmtest.WithSwitch(zvmtest.DownloadLinkAbsolute))
		g := w.guard(t, "web01")
		w.sim.On("GET", "/v1/downloads/*").Garbage("short", "application/octet-stream")
		dir := t.TempDir()
		if _, err := w.Recover(t.Context(), g, nginxConf, rewind.ToFile(filepath.Join(dir, "f"))); err == nil {
			t.Error("a short file was taken for whole")
		}
		folderIs(t, dir)
		w.nothingMounted(t)
	})
	t.Run("names as long as the file system takes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		dest := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
		_, err := w.Recover(t.Context(), w.guard(t, "web01"), nginxConf, rewind.ToFile(dest, rewind.WithMode(0o640)))
		must(t, err)
		if info, err := os.Stat(dest); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("got %v, %v", info, err)
		}
	})
	t.Run("an empty file is a file", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		must(t, w.web.Guest().WriteFile("/empty", nil))
		dest := filepath.Join(t.TempDir(), "f")
		r, err := w.Recover(t.Context(), w.guard(t, "web01"), "/empty", rewind.ToFile(dest))
		must(t, err)
		if info, err := os.Stat(dest); err != nil || info.Size() != 0 || r.Bytes != 0 {
			t.Errorf("got %v, %v, %d bytes", info, err, r.Bytes)
		}
	})
}

func TestBrowseEachKeepsNothingAndEndsWhenToldTo(t *testing.T) {
	t.Parallel()
	if !tellsAll() {
		return // this ZVM may send a folder whole, or hold items back
	}
	w := newWorld(t)
	must(t, w.web.Guest().WriteManyFiles("/many", 20_000))
	g := w.guard(t, "web01")
	n := 0
	l, err := w.BrowseEach(t.Context(), g, "/many", func(i rewind.ListedItem) error {
		if n++; i.Path != "Volume1-Ext4/many/"+i.Name {
			t.Errorf("item %+v", i)
		}
		return nil
	})
	must(t, err)
	if n != 20_000 || !l.Complete || len(l.Items) != 0 || l.GuestPath != "Volume1-Ext4/many" || !l.Unmounted {
		t.Errorf("%d items, then %+v", n, l)
	}
	before, enough := w.sim.Count("POST", "/v1/flrs/*/browse"), errors.New("enough")
	n = 0
	_, err = w.BrowseEach(t.Context(), g, "/many", func(rewind.ListedItem) error {
		if n++; n == 1500 {
			return enough
		}
		return nil
	})
	if asked := w.sim.Count("POST", "/v1/flrs/*/browse") - before; !errors.Is(err, enough) || asked > 10 {
		t.Errorf("%d requests, %v", asked, err)
	}
	w.nothingMounted(t)
}
