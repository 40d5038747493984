package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// toStdout is the destination that means stdout.
const toStdout = "-"

func (a *app) recover() *cobra.Command {
	var from target
	var dest string
	var force bool
	c := a.command(cobra.Command{
		Use:   "recover --change ID [--vm VM] PATH -o DEST [--force]",
		Short: "Bring one file back as it was at the tagged checkpoint of a change",
		Long: `Recover mounts the VM from the change's tagged checkpoint by file-level recovery, downloads one file, and closes the
session. DEST appears only when every byte arrived. The VM itself is not touched: copy the file back yourself, which a
line on stderr says again after success, but not with --json.

With -o - the bytes go to stdout as they arrive, and the evidence to stderr. What came before a failure has then been
written: look at the exit code.`,
		Args: exactly("PATH"),
	}, 0, func(ctx context.Context, args []string) error {
		if err := a.checkDestination(dest); err != nil {
			return err
		}
		session, guard, err := a.findGuard(ctx, from)
		if err != nil {
			return err
		}
		recovery, err := session.Recover(ctx, guard, args[0], a.sink(dest, force))
		if recovery == nil {
			return explainNoRecovery(ctx, dest, err)
		}
		err = errors.Join(a.showRecovery(recovery, dest), err)
		if err == nil && !a.json {
			a.say("%s was not touched: copy the file back yourself", recovery.VM)
		}
		return err
	})
	from.guardFlags(c)
	c.Flags().StringVarP(&dest, "output", "o", "", "`file` to write, or - for stdout")
	c.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	_ = c.MarkFlagRequired("output") // fails only for a flag that does not exist
	return c
}

func (a *app) checkDestination(dest string) error {
	switch info, err := os.Stat(dest); {
	case dest == "":
		return &usageError{errors.New("--output is empty")}
	case dest == toStdout && a.json:
		return &usageError{errors.New("-o - and --json both want stdout")}
	case dest != toStdout && (os.IsPathSeparator(dest[len(dest)-1]) || err == nil && info.IsDir()):
		return &usageError{fmt.Errorf("%s is a folder: give a file name", dest)}
	}
	return nil
}

func (a *app) sink(dest string, force bool) rewind.Sink {
	switch {
	case dest == toStdout:
		return rewind.ToWriter(a.io.Out)
	case force:
		return rewind.ToFile(dest, rewind.Replace())
	}
	return rewind.ToFile(dest)
}

// explainNoRecovery adds what is left to do, or that nothing is.
func explainNoRecovery(ctx context.Context, dest string, err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return hinted(err, "--force replaces it")
	case ctx.Err() != nil && !is[*rewind.LeftOpenError](err) && !errors.Is(err, zvm.ErrOutcomeUnknown):
		if dest == toStdout {
			return hinted(err, "no FLR session of this command is left open")
		}
		return hinted(err, "nothing was written, and no FLR session of this command is left open")
	}
	return err
}

// showRecovery prints the evidence where the file's bytes are not.
func (a *app) showRecovery(r *rewind.Recovery, dest string) error {
	if a.json {
		return a.document(r)
	}
	to := a.io.Out
	if dest == toStdout {
		to = a.io.Err
	}
	t := &table{}
	showRecovery(t, r)
	_, err := io.WriteString(to, t.String())
	return err
}

func showRecovery(t *table, r *rewind.Recovery) {
	if r.Dest != "" {
		t.row("file", r.Dest)
	}
	t.row("bytes", strconv.FormatInt(r.Bytes, 10))
	t.row("sha256", r.SHA256)
	t.row("from", r.GuestPath)
	t.row("vm", r.VM)
	t.row("checkpoint", string(r.CheckpointID))
	t.row("session", string(r.FLRSessionID)+", "+closedOrOpen(r.Unmounted))
}

func closedOrOpen(unmounted bool) string {
	if unmounted {
		return "unmounted"
	}
	return "still mounted"
}
