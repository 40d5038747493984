package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

// TestProjectDoesNotChooseWhatIsStarted: its settings come with a repository that anybody may have written.
func TestProjectDoesNotChooseWhatIsStarted(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		own    bool
		spoil  func(settings string) string
		starts bool
	}{
		"this program":    {own: true, spoil: func(s string) string { return s }, starts: true},
		"another program": {spoil: func(s string) string { return s }},
		"this program and another ZVM": {own: true, spoil: func(s string) string {
			return strings.Replace(s, `"claude"`, `"claude", "--url", "https://127.0.0.1:1"`, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			binary, trace := filepath.Join(dir, "zerto-rewind"), filepath.Join(dir, "trace")
			err := os.Symlink(self, binary)
			if !tt.own {
				_ = os.Remove(binary)
				err = os.WriteFile(binary, []byte("#!/bin/sh\ntouch "+trace+"\necho 'zerto-rewind: x' >&2\nexit 2\n"), 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
			hook := install.Hook{Host: "claude", Scope: install.Project, Binary: binary}
			place := install.Place{Home: dir, Dir: filepath.Join(dir, "project")}
			if err := os.MkdirAll(place.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			c, err := install.Plan(hook, place)
			if err != nil {
				t.Fatal(err)
			}
			c.After = []byte(tt.spoil(string(c.After)))
			if err := c.Apply(); err != nil {
				t.Fatal(err)
			}
			s := hookStateOf(t.Context(), hook, place)
			if !s.Installed || (s.Problem == "") != tt.starts || s.Entries[0].Starts != tt.starts {
				t.Errorf("%+v", s)
			}
			if _, err := os.Stat(trace); !os.IsNotExist(err) {
				t.Error("the project's program was started")
			}
		})
	}
}
