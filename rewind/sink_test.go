package rewind_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, want %q", path, got, err, want)
	}
}

// What is nil is an error of the call, before anything is mounted, and not a panic in an agent.
func TestNilArgumentsAreErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	dir := t.TempDir()
	for name, sink := range map[string]rewind.Sink{
		"sink":             nil,
		"writer":           rewind.ToWriter(nil),
		"root":             rewind.ToRoot(nil, "f"),
		"option":           rewind.ToFile(filepath.Join(dir, "f"), nil),
		"option of a root": rewind.ToRoot(openRoot(t, dir), "f", rewind.Replace(), nil),
	} {
		if _, err := w.Recover(t.Context(), g, nginxConf, sink); err == nil {
			t.Errorf("a nil %s is no error", name)
		}
	}
	if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
		t.Errorf("%d mounts sent", n)
	}
	folderIs(t, dir)
}

func TestToRootWritesBelowItsRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	r, err := w.Recover(t.Context(), w.guard(t, "web01"), nginxConf, rewind.ToRoot(openRoot(t, dir), "sub/nginx.conf"))
	must(t, err)
	if want := filepath.Join(dir, "sub", "nginx.conf"); r.Dest != want {
		t.Errorf("dest %s, want %s", r.Dest, want)
	}
	holds(t, r.Dest, goodConfig)
	folderIs(t, filepath.Dir(r.Dest), "nginx.conf")
}

func TestLaw8_NothingIsWrittenOutsideARoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	parent := t.TempDir()
	dir, outside := filepath.Join(parent, "in"), filepath.Join(parent, "outside")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Mkdir(outside, 0o700))
	must(t, os.Symlink("../outside", filepath.Join(dir, "out")))
	must(t, os.Symlink("../outside/f", filepath.Join(dir, "link")))
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	root := openRoot(t, dir)
	for _, name := range []string{
		"", ".", "..", "../f", "sub/../../f", "/f", filepath.Join(outside, "f"), "out/f", "out", "link", "file/f", "missing/f", "f/", "a//b", "a\x00b",
	} {
		_, err := w.Recover(t.Context(), g, nginxConf, rewind.ToRoot(root, name, rewind.Replace()))
		var refused *rewind.DestinationError
		if !errors.As(err, &refused) {
			t.Errorf("%q: got %v, want *DestinationError", name, err)
		}
	}
	folderIs(t, outside)
	folderIs(t, dir, "file", "link", "out")
	if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
		t.Errorf("%d mounts sent", n)
	}
}

func TestLaw8_ARootThatIsExchangedMeanwhileIsNotLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parent := t.TempDir()
	dir, moved, outside := filepath.Join(parent, "in"), filepath.Join(parent, "moved"), filepath.Join(parent, "outside")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Mkdir(outside, 0o700))
	_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageDownloading {
			_ = os.Rename(dir, moved)
			_ = os.Symlink(outside, dir)
		}
	}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	_, err = s.Recover(t.Context(), g, nginxConf, rewind.ToRoot(openRoot(t, dir), "f"))
	must(t, err)
	folderIs(t, outside)
	holds(t, filepath.Join(moved, "f"), goodConfig)
}

func TestLaw8_TwoRecoveriesOfOnePathAtOnce(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]rewind.FileOption{"the first one wins": nil, "the last one wins": {rewind.Replace()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			later := "server { listen 443; }\n"
			var guards []*rewind.Guard
			for _, content := range []string{goodConfig, later} {
				must(t, w.web.Guest().WriteFile(nginxConf, []byte(content)))
				guards = append(guards, w.guard(t, "web01"))
			}
			dest := filepath.Join(t.TempDir(), "f")
			errs := make([]error, len(guards))
			var both sync.WaitGroup
			for i, g := range guards {
				both.Go(func() { _, errs[i] = w.Recover(t.Context(), g, nginxConf, rewind.ToFile(dest, opts...)) })
			}
			both.Wait()
			var lost []error
			for _, err := range errs {
				if err != nil {
					lost = append(lost, err)
				}
			}
			got, err := os.ReadFile(dest)
			must(t, err)
			if string(got) != goodConfig && string(got) != later {
				t.Errorf("the file is neither of the two: %q", got)
			}
			switch {
			case opts != nil && len(lost) > 0:
				t.Errorf("got %v", lost)
			case opts == nil && (len(lost) != 1 || !errors.Is(lost[0], fs.ErrExist)):
				t.Errorf("got %v, want one that matches fs.ErrExist", lost)
			}
			folderIs(t, filepath.Dir(dest), "f")
			w.nothingMounted(t)
		})
	}
}

// A check is for whoever asks the ZVM for other things first.
func TestCheckRefusesWhatRecoverWould(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	must(t, os.WriteFile(taken, []byte("mine"), 0o600))
	for name, tt := range map[string]struct {
		sink rewind.Sink
		want error
	}{
		"free":            {rewind.ToFile(filepath.Join(dir, "free")), nil},
		"taken":           {rewind.ToFile(taken), fs.ErrExist},
		"to be replaced":  {rewind.ToFile(taken, rewind.Replace()), nil},
		"no folder":       {rewind.ToFile(filepath.Join(dir, "no", "f")), fs.ErrNotExist},
		"below a root":    {rewind.ToRoot(openRoot(t, dir), "free"), nil},
		"taken in a root": {rewind.ToRoot(openRoot(t, dir), "taken"), fs.ErrExist},
		"a writer":        {rewind.ToWriter(&bytes.Buffer{}), nil},
	} {
		if err := tt.sink.Check(); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
	for _, name := range []string{"", ".", "..", dir, dir + "/", taken + "/", filepath.Join(dir, "new") + "/", filepath.Join(taken, "f")} {
		if err := rewind.ToFile(name, rewind.Replace()).Check(); err == nil {
			t.Errorf("%q is taken for a file's name", name)
		}
	}
	folderIs(t, dir, "taken")
}
