package ledger

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Server is what a ledger is compared with. [zvm.Client] is one.
type Server interface {
	GetServerTime(ctx context.Context) (time.Time, error)
	ListVPGs(ctx context.Context, filter zvm.VPGFilter) ([]zvm.VPG, error)
	ListCheckpoints(ctx context.Context, vpg zvm.VPGID, window zvm.Window) iter.Seq2[zvm.Checkpoint, error]
	ListTasks(ctx context.Context, filter zvm.TaskFilter) ([]zvm.Task, error)
	ListEvents(ctx context.Context, filter zvm.EventFilter) ([]zvm.Event, error)
}

var _ Server = (*zvm.Client)(nil)

// DifferenceKind says in which way ledger and server differ.
type DifferenceKind string

// The kinds.
const (
	// ChangeWithoutGuard is a call that was let run, by an approval or a person's yes, and that no guard can take back.
	ChangeWithoutGuard DifferenceKind = "change_without_guard"
	// GuardWithoutChange is a guard for which no call is known to have run: the change was never made, or made where
	// nothing judges calls.
	GuardWithoutChange DifferenceKind = "guard_without_change"
	// VanishedCheckpoint is a checkpoint of a guard that the journal does not hold any more.
	VanishedCheckpoint DifferenceKind = "vanished_checkpoint"
	// ForeignTag is a checkpoint whose name begins as our tags do, and of which the ledger knows nothing: made on another
	// machine, or by somebody else.
	ForeignTag DifferenceKind = "foreign_tag"
	// MissingTags is a VPG at which the server's events count more inserts than its journal holds tagged checkpoints of
	// that time. A journal that does not reach back that far says nothing.
	MissingTags DifferenceKind = "missing_tags"
	// FailedInsert is a task that was to insert a tagged checkpoint and did not, or the event of one whose task the server
	// has forgotten.
	FailedInsert DifferenceKind = "failed_insert"
)

// Difference is one way in which ledger and server differ. Fields that do not apply are empty.
type Difference struct {
	Kind         DifferenceKind   `json:"kind"`
	At           time.Time        `json:"at"`
	ChangeID     string           `json:"changeId,omitempty"`
	VMs          []string         `json:"vms,omitempty"`
	VPGID        zvm.VPGID        `json:"vpgId,omitempty"`
	VPGName      string           `json:"vpgName,omitempty"`
	CheckpointID zvm.CheckpointID `json:"checkpointId,omitempty"`
	Tag          string           `json:"tag,omitempty"`
	TaskID       zvm.TaskID       `json:"taskId,omitempty"`
	Line         int64            `json:"line,omitempty"` // of the record
	What         string           `json:"what"`           // in words
}

// journalMargin is left around a moment in a journal, whose stamps are whole seconds and whose server has its own clock.
const journalMargin = 2 * time.Minute

// tagPrefix is how our tags begin.
const tagPrefix = "ai:"

// Reconcile compares the ledger with what the server tells of the time since ago: each VPG's journal, and the tasks and
// events of the inserts into them. It changes nothing. A journal that cannot be read is an error: nothing is concluded from half of
// them. Differences come by kind, and then by time.
func (l *Ledger) Reconcile(ctx context.Context, server Server, ago time.Duration) ([]Difference, error) {
	now, err := server.GetServerTime(ctx)
	if err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	claims, err := l.AllClaims(ctx, time.Time{})
	if err != nil {
		return nil, err
	}
	lines, err := l.ranSince(ctx, l.now().Add(-ago))
	if err != nil {
		return nil, err
	}
	r := &reconciliation{now: now, since: now.Add(-ago), short: map[zvm.VPGID]bool{}, claims: claims, lines: lines, standing: map[string]bool{}, vpgs: map[zvm.VPGID]bool{}, tags: map[zvm.VPGID]int{}, found: []Difference{}}
	if err := r.readJournals(ctx, server); err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	if err := r.readTasks(ctx, server); err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	if err := r.readEvents(ctx, server); err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	r.compareGuards()
	r.compareCalls()
	slices.SortStableFunc(r.found, func(a, b Difference) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), a.At.Compare(b.At), strings.Compare(a.ChangeID, b.ChangeID))
	})
	return r.found, nil
}

// ranSince returns the lines about calls that were let run.
func (l *Ledger) ranSince(ctx context.Context, since time.Time) ([]Line, error) {
	var ran []Line
	err := l.Lines(ctx, since, func(line Line) error {
		if line.Kind == gate.EventRan || line.Kind == gate.EventVerdict && line.Decision == gate.Allow.String() {
			ran = append(ran, line)
		}
		return nil
	})
	return ran, err
}

type reconciliation struct {
	now      time.Time          // server clock
	since    time.Time          // the same
	short    map[zvm.VPGID]bool // its journal does not reach back that far
	claims   []gate.Claim
	lines    []Line
	standing map[string]bool // by VPG and checkpoint
	vpgs     map[zvm.VPGID]bool
	tags     map[zvm.VPGID]int // tagged checkpoints since a margin before since: rather too many than too few
	found    []Difference
}

func pinKey(vpg zvm.VPGID, checkpoint zvm.CheckpointID) string {
	return string(vpg) + "/" + string(checkpoint)
}

func (r *reconciliation) knows(change string) bool {
	return slices.ContainsFunc(r.claims, func(c gate.Claim) bool { return c.Record.ChangeID == change })
}

