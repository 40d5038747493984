package rewind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Session is the only door to the rewind loop on one ZVM. It is immutable and safe for concurrent use. Two sessions know
// nothing of each other; within one, inserts at the same VPG take turns.
type Session struct {
	zvm      *zvm.Client
	agent    string
	human    string
	schedule task.Schedule
	limits   Limits
	parallel int
	progress func(Event)
	// tellOpened is told what WithOpened promises.
	tellOpened func(Opened)
	normal     normalForm
	// sites are the ZVMs of other sites, and site is the one of them that this session is on, empty for none.
	sites []*recoverySite
	site  zvm.SiteID

	inventory *coalescer[inventory]
	turns     *turns
	inserts   *pace
	mounts    *mounts
	mountPace *pace
}

// Limits bound the waits that have no end of their own. A context that ends earlier wins. Zero fields take the values
// given below.
type Limits struct {
	// Listing is how long a tag may take to show up in the journal after its task completed: 3 min. An earlier client
	// that gave up after 45 s was wrong to (zvm-wire 13).
	Listing time.Duration
	// Reconcile is how long the effect of a write whose answer was lost is looked for: 1 min.
	Reconcile time.Duration
	// Settle is how long the tag of a change that was named is looked for after an insert that may have been its own: 30 s.
	Settle time.Duration
	// Mount is how long an FLR mount may take: 10 min.
	Mount time.Duration
	// Unmount is how long closing a session may take, which happens on a context of its own: 1 min.
	Unmount time.Duration
	// Abandon is how long a failover test whose caller has left is followed until it is stopped: 10 min.
	Abandon time.Duration
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		limit *time.Duration
		value time.Duration
	}{
		{&l.Listing, 3 * time.Minute},
		{&l.Reconcile, time.Minute},
		{&l.Settle, 30 * time.Second},
		{&l.Mount, 10 * time.Minute},
		{&l.Unmount, time.Minute},
		{&l.Abandon, 10 * time.Minute},
	} {
		if *d.limit == 0 {
			*d.limit = d.value
		}
	}
	return l
}

// Option configures a [Session].
type Option func(*Session) error

// WithAgent names the agent whose changes this session guards. The name goes into every tag.
func WithAgent(name string) Option {
	return func(s *Session) error { s.agent = name; return nil }
}

// WithHuman names the person the agent works for. It goes into guard records, not into tags.
func WithHuman(name string) Option {
	return func(s *Session) error { s.human = name; return nil }
}

// WithSchedule sets how often the session looks at what is under way. Its Expected is ignored: the session learns that
// from what it sees.
func WithSchedule(schedule task.Schedule) Option {
	return func(s *Session) error { s.schedule = schedule; return nil }
}

// WithLimits bounds the session's waits.
func WithLimits(limits Limits) Option {
	return func(s *Session) error { s.limits = limits.withDefaults(); return nil }
}

// WithParallel sets at how many VPGs one call works at once. The default is 8.
func WithParallel(vpgs int) Option {
	return func(s *Session) error {
		if vpgs < 1 {
			return fmt.Errorf("rewind: WithParallel(%d): at least one VPG has to be worked at", vpgs)
		}
		s.parallel = vpgs
		return nil
	}
}

// WithProgress has f told of every step, beside whoever is told already. It is called from several goroutines, at once when
// a change concerns several VPGs, and a panic in it is swallowed: looking on must not cost a guard, or leave a mount open.
// Steps wait until it returns; bytes that are being downloaded do not.
func WithProgress(f func(Event)) Option {
	return func(s *Session) error {
		if f == nil {
			return errors.New("rewind: WithProgress needs a function")
		}
		others := s.progress
		s.progress = func(e Event) {
			others(e)
			defer func() { _ = recover() }()
			f(e)
		}
		return nil
	}
}

// WithNormalForm has names of a guest compared in a normal form: a letter with an accent is one character or two, which no
// person tells apart, and guests have both. Give it NFC of golang.org/x/text/unicode/norm, say. What is sent to the server
// is always the server's own spelling. Two names of one folder that are the same in normal form are an
// [*AmbiguousPathError] to a path that does not start with a partition.
//
// Without it, names that are spelt in two ways are two names.
func WithNormalForm(of func(name string) string) Option {
	return func(s *Session) error {
		if of == nil {
			return errors.New("rewind: WithNormalForm needs a function")
		}
		s.normal = of
		return nil
	}
}

// NewSession returns a session on the ZVM that client talks to. It does no I/O.
func NewSession(client *zvm.Client, opts ...Option) (*Session, error) {
	if client == nil {
		return nil, errors.New("rewind: a session needs a client")
	}
	s := &Session{
		zvm:        client,
		limits:     Limits{}.withDefaults(),
		parallel:   8,
		progress:   func(Event) {},
		tellOpened: func(Opened) {},
		turns:      &turns{},
		inserts:    &pace{},
		mounts:     &mounts{},
		mountPace:  &pace{},
	}
	if err := s.apply(opts); err != nil {
		return nil, err
	}
	s.inventory = &coalescer[inventory]{fetch: s.readInventory}
	return s, nil
}

// With returns a session that differs in the given options, for one call that is to be watched, say. Both take the same
// turns at each VPG and learn from each other.
func (s *Session) With(opts ...Option) (*Session, error) {
	derived := *s
	if err := derived.apply(opts); err != nil {
		return nil, err
	}
	return &derived, nil
}

func (s *Session) apply(opts []Option) error {
	for _, o := range opts {
		if o == nil {
			return errors.New("rewind: an option is nil")
		}
		if err := o(s); err != nil {
			return err
		}
	}
	return nil
}

// TaskStatus looks once at a Zerto task, such as one that a [*PartialGuardError] names. One that the server does not know
// is a [zvm.ErrNotFound].
func (s *Session) TaskStatus(ctx context.Context, id zvm.TaskID) (task.Status, error) {
	return s.zvm.TaskStatus(ctx, id)
}

// Agent returns the name given by [WithAgent].
func (s *Session) Agent() string { return s.agent }

// Stage is a step of the loop.
type Stage string

// The stages a session tells of, in the order in which they happen to one VPG.
const (
	StageFound     Stage = "found"
	StageInserting Stage = "inserting"
	StageTask      Stage = "task"
	StageListed    Stage = "listed"
	StageProven    Stage = "proven"
	StageMounting  Stage = "mounting"
	StageMounted   Stage = "mounted"
	// StageDownloading is told when a download starts, with no bytes yet, and from time to time with more of them.
	StageDownloading Stage = "downloading"
	// StageDownloaded is told once, when every byte has arrived where it was to go.
	StageDownloaded Stage = "downloaded"
	StageUnmounted  Stage = "unmounted"
)

// Event is one step, with the evidence at hand. Fields that do not apply are zero.
type Event struct {
	Stage      Stage
	VM         VM
	VPGName    string
	Task       task.Status
	Tag        string
	Checkpoint zvm.CheckpointID
	Session    zvm.SessionID
	// Bytes have arrived, of Total, which is -1 when it is not known: of a folder, and where the server does not tell. Rate
	// is in bytes per second, on average since the download started.
	Bytes, Total int64
	Rate         float64
}
