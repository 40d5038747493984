package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// recoverTree brings a folder back into one that is there or can be made.
func (a *app) recoverTree(
	ctx context.Context, session *rewind.Session, guard *rewind.Guard, path, dest string, options []rewind.PlaceOption,
) error {
	made := os.Mkdir(dest, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	root, err := os.OpenRoot(dest)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a handle of a folder, through which nothing is written
	tree, err := session.RecoverTree(ctx, guard, path, root, options...)
	if tree == nil {
		if made == nil {
			_ = os.Remove(dest) // an empty folder tells of nothing; one that is not stays
		}
		return explainNoRecovery(ctx, dest, err)
	}
	if errors.Is(err, fs.ErrExist) {
		err = hinted(err, "nothing was replaced: name a folder in which these files are not")
	}
	if len(tree.Skipped) > 0 {
		a.exit = exitPartial
	}
	err = errors.Join(a.result(tree, func(t *table) { showTree(t, tree) }), err)
	if err == nil && !a.json {
		a.say("%s was not touched: copy the files back yourself", tree.VM)
	}
	return err
}

func showTree(t *table, r *rewind.TreeRecovery) {
	t.row("folder", r.Dest)
	t.row("files", strconv.Itoa(len(r.Files)))
	t.row("folders", strconv.Itoa(r.Folders))
	t.row("bytes", strconv.FormatInt(r.Bytes, 10))
	t.row("from", r.GuestPath)
	t.row("vm", r.VM)
	t.row("checkpoint", string(r.CheckpointID))
	t.row("session", string(r.FLRSessionID)+", "+closedOrOpen(r.Unmounted))
	showPinned(t, r.Pinned)
	if len(r.Skipped) > 0 {
		t.blank()
	}
	for _, s := range r.Skipped {
		t.row("left out", s.GuestPath, s.Reason)
	}
}
