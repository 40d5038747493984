package rewind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// TreeRecovery is the evidence of a folder brought back.
type TreeRecovery struct {
	ChangeID       string           `json:"changeId"`
	VM             string           `json:"vm"`
	VMID           zvm.VMID         `json:"vmId"`
	VPGID          zvm.VPGID        `json:"vpgId"`
	CheckpointID   zvm.CheckpointID `json:"checkpointId"`
	RecoverySiteID zvm.SiteID       `json:"recoverySiteId,omitempty"` // as in [Recovery]
	Tag            string           `json:"tag"`
	CheckpointTime time.Time        `json:"checkpointTime"` // the server's
	// GuestPath is the folder's path in the session, which starts with the partition.
	GuestPath string      `json:"guestPath"`
	Dest      string      `json:"dest"` // the folder that it was written to, as its caller named it
	Files     []TreeFile  `json:"files"`
	Folders   int         `json:"folders"` // below the one that was asked for
	Bytes     int64       `json:"bytes"`   // of all files
	Skipped   []TreeOmits `json:"skipped"` // empty when everything came back
	// FLRSessionID is the session, which the server no longer lists once Unmounted is true.
	FLRSessionID zvm.SessionID `json:"flrSessionId"`
	Unmounted    bool          `json:"unmounted"`
	// Stages are the steps in the order in which they were done. The download includes the listing of what is in the folder.
	Stages []StageTime `json:"stages"`
	// Pinned is the guard that [PinFirst] made, nil, and left out of JSON, without it.
	Pinned *GuardRecord `json:"pinned,omitempty"`
}

// TreeFile is one file of a [TreeRecovery], whole.
type TreeFile struct {
	GuestPath string `json:"guestPath"`
	Dest      string `json:"dest"` // below the destination folder, with "/" between its parts
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"` // hexadecimal
	// Written is when the guest last wrote the file, nil, and left out of JSON, when the server does not say.
	Written *time.Time `json:"written,omitempty"`
}

// TreeOmits is an item that a [TreeRecovery] left out, with all below it, and why: in the server's words where it gives any.
type TreeOmits struct {
	GuestPath string `json:"guestPath"`
	Reason    string `json:"reason"`
}

// RecoverTree brings a folder of a guarded VM back, with all below it, into the folder root, which the caller keeps open.
// It mounts, finds the path and closes as [Session.Recover] does, with the same errors, and pins first when told to.
//
// Every file arrives whole or not at all, with mode 0600, and none replaces what is there: that is a
// [*DestinationError] which matches [fs.ErrExist]. Folders are made with mode 0700, or used when they are there; links are
// never made, and one that is in a folder's place is not followed.
//
// What cannot come back is left out and listed in Skipped, which is no error: what the server does not hand out, names that
// mean something else on one operating system or another, and names of one folder that differ in case alone, or not at all in
// the form of [WithNormalForm], all of them.
//
// Several items are asked for at once, and the result lists them by folder and name.
//
// Any other error ends the work. The result beside it then tells what has arrived, and is nil when the folder was not found.
// The data takes constant memory; the result grows with the number of files.
func (s *Session) RecoverTree(ctx context.Context, g *Guard, path string, root *os.Root, opts ...PlaceOption) (*TreeRecovery, error) {
	if root == nil {
		return nil, errors.New("rewind: RecoverTree needs a folder to write to")
	}
	opts, first := withoutPinFirst(opts)
	times := startLaps()
	wanted, from, err := s.chooseItem(ctx, g, path, opts)
	if err != nil {
		return nil, err
	}
	times.end("check")
	r := &TreeRecovery{
		ChangeID: g.record.ChangeID, VM: from.vms[0].Name, VMID: from.vms[0].ID, VPGID: from.VPGID, CheckpointID: from.CheckpointID,
		RecoverySiteID: from.at.site, Tag: from.Tag, CheckpointTime: from.Timestamp,
		Dest: root.Name(), Files: []TreeFile{}, Skipped: []TreeOmits{},
	}
	if first {
		if r.Pinned, err = s.pin(ctx, from.vms[0], r.ChangeID); err != nil {
			return nil, err
		}
		times.end("pin")
	}
	found := false
	r.FLRSessionID, r.Unmounted, err = s.withMount(ctx, from, func(ctx context.Context, m mounted) error {
		times.end("mount")
		top, err := m.locate(ctx, wanted)
		if err != nil {
			return err
		}
		if !top.Browsable {
			return &NotDownloadableError{Path: top.Path, Reason: firstNonEmpty(top.Reason, ErrNotFolder.Error()), kind: ErrNotFolder}
		}
		found, r.GuestPath = true, top.Path
		times.end("browse")
		defer times.end("download")
		defer r.sort()
		return s.metered(m, -1, func(m mounted) error {
			t := &treeWork{s: s, m: m, r: r, crew: newCrew(), company: newCompany()}
			return t.fill(ctx, branch{from: top.Path, into: root})
		})
	})
	times.end("unmount")
	if !found {
		return nil, pinnedAllTheSame(r.Pinned, err)
	}
	r.Stages = times.times
	return r, err
}

// deepest bounds how far folders are followed: each holds a handle, and a file system that holds itself has no end.
const deepest = 128

// treeWork brings one folder back, several items at once.
type treeWork struct {
	s    *Session
	m    mounted
	crew crew

	// oneByOne is true once the server did not send several files at once in a way that is of use.
	oneByOne atomic.Bool
	company  company

	mu sync.Mutex
	r  *TreeRecovery
}

// branch is one folder of the guest and the one that it is written to.
type branch struct {
	from  string // in the session
	to    string // below the destination folder
	into  *os.Root
	depth int
}

