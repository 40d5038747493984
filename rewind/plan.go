package rewind

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Effect is what putting a file back would do to the guest.
type Effect string

// The values of [Plan.Effect].
const (
	// EffectNone means that the guest holds the pinned content already.
	EffectNone Effect = "nothing"
	// EffectUndoes means that the guest holds exactly what the later guard pinned: nothing that was written after it is lost.
	EffectUndoes Effect = "undoes-change"
	// EffectDestroys means that the guest holds neither what the guard pinned nor what the later guard did: an edit that
	// was made after the change would be lost.
	EffectDestroys Effect = "destroys-later-edit"
	// EffectUnknown means that the file differs, and that without a later guard nobody can tell a later edit from the
	// change. It is not safe.
	EffectUnknown Effect = "unknown"
)

// Plan is what putting one file back would do. Nothing was written to the guest, and nothing is by making one.
type Plan struct {
	VM     string        `json:"vm"`
	VMID   zvm.VMID      `json:"vmId"`
	Path   string        `json:"path"` // as it was asked for
	Effect Effect        `json:"effect"`
	Reason string        `json:"reason"` // for people
	Pinned PinnedContent `json:"pinned"`
	Live   LiveContent   `json:"live"` // as the caller told it
	// After is what the later guard pinned. It is nil, and left out of JSON, when none was given or none had to be read.
	After *PinnedContent `json:"after,omitempty"`
}

// PinnedContent is the content of one file as a guard pinned it.
type PinnedContent struct {
	ChangeID     string           `json:"changeId"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	// RecoverySiteID is as in [Recovery].
	RecoverySiteID zvm.SiteID `json:"recoverySiteId,omitempty"`
	Tag            string     `json:"tag"`
	// CheckpointTime is the server's.
	CheckpointTime time.Time `json:"checkpointTime"`
	// Exists is false when the path was looked for and is not there; the fields of the file are empty then.
	Exists       bool          `json:"exists"`
	GuestPath    string        `json:"guestPath"` // as in [Recovery.GuestPath]
	Bytes        int64         `json:"bytes"`
	SHA256       string        `json:"sha256"`            // hexadecimal
	Written      *time.Time    `json:"written,omitempty"` // nil when unknown
	FLRSessionID zvm.SessionID `json:"flrSessionId"`
	Unmounted    bool          `json:"unmounted"`
}

// LiveContent is what a file holds in the guest now, as the caller knows it: this package never reads a running guest.
// The zero value says that there is no such file.
type LiveContent struct {
	Exists bool   `json:"exists"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// LiveBytes is the content of a file that was read in the guest.
func LiveBytes(content []byte) LiveContent {
	sum := sha256.Sum256(content)
	return LiveContent{Exists: true, SHA256: hex.EncodeToString(sum[:])}
}

func (l LiveContent) check() error {
	sum, err := hex.DecodeString(l.SHA256)
	switch {
	case l.Exists && (err != nil || len(sum) != sha256.Size):
		return fmt.Errorf("rewind: %q is not a SHA-256 in hexadecimal", l.SHA256)
	case !l.Exists && l.SHA256 != "":
		return errors.New("rewind: live content that does not exist has no SHA-256")
	}
	return nil
}

// PlanOption configures one [Session.Plan]. A [PlaceOption] is one too, and counts for both guards.
type PlanOption interface{ applyToPlan(*planOptions) }

type planOptions struct {
	places []PlaceOption
	after  *Guard
	later  bool
}

type planOption func(*planOptions)

func (f planOption) applyToPlan(o *planOptions) { f(o) }

func (f PlaceOption) applyToPlan(o *planOptions) { o.places = append(o.places, f) }

// ChangedBy gives the guard that was made when the change was done, which tells the change from later edits. What was
// written between the two guards counts as the change, whoever wrote it. Its checkpoint has to be later than that of the
// guard that is planned with.
func ChangedBy(after *Guard) PlanOption {
	return planOption(func(o *planOptions) { o.after, o.later = after, true })
}

// Plan tells what putting one file back as a guard pinned it would do, given what the guest holds now. It mounts and
// closes as [Session.Recover] does, the later guard of [ChangedBy] after the first, and only when that can matter. The
// file is read whole, whatever its size, and kept nowhere.
//
// A file that the guard does not have was made after it: putting back what was pinned means to remove it. What the guest
// holds can change between its reading and the putting back; whoever puts a file back looks once more.
//
// Errors: those of Recover, for either guard, and [*AmbiguousPathError] as well when the path leads to another partition
// after the change than before it, and when it was not found but may have been there ([PathNotFoundError.Doubt]). A
// [*LeftOpenError] may come with a result.
func (s *Session) Plan(ctx context.Context, g *Guard, guestPath string, live LiveContent, opts ...PlanOption) (*Plan, error) {
	wanted, err := parseGuestPath(guestPath)
	if err != nil {
		return nil, err
	}
	if err := live.check(); err != nil {
		return nil, err
	}
	var o planOptions
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("rewind: an option is nil")
		}
		opt.applyToPlan(&o)
	}
	from, to, err := s.choosePlan(ctx, g, o)
	if err != nil {
		return nil, err
	}
	p := &Plan{VM: from.vms[0].Name, VMID: from.vms[0].ID, Path: guestPath, Live: live}
	pinned, missing, err := s.readPinned(ctx, from, g.record.ChangeID, wanted)
	if pinned == nil {
		return nil, err
	}
	p.Pinned = *pinned
	found := ""
	if o.later && (!p.Pinned.is(live) || missing.unless("") != nil) {
		if err != nil {
			return nil, err // what is still mounted is in the way of a second mount
		}
		var missingAfter *PathNotFoundError
		if p.After, missingAfter, err = s.readPinned(ctx, to, o.after.record.ChangeID, wanted); p.After == nil {
			return nil, err
		}
		found = p.After.GuestPath
		if a, b := p.Pinned.GuestPath, found; p.Pinned.Exists && p.After.Exists && a != b {
			return nil, errors.Join(&AmbiguousPathError{Path: guestPath, Hits: []string{a, b}}, err)
		}
		if doubt := missingAfter.unless(p.Pinned.GuestPath); doubt != nil {
			return nil, errors.Join(doubt, err)
		}
	}
	if doubt := missing.unless(found); doubt != nil {
		return nil, errors.Join(doubt, err)
	}
	p.judge()
	return p, err
}

