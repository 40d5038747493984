package rewind

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// tree is one folder of one checkpoint with all that is in it, by path relative to it. The folder itself is ".".
type tree struct {
	side   DiffSide
	items  map[string]treeItem
	listed map[string]bool // the folders whose items are all there
	whole  bool            // every folder is listed
	// missing is why the tree is empty: there is no such path.
	missing *PathNotFoundError
}

type treeItem struct {
	ItemState

	// An item that cannot be read may be neither: it is not known what it is.
	folder, file bool
}

// readTree mounts a checkpoint and reads what is below a path. Contents that an earlier tree has as well are not kept.
func (s *Session) readTree(
	ctx context.Context, from covered, changeID string, wanted guestPath, o diffOptions, earlier *tree,
) (*tree, error) {
	t := &tree{
		side: DiffSide{
			ChangeID: changeID, VPGID: from.VPGID, CheckpointID: from.CheckpointID, Tag: from.Tag, CheckpointTime: from.Timestamp,
			RecoverySiteID: from.at.site,
		},
		items: map[string]treeItem{}, listed: map[string]bool{}, whole: true,
	}
	done := false
	var err error
	t.side.FLRSessionID, t.side.Unmounted, err = s.withMount(ctx, from, func(ctx context.Context, m mounted) error {
		err := s.metered(m, -1, func(m mounted) error {
			r := &treeReader{tree: t, s: s, m: m, o: o, earlier: earlier}
			return r.readAll(ctx, wanted)
		})
		done = err == nil
		return err
	})
	t.side.Items = len(t.items)
	if !done {
		return nil, err
	}
	return t, err
}

type treeReader struct {
	*tree

	s       *Session
	m       mounted
	o       diffOptions
	earlier *tree
	kept    int64 // bytes of content
}

func (r *treeReader) readAll(ctx context.Context, wanted guestPath) error {
	root := zvm.Item{Browsable: true} // the top of a session has no row of its own
	if !wanted.isTop() || r.m.partition != "" {
		var err error
		root, err = r.m.locate(ctx, wanted)
		if errors.As(err, &r.missing) && len(r.missing.Roots) > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.side.GuestPath = root.Path
	if err := r.take(ctx, root); err != nil {
		return err
	}
	var folders []zvm.Item
	if root.Browsable {
		folders = append(folders, root)
	}
	for len(folders) > 0 {
		inside, err := r.enter(ctx, folders[0])
		if errors.Is(err, errTooMany) {
			break
		}
		if err != nil {
			return err
		}
		folders = append(folders[1:], inside...)
	}
	for _, f := range folders {
		r.notWhole(f, fmt.Sprintf("the limit of %d items was reached", r.o.items))
	}
	return nil
}

var errTooMany = errors.New("too many items")

// enter takes in what a folder holds and returns the folders among it.
func (r *treeReader) enter(ctx context.Context, folder zvm.Item) ([]zvm.Item, error) {
	listing, err := r.m.listFolder(ctx, folder.Path)
	if err != nil {
		reason, err := r.m.refusal(ctx, err)
		if err == nil {
			r.notWhole(folder, reason)
		}
		return nil, err
	}
	if len(r.items)+len(listing.Items) > r.o.items {
		return nil, errTooMany
	}
	var folders []zvm.Item
	for _, i := range listing.Items {
		if err := r.take(ctx, i); err != nil {
			return nil, err
		}
		if i.Browsable {
			folders = append(folders, i)
		}
	}
	if !listing.Complete {
		r.notWhole(folder, "the server seems to hold back items of it")
	} else {
		r.listed[r.relative(folder)] = true
	}
	return folders, nil
}

// notWhole notes that something of a folder is not known.
func (r *treeReader) notWhole(folder zvm.Item, reason string) {
	at := r.relative(folder)
	item := r.items[at]
	item.Unread = reason
	r.items[at], r.whole = item, false
}

func (r *treeReader) relative(i zvm.Item) string {
	if i.Path == r.side.GuestPath {
		return "."
	}
	if r.side.GuestPath == "" {
		return i.Path
	}
	return strings.TrimPrefix(i.Path, r.side.GuestPath+"/")
}

// take takes one item in, with its content if it is a small file.
func (r *treeReader) take(ctx context.Context, i zvm.Item) error {
	listed := listedItem(i)
	item := treeItem{
		ItemState: ItemState{Type: i.Type, Bytes: listed.Bytes, Written: listed.Written},
		folder:    i.Browsable, file: i.Downloadable && !i.Browsable,
	}
	switch {
	case i.Browsable:
	case !i.Downloadable:
		item.Unread = cmp.Or(i.Reason, "the server does not say why it cannot be read")
		r.whole = r.whole && i.Type == "File" // a folder may hide anything
	case i.Size < 0:
		item.Unread = "the server does not tell its size"
	case i.Size > r.o.hashUpTo:
		item.Unread = fmt.Sprintf("it is larger than %d bytes", r.o.hashUpTo)
	default:
		if err := r.read(ctx, i, &item.ItemState); err != nil {
			return err
		}
	}
	r.items[r.relative(i)] = item
	return nil
}

func (r *treeReader) read(ctx context.Context, i zvm.Item, state *ItemState) error {
	var content bytes.Buffer
	to := io.Discard
	keep := r.o.contents && r.kept+i.Size <= MaxDiffContents
	if keep {
		to = &content
	}
	_, sum, err := r.s.download(ctx, r.m, i, ToWriter(to))
	if err != nil {
		state.Unread, err = r.m.refusal(ctx, err)
		return err
	}
	state.SHA256 = sum
	if keep && (r.earlier == nil || r.earlier.items[r.relative(i)].SHA256 != sum) {
		state.Content = content.Bytes()
		r.kept += i.Size
	}
	return nil
}