func (t *treeWork) skip(guestPath, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.r.Skipped = append(t.r.Skipped, TreeOmits{guestPath, firstNonEmpty(reason, "the server gives no reason")})
}

// skipRefused lists an item that the server refuses, and returns what is wrong with more than that.
func (t *treeWork) skipRefused(ctx context.Context, guestPath string, err error) error {
	reason, err := t.m.refusal(ctx, err)
	if err == nil {
		t.skip(guestPath, reason)
	}
	return err
}

// fill writes a folder's files, then its folders.
func (t *treeWork) fill(ctx context.Context, b branch) error {
	listing, err := t.m.listFolder(ctx, b.from)
	if err != nil {
		return t.skipRefused(ctx, b.from, err)
	}
	if !listing.Complete {
		t.skip(b.from, "the server lists only some of what the folder holds")
	}
	var files, folders []zvm.Item
	alike := countFolded(listing.Items, t.s.normal)
	for _, i := range listing.Items {
		unsafe := whyUnsafe(i.Name())
		switch {
		case !i.Browsable && !i.Downloadable:
			t.skip(i.Path, i.Reason)
		case unsafe != "":
			t.skip(i.Path, unsafe)
		case alike[folded(t.s.normal.of(i.Name()))] > 1:
			t.skip(i.Path, "another name in the folder differs in case alone, or looks the same")
		case !i.Browsable:
			files = append(files, i)
		case b.depth == deepest:
			t.skip(i.Path, "it lies too deep")
		default:
			folders = append(folders, i)
		}
	}
	defer syncFolder(b.into) // once for all names in it
	if err := t.bringFiles(ctx, b, files); err != nil {
		return err
	}
	return t.crew.each(ctx, len(folders), func(ctx context.Context, i int) error { return t.bringFolder(ctx, b, folders[i]) })
}

func (t *treeWork) bringFolder(ctx context.Context, b branch, folder zvm.Item) error {
	name := folder.Name()
	below := branch{from: folder.Path, to: path.Join(b.to, name), depth: b.depth + 1}
	var err error
	if below.into, err = enterFolder(b.into, name); err != nil {
		return &DestinationError{Dest: below.to, Err: err}
	}
	defer below.into.Close() //nolint:errcheck // a handle of a folder, through which nothing is written
	t.mu.Lock()
	t.r.Folders++
	t.mu.Unlock()
	return t.fill(ctx, below)
}

// enterFolder makes and opens a folder. A link is refused; one that is put there meanwhile leads nowhere outside the root.
func enterFolder(in *os.Root, name string) (*os.Root, error) {
	if err := in.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return openFolder(name, in.Lstat, in.OpenRoot)
}

// bringFile downloads one file by itself.
func (t *treeWork) bringFile(ctx context.Context, b branch, file zvm.Item) error {
	var n int64
	var sum string
	err := t.company.do(ctx, func() (err error) {
		n, sum, err = t.s.download(ctx, t.m, file, toBranch(b, file))
		return err
	})
	if err != nil {
		return t.skipRefused(ctx, file.Path, err)
	}
	t.arrived(b, file, n, sum)
	return nil
}

// toBranch leaves the syncing of the folder to whoever fills it.
func toBranch(b branch, file zvm.Item) Sink { return ToRoot(b.into, file.Name(), syncedLater) }

func (t *treeWork) arrived(b branch, file zvm.Item, n int64, sum string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.r.Bytes += n
	t.m.meter.reached(t.r.Bytes) // those that came in a zip are counted here
	t.r.Files = append(t.r.Files, TreeFile{
		GuestPath: file.Path, Dest: path.Join(b.to, file.Name()), Bytes: n, SHA256: sum, Written: known(file.Written),
	})
}

// sort puts in order what arrived in any.
func (r *TreeRecovery) sort() {
	slices.SortFunc(r.Files, func(a, b TreeFile) int { return comparePaths(a.GuestPath, b.GuestPath) })
	slices.SortFunc(r.Skipped, func(a, b TreeOmits) int { return comparePaths(a.GuestPath, b.GuestPath) })
}

func comparePaths(a, b string) int {
	return cmp.Or(strings.Compare(path.Dir(a), path.Dir(b)), strings.Compare(a, b))
}

// refusal turns an error that concerns one item alone into the reason why that is not read, and returns every other. Not
// found is another: the item was just listed, so that it is the session that is gone. Some servers refuse everything in
// the same way then (zvm-wire 9), so that a refusal counts only while the session is there.
func (m mounted) refusal(ctx context.Context, err error) (reason string, _ error) {
	var item *NotDownloadableError
	var answer *zvm.Error
	switch {
	case errors.Is(err, zvm.ErrSessionPath):
		return "its path cannot be asked for in an FLR session", nil
	case errors.As(err, &item):
		reason = item.Reason
	case refusedByServer(err) && errors.As(err, &answer):
		reason = firstNonEmpty(answer.Message, answer.Error())
	default:
		return "", err
	}
	switch now, failed := m.at.zvm.GetFLRSession(ctx, m.session); {
	case failed != nil:
		return "", fmt.Errorf("%w (and looking at the session: %w)", err, failed)
	case !now.Ready():
		return "", fmt.Errorf("%w (the session is %s)", err, shown(now.Status))
	}
	return firstNonEmpty(reason, "the server gives no reason"), nil
}

func refusedByServer(err error) bool {
	var answer *zvm.Error
	return errors.As(err, &answer) && (answer.Status == http.StatusBadRequest || answer.Status == http.StatusInternalServerError)
}
