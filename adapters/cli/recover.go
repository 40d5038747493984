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
	var to destination
	var pinFirst bool
	c := a.command(cobra.Command{
		Use:   "recover --change ID [--vm VM] [--partition NAME] PATH -o DEST [--force | --recursive] [--pin-first]",
		Short: "Bring a file or a folder back as it was at the tagged checkpoint of a change",
		Long: `Recover mounts the VM from the change's tagged checkpoint by file-level recovery, downloads one file, and closes the
session. DEST appears only when every byte arrived. The VM itself is not touched: copy the file back yourself, which a
line on stderr says again after success, but not with --json.

With --recursive PATH is a folder, and what is below it goes below DEST, which is made if it is not there. Each file
appears when it is whole, and none replaces what is there. What cannot come back, a link for one, is left out and listed,
and the exit code is 3.

With -o - the bytes of a file go to stdout as they arrive, and the evidence to stderr. What came before a failure has
then been written: look at the exit code.

With --pin-first the VM is guarded as it is now before anything is mounted, so that putting the file back can be taken
back as well: the result names that change. Its tagged checkpoints stay in their journals until they age out.` + recoverySiteHelp,
		Args: exactly("PATH"),
	}, 0, func(ctx context.Context, args []string) error {
		if err := to.check(a.json); err != nil {
			return err
		}
		session, guard, err := a.findGuard(ctx, from)
		if err != nil {
			return err
		}
		options := from.options()
		if pinFirst {
			options = append(options, rewind.PinFirst())
		}
		if to.recursive {
			return a.recoverTree(ctx, session, guard, args[0], to.path, options)
		}
		recovery, err := session.Recover(ctx, guard, args[0], a.sink(to), options...)
		if recovery == nil {
			return explainNoRecovery(ctx, to.path, err)
		}
		err = errors.Join(a.showRecovery(recovery, to.path), err)
		if err == nil && !a.json {
			a.say("%s was not touched: copy the file back yourself", recovery.VM)
		}
		return err
	})
	from.guardFlags(c)
	from.fileFlags(c)
	a.recoverySiteFlag(c)
	c.Flags().StringVarP(&to.path, "output", "o", "", "`file` to write, or - for stdout; with --recursive the folder to write to")
	c.Flags().BoolVar(&to.force, "force", false, "replace the file if it exists")
	c.Flags().BoolVarP(&to.recursive, "recursive", "r", false, "bring a folder back with all below it")
	c.Flags().BoolVar(&pinFirst, "pin-first", false, "guard the VM as it is now first")
	_ = c.MarkFlagRequired("output") // fails only for a flag that does not exist
	return c
}

// destination is where the command line wants it.
type destination struct {
	path             string
	force, recursive bool
}

func (d destination) check(json bool) error {
	info, err := os.Stat(d.path)
	folder := err == nil && info.IsDir()
	switch {
	case d.path == "":
		return &usageError{errors.New("--output is empty")}
	case d.recursive && d.force:
		return &usageError{errors.New("--force is for one file: with --recursive nothing is replaced")}
	case d.recursive && (d.path == toStdout || err == nil && !folder):
		return &usageError{fmt.Errorf("%s is not a folder, which --recursive needs", d.path)}
	case d.recursive:
		return nil
	case d.path == toStdout && json:
		return &usageError{errors.New("-o - and --json both want stdout")}
	case d.path != toStdout && (folder || os.IsPathSeparator(d.path[len(d.path)-1])):
		return &usageError{fmt.Errorf("%s is a folder: give a file name", d.path)}
	}
	return nil
}

func (a *app) sink(to destination) rewind.Sink {
	switch {
	case to.path == toStdout:
		return rewind.ToWriter(a.io.Out)
	case to.force:
		return rewind.ToFile(to.path, rewind.Replace())
	}
	return rewind.ToFile(to.path)
}

// explainNoRecovery adds what is left to do, or that nothing is.
func explainNoRecovery(ctx context.Context, dest string, err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return hinted(err, "--force replaces it")
	case errors.Is(err, rewind.ErrFolder):
		return hinted(err, "--recursive brings it back with all below it")
	case errors.Is(err, rewind.ErrNotFolder):
		return hinted(err, "leave --recursive out to bring a file back")
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
	if r.RecoverySiteID != "" {
		t.row("recovery site", string(r.RecoverySiteID))
	}
	t.row("session", string(r.FLRSessionID)+", "+closedOrOpen(r.Unmounted))
	showPinned(t, r.Pinned)
}

func showPinned(t *table, pinned *rewind.GuardRecord) {
	if pinned != nil {
		t.row("pinned first", "change "+pinned.ChangeID)
	}
}

func closedOrOpen(unmounted bool) string {
	if unmounted {
		return "unmounted"
	}
	return "still mounted"
}
