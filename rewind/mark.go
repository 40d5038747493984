package rewind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// mark is what a session writes into a VPG's journal, as the name of a checkpoint, before it starts a failover test or a
// clone there. A server says neither whose a running test is, nor of which checkpoint, nor how long it is wanted
// (zvm-wire 7.2), and the same of a clone; the mark says so to every process, and outlives the one that wrote it.
//
//	mark = "ai:" agent " | " what " | until=" ( time / "-" ) " | change=" change " | " time
//	what = ( "test" / "clone" ) " of " checkpoint / "no " ( "test" / "clone" )
//
// "no test" takes the mark before it back: nothing was started. Fields and times are written as in a [Tag], which a mark
// is not: it guards nothing, and neither reads as the other.
type mark struct {
	agent      string
	kind       LeftoverKind     // LeftTest or LeftClone
	checkpoint zvm.CheckpointID // empty when nothing was started
	until      time.Time        // whole seconds, UTC; zero when there is no deadline
	change     string
	at         time.Time // whole seconds, UTC, before the start
}

const (
	markUntil          = "until="
	maxCheckpointBytes = 32
)

func (m mark) String() string {
	what := "no " + string(m.kind)
	if m.checkpoint != "" {
		what = string(m.kind) + " of " + encodeField(string(m.checkpoint), maxCheckpointBytes)
	}
	until := "-"
	if !m.until.IsZero() {
		until = m.until.UTC().Format(tagTime)
	}
	return strings.Join([]string{
		tagPrefix + encodeField(m.agent, maxAgentBytes), what, markUntil + until,
		"change=" + encodeField(m.change, maxChangeBytes), m.at.UTC().Format(tagTime),
	}, tagSeparator)
}

// ParseMark reads the name of a checkpoint that announces a failover test or a clone, and returns the id of the change that
// it belongs to. It reports false for every other name.
func ParseMark(name string) (changeID string, ok bool) {
	m, ok := parseMark(name)
	return m.change, ok
}

// parseMark reads a checkpoint's name. It reports false for every name that is not a whole mark.
func parseMark(name string) (mark, bool) {
	parts := strings.Split(strings.TrimSpace(name), tagSeparator)
	if len(parts) != 5 {
		return mark{}, false
	}
	agent, isOurs := strings.CutPrefix(parts[0], tagPrefix)
	until, hasUntil := strings.CutPrefix(parts[2], markUntil)
	change, hasChange := strings.CutPrefix(parts[3], "change=")
	at, err := time.Parse(tagTime, parts[4])
	if !isOurs || !hasUntil || !hasChange || err != nil {
		return mark{}, false
	}
	m := mark{agent: decodeField(agent), change: decodeField(change), at: at}
	if until != "-" {
		if m.until, err = time.Parse(tagTime, until); err != nil {
			return mark{}, false
		}
	}
	if kind, none := strings.CutPrefix(parts[1], "no "); none {
		m.kind = LeftoverKind(kind)
	} else {
		kind, checkpoint, _ := strings.Cut(parts[1], " of ")
		m.kind, m.checkpoint = LeftoverKind(kind), zvm.CheckpointID(decodeField(checkpoint))
		if m.checkpoint == "" {
			return mark{}, false
		}
	}
	return m, m.kind == LeftTest || m.kind == LeftClone
}

// For has [Session.StartTest] and [Session.Clone] note a deadline at the server, by the server's clock, after which
// [Session.Sweep] ends what still runs, in whatever process. A clone is not waited for beyond it either; a test is left to
// its caller to stop, and has [DefaultTestDeadline] without this option. The journal forgets the deadline with age, as it
// does every checkpoint: one beyond the VPG's history is kept by the caller alone. Nothing else takes this option.
func For(d time.Duration) PlaceOption { return func(p *place) { p.lasts = &d } }

// errFor refuses the option where it would be ignored: whoever gives it counts on an end.
var errFor = errors.New("rewind: For is an option of StartTest and Clone alone")

// withoutFor takes [For] out of the options of a start; zero means that it was not given.
func withoutFor(opts []PlaceOption) (others []PlaceOption, lasts time.Duration, err error) {
	for _, o := range opts {
		var p place
		if o != nil {
			o(&p)
		}
		if p.lasts == nil {
			others = append(others, o)
			continue
		}
		if lasts = *p.lasts; lasts <= 0 {
			return nil, 0, fmt.Errorf("rewind: For(%v): nothing runs for no time", lasts)
		}
	}
	return others, lasts, nil
}

// announced is a mark that stands, or the zero value where the VPG takes none.
type announced struct {
	mark
	TaggedCheckpoint
}

// announce puts the mark of a start into the VPG's journal. A VPG that does not protect takes no checkpoint, and yet can be
// tested and cloned: its start goes unmarked, which after a crash leaves nobody who could tell whose it is.
func (s *Session) announce(ctx context.Context, vpg zvm.VPG, clock serverClock, m mark, lasts time.Duration) (announced, error) {
	m.agent, m.at = firstNonEmpty(s.agent, m.agent), clock.now().Truncate(time.Second)
	if lasts > 0 {
		m.until = clock.now().Add(lasts).Truncate(time.Second)
	}
	put := s.tagVPG(ctx, &plan{clock: clock}, target{vpg: vpgProtection(vpg), tag: m.String()})
	if put.failure == nil {
		return announced{m, put.pin.TaggedCheckpoint}, nil
	}
	var state *StateError
	if errors.As(put.failure.Err, &state) {
		return announced{}, nil
	}
	return announced{}, fmt.Errorf("announcing it in the journal: %w", put.failure.Err)
}

// withdraw takes a mark back, on a context of its own, when nothing was started under it: what somebody else starts there
// next is not ours.
func (s *Session) withdraw(ctx context.Context, vpg zvm.VPG, a announced) error {
	if a.CheckpointID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.limits.Reconcile,
		fmt.Errorf("not done within %v", s.limits.Reconcile))
	defer cancel()
	a.checkpoint, a.until = "", time.Time{}
	clock, err := s.readClock(ctx)
	if err == nil {
		_, err = s.announce(ctx, vpg, clock, a.mark, 0)
	}
	if err != nil {
		return fmt.Errorf("taking back that it was to be started: %w", err)
	}
	return nil
}
