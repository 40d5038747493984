package rewind

import (
	"context"
	"errors"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Opened is something that a session opens at the server and that has to be closed: an FLR session, a failover test, or a
// clone that is being made.
type Opened struct {
	Kind LeftoverKind
	// ID is the FLR session's, or the VPG's for a test or a clone, of which one runs there at a time.
	ID       string
	ChangeID string
	VPGID    zvm.VPGID
	VPGName  string
	// Deadline is when it is to be closed at the latest, by the clock of this process: when the caller's context ends, or by
	// [For]. It is zero when there is no deadline, and once it is closed.
	Deadline time.Time
	Command  string // closes it when this process is gone
	Closed   bool
}

// WithOpened has f told of whatever this session opens, beside whoever is told already, so that it can be written down where
// a crash does not reach: of an FLR session as soon as it has an id, of a test and a clone just before they are started, and of each
// again, maybe more than once, when it is closed or was not started after all. What could not be closed, or may be open, is
// not told to be closed. Of what [Session.Sweep] closes only the end is told. The step waits until f returns; a panic in it is swallowed.
func WithOpened(f func(Opened)) Option {
	return func(s *Session) error {
		if f == nil {
			return errors.New("rewind: WithOpened needs a function")
		}
		others := s.tellOpened
		s.tellOpened = func(o Opened) {
			others(o)
			defer func() { _ = recover() }()
			f(o)
		}
		return nil
	}
}

// tellClosed tells that something is closed, or never came to be open.
func (s *Session) tellClosed(o Opened) {
	o.Deadline, o.Closed = time.Time{}, true
	s.tellOpened(o)
}

// tellEnded tells that a start failed, unless it may have left something open.
func (s *Session) tellEnded(o Opened, err error) {
	if !errors.As(err, new(*LeftOpenError)) {
		s.tellClosed(o)
	}
}

func (m mounted) opened() Opened {
	return Opened{
		Kind: LeftFLR, ID: string(m.session), ChangeID: m.change, VPGID: m.VPG, VPGName: m.vpgName, Command: m.at.sweepCommand(),
	}
}

func openedTest(t TestRecord) Opened { return openedAt(LeftTest, t.ChangeID, t.VPGID, t.VPGName) }

func openedAt(kind LeftoverKind, changeID string, vpg zvm.VPGID, vpgName string) Opened {
	words := "test stop"
	if kind == LeftClone {
		words = "clone abort"
	}
	return Opened{
		Kind: kind, ID: string(vpg), ChangeID: changeID, VPGID: vpg, VPGName: vpgName,
		Command: "zerto-rewind " + words + " --change " + quoted(changeID) + " --vpg " + quoted(string(vpg)),
	}
}

// until sets when something is to be closed that lasts as long as ctx.
func (o Opened) until(ctx context.Context) Opened {
	o.Deadline, _ = ctx.Deadline()
	return o
}

// lasting sets when something is to be closed that lasts for d; 0 is without end.
func (o Opened) lasting(d time.Duration) Opened {
	if d > 0 {
		o.Deadline = time.Now().Add(d)
	}
	return o
}
