package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

// installation is what an installer did, or would do.
type installation struct {
	Host    string        `json:"host"`
	Scope   install.Scope `json:"scope"`
	Path    string        `json:"path"`
	Changed bool          `json:"changed"` // by a dry run: would be
	DryRun  bool          `json:"dryRun"`
	Backup  string        `json:"backup,omitempty"` // holds what the file held before
	Diff    string        `json:"diff,omitempty"`   // of a dry run
	Notes   []string      `json:"notes,omitempty"`
}

// hookCommands are the commands below hook. The hook itself stays what runs without one.
func (a *app) hookCommands() []*cobra.Command {
	return []*cobra.Command{a.settings.offline(a.hookInstall()), a.settings.offline(a.hookUninstall()), a.settings.offline(a.hookStatus())}
}

// where are the flags that say whose settings are meant.
type where struct {
	scope, binary string
	dryRun        bool
}

func (w *where) register(c *cobra.Command, writes bool) {
	c.Flags().StringVar(&w.scope, "scope", string(install.User), "whose settings: `user or project`, which is the working directory")
	c.Flags().StringVar(&w.binary, "binary", "", "absolute `path` of zerto-rewind (default: this program)")
	if writes {
		c.Flags().BoolVar(&w.dryRun, "dry-run", false, "show what would change, and write nothing")
	}
}

func (a *app) hookInstall() *cobra.Command {
	var w where
	c := a.command(cobra.Command{
		Use:   "install HOST [--scope user|project] [--dry-run]",
		Short: "Put the hook into the settings of an agent host",
		Long: `Install makes an agent host run the hook before each tool call. HOST is ` + strings.Join(install.Hosts(), ", ") + `.

Everything else in the settings stays as it is, comments included, and installing twice changes nothing. What the file held
before is kept beside it. A file that is damaged, or has another shape than the host's, is refused and left alone.`,
		Args: exactly("HOST"),
	}, 0, func(_ context.Context, args []string) error {
		hook, place, err := a.hookPlace(args[0], w)
		if err != nil {
			return err
		}
		if hook.Binary, err = a.program(w.binary); err != nil {
			return err
		}
		change, err := install.Plan(hook, place)
		return a.applied(hook.Host, hook.Scope, w.dryRun, change, err)
	})
	w.register(c, true)
	return c
}

func (a *app) hookUninstall() *cobra.Command {
	var w where
	c := a.command(cobra.Command{
		Use:   "uninstall HOST [--scope user|project] [--dry-run]",
		Short: "Take the hook out of the settings of an agent host",
		Long: `Uninstall takes the hook out of a host's settings, whichever path it names. If nothing else has changed since it was
installed, the file gets back the bytes that it had.`,
		Args: exactly("HOST"),
	}, 0, func(_ context.Context, args []string) error {
		hook, place, err := a.hookPlace(args[0], w)
		if err != nil {
			return err
		}
		change, err := install.PlanRemoval(hook, place)
		return a.applied(hook.Host, hook.Scope, w.dryRun, change, err)
	})
	w.register(c, true)
	return c
}

// applied writes a change, unless this is a dry run, and tells of it.
func (a *app) applied(host string, scope install.Scope, dryRun bool, change *install.Change, err error) error {
	if err != nil {
		return err
	}
	did := installation{Host: host, Scope: scope, Path: change.Path, Changed: change.Changed(), DryRun: dryRun, Backup: change.Backup, Notes: change.Notes}
	if dryRun {
		did.Diff = udiff.Unified(change.Path, change.Path, string(change.Before), string(change.After))
	} else if err := change.Apply(); err != nil {
		return err
	}
	for _, note := range did.Notes {
		if !a.json {
			a.say("note: %s", note)
		}
	}
	if !a.json && did.Diff != "" {
		return a.lines(did.Diff)
	}
	return a.result(did, func(t *table) {
		switch {
		case !did.Changed:
			t.row("unchanged", did.Path)
		case change.After == nil:
			t.row("removed", did.Path)
		default:
			t.row("written", did.Path)
		}
		if did.Backup != "" {
			t.row("before", did.Backup)
		}
	})
}

// lines prints text of several lines, each made plain.
func (a *app) lines(text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(a.io.Out, plain(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) hookPlace(host string, w where) (install.Hook, install.Place, error) {
	hook := install.Hook{Host: host, Scope: install.Scope(w.scope), Binary: w.binary}
	place, err := a.place()
	if err != nil {
		return hook, place, err
	}
	if _, err := install.Path(hook, place); err != nil {
		return hook, place, &usageError{err}
	}
	if hook.Binary != "" && !filepath.IsAbs(hook.Binary) {
		return hook, place, &usageError{errors.New("--binary must be an absolute path")}
	}
	return hook, place, nil
}

// program returns the path that goes into settings: the one that was given, else that of this program. Hosts let every call
// run when they cannot start it.
func (a *app) program(given string) (string, error) {
	if given == "" {
		var err error
		if given, err = ownPath(a.io.variable("PATH")); err != nil {
			return "", err
		}
	}
	if _, err := exec.LookPath(given); err != nil {
		return "", fmt.Errorf("it would not start, so nothing was written: %w", err)
	}
	return given, nil
}

// place returns where this person's settings are, and those of the project in the working directory.
func (a *app) place() (install.Place, error) {
	home := a.io.variable("HOME")
	if !filepath.IsAbs(home) {
		home = a.io.variable("USERPROFILE")
	}
	if !filepath.IsAbs(home) {
		return install.Place{}, &settingsError{errors.New("HOME must be an absolute path")}
	}
	dir, err := os.Getwd()
	return install.Place{Home: home, Dir: dir, Env: a.io.variable}, err
}

// ownPath returns the path of this program. If PATH leads to it that path is taken: a package manager keeps it when it
// puts the next version elsewhere.
func ownPath(path string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if known := lookIn(path, filepath.Base(self)); known != "" && sameFile(known, self) {
		return known, nil
	}
	if strings.Contains(filepath.ToSlash(self), "/go-build") {
		return "", &usageError{errors.New("this program is temporary, as go run makes it: build it, or give --binary")}
	}
	return self, nil
}

// lookIn returns the program of a name to which a PATH leads, and "" if it leads to none.
func lookIn(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if candidate := filepath.Join(dir, name); filepath.IsAbs(candidate) {
			if found, err := exec.LookPath(candidate); err == nil {
				return found
			}
		}
	}
	return ""
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