// choosePlan picks what is mounted. Without a later guard there is nothing to mount for one.
func (s *Session) choosePlan(ctx context.Context, g *Guard, o planOptions) (from, to covered, err error) {
	if !o.later {
		from, err = s.chooseMount(ctx, g, o.places)
		return from, to, err
	}
	if from, to, err = s.chooseBoth(ctx, g, o.after, o.places); err != nil {
		return from, to, err
	}
	// The server tells whole seconds. Which of two guards within one is the later is not known, and the wrong order would
	// take a change for its undoing.
	if !to.Timestamp.After(from.Timestamp) {
		err = fmt.Errorf("rewind: the checkpoint of change %s is not later than that of change %s",
			shown(o.after.record.ChangeID), shown(g.record.ChangeID))
	}
	return from, to, err
}

func (p *Plan) judge() {
	p.Effect = EffectUnknown
	p.Reason = "the file differs, and without a later guard nobody can tell whether this change or a later edit made it so"
	switch {
	case p.Pinned.is(p.Live):
		p.Effect, p.Reason = EffectNone, "the guest holds what was pinned"
	case p.After == nil:
	case p.After.is(p.Live):
		p.Effect, p.Reason = EffectUndoes, "the guest holds what the later guard pinned, and nothing that was written since"
	default:
		p.Effect, p.Reason = EffectDestroys, "the file was edited after the later guard: that edit would be lost"
	}
	if p.Effect != EffectNone && !p.Pinned.Exists {
		p.Reason += "; it was not there when it was pinned, so to put that back is to remove it"
	}
}

func (c PinnedContent) is(l LiveContent) bool {
	return c.Exists == l.Exists && (!c.Exists || equalHex(c.SHA256, l.SHA256))
}

// equalHex takes upper case too, which some tools print.
func equalHex(a, b string) bool {
	x, errX := hex.DecodeString(a)
	y, errY := hex.DecodeString(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// readPinned mounts a checkpoint and reads one file whole, or tells how it is missing. A result may come with the error of
// closing the session.
func (s *Session) readPinned(
	ctx context.Context, from covered, changeID string, wanted guestPath,
) (c *PinnedContent, missing *PathNotFoundError, err error) {
	c = &PinnedContent{
		ChangeID: changeID, VPGID: from.VPGID, CheckpointID: from.CheckpointID, Tag: from.Tag, CheckpointTime: from.Timestamp,
		RecoverySiteID: from.at.site,
	}
	done := false
	c.FLRSessionID, c.Unmounted, err = s.withMount(ctx, from, func(ctx context.Context, m mounted) error {
		item, err := m.locate(ctx, wanted)
		switch {
		case errors.As(err, &missing) && len(missing.Roots) > 0:
			done = true
			return nil
		case err != nil:
			return err
		case item.Browsable:
			return &NotDownloadableError{Path: item.Path, Reason: ErrFolder.Error(), kind: ErrFolder}
		case !item.Downloadable:
			return &NotDownloadableError{Path: item.Path, Reason: item.Reason}
		}
		c.Exists, c.GuestPath, c.Written = true, item.Path, listedItem(item).Written
		err = s.metered(m, item.Size, func(m mounted) (err error) {
			c.Bytes, c.SHA256, err = s.download(ctx, m, item, ToWriter(io.Discard))
			return err
		})
		done = err == nil
		return err
	})
	if !done {
		return nil, nil, err
	}
	return c, missing, err
}