func (r *reconciliation) readJournals(ctx context.Context, server Server) error {
	vpgs, err := server.ListVPGs(ctx, zvm.VPGFilter{})
	if err != nil {
		return err
	}
	for _, vpg := range vpgs {
		r.vpgs[vpg.ID] = true
		r.short[vpg.ID] = vpg.History.Configured > 0 && r.now.Add(-vpg.History.Configured).After(r.since)
		for cp, err := range server.ListCheckpoints(ctx, vpg.ID, zvm.Window{From: r.since.Add(-journalMargin)}) {
			if err != nil {
				return fmt.Errorf("journal of %s: %w", vpg.Name, err)
			}
			r.standing[pinKey(vpg.ID, cp.ID)] = true
			if cp.Tag != "" {
				r.tags[vpg.ID]++
			}
			if !strings.HasPrefix(strings.TrimSpace(cp.Tag), tagPrefix) || cp.Time.Before(r.since) {
				continue
			}
			tag, ours := rewind.ParseTag(cp.Tag)
			d := Difference{
				Kind: ForeignTag, At: cp.Time.UTC(), VPGID: vpg.ID, VPGName: vpg.Name, CheckpointID: cp.ID, Tag: cp.Tag,
				ChangeID: tag.Change, VMs: tag.VMs, What: "the ledger knows no guard of this change",
			}
			announced, mark := rewind.ParseMark(cp.Tag)
			switch {
			case mark && r.knows(announced):
				continue
			case !ours:
				d.What = "it begins as our tags do, and is none"
			case r.knows(tag.Change):
				continue
			}
			r.found = append(r.found, d)
		}
	}
	return nil
}

func (r *reconciliation) readTasks(ctx context.Context, server Server) error {
	tasks, err := server.ListTasks(ctx, zvm.TaskFilter{Type: zvm.TypeInsertTaggedCP, StartedAfter: r.since})
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.State.Terminal() && t.State != task.Completed && !t.Started.Before(r.since) {
			d := Difference{Kind: FailedInsert, At: t.Started.UTC(), TaskID: t.ID, What: t.State.String() + ": " + t.Reason}
			if len(t.VPGs) == 1 {
				d.VPGID = t.VPGs[0]
			}
			r.found = append(r.found, d)
		}
	}
	return nil
}

// readEvents looks at the server's own record, which outlives the tasks.
func (r *reconciliation) readEvents(ctx context.Context, server Server) error {
	events, err := server.ListEvents(ctx, zvm.EventFilter{Type: zvm.EventInsertTaggedCP, After: r.since})
	if err != nil {
		return err
	}
	inserted := map[zvm.VPGID]int{}
	failures := map[zvm.VPGID]int{}
	for _, d := range r.found {
		if d.Kind == FailedInsert {
			failures[d.VPGID]++
		}
	}
	for _, e := range events {
		if len(e.VPGs) != 1 {
			continue // of which journal it speaks cannot be told
		}
		vpg := e.VPGs[0]
		switch {
		case e.Succeeded:
			inserted[vpg]++
		case failures[vpg] > 0:
			failures[vpg]-- // its task was seen
		default:
			r.found = append(r.found, Difference{
				Kind: FailedInsert, At: e.Occurred.UTC(), VPGID: vpg, What: "the server's events tell of an insert that failed: " + e.Description,
			})
		}
	}
	for _, vpg := range slices.Sorted(maps.Keys(inserted)) {
		if inserted[vpg] > r.tags[vpg] && !r.short[vpg] {
			r.found = append(r.found, Difference{
				Kind: MissingTags, At: r.since.UTC(), VPGID: vpg,
				What: fmt.Sprintf("the server's events tell of %d inserts, and the journal holds %d tagged checkpoints", inserted[vpg], r.tags[vpg]),
			})
		}
	}
	return nil
}

// compareGuards looks for each checkpoint of each guard, once for a guard of several VMs.
func (r *reconciliation) compareGuards() {
	seen := map[string]bool{}
	for _, c := range r.claims {
		record := c.Record
		if seen[record.ChangeID] || len(record.Checkpoints) == 0 || record.Checkpoints[0].Timestamp.Before(r.since) {
			continue
		}
		seen[record.ChangeID] = true
		d := Difference{At: record.Checkpoints[0].Timestamp, ChangeID: record.ChangeID, VMs: vmNames(record)}
		for _, p := range record.Checkpoints {
			if r.standing[pinKey(p.VPGID, p.CheckpointID)] {
				continue
			}
			gone := d
			gone.Kind, gone.VPGID, gone.VPGName, gone.CheckpointID, gone.Tag = VanishedCheckpoint, p.VPGID, p.VPGName, p.CheckpointID, p.Tag
			gone.What = "the journal holds it no more"
			if !r.vpgs[p.VPGID] {
				gone.What = "the ZVM does not list its VPG"
			}
			r.found = append(r.found, gone)
		}
		if !slices.ContainsFunc(r.lines, func(l Line) bool { return slices.Contains(l.Changes, record.ChangeID) }) {
			d.Kind, d.What = GuardWithoutChange, "no call is known to have run under it"
			r.found = append(r.found, d)
		}
	}
}

// compareCalls looks for the guard of each call that was let run. One without any is a checkpoint tool unless a person let it run.
func (r *reconciliation) compareCalls() {
	for _, l := range r.lines {
		if len(l.Changes) == 0 && (l.Approval != "" || l.Kind == gate.EventRan) {
			r.found = append(r.found, Difference{
				Kind: ChangeWithoutGuard, At: l.At, VMs: l.Targets, Line: l.Seq,
				What: fmt.Sprintf("%s/%s was let run because a person said so, and without a guard", l.Server, l.Tool),
			})
		}
	}
}
