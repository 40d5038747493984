package ledger

import (
	"context"
	"time"
)

// The kinds of an [Opened].
const (
	Mount = "mount"
	Test  = "test"
	Clone = "clone"
)

// Opened is something at the server that has to be closed: a mount, a failover test, a clone.
type Opened struct {
	Kind     string    `json:"kind"`
	ID       string    `json:"id"` // of the FLR session, or of the VPG that a test or a clone is at
	ChangeID string    `json:"changeId"`
	At       time.Time `json:"at"`
	Command  string    `json:"command"`           // closes it
	Deadline time.Time `json:"deadline,omitzero"` // by which it should be closed, zero without one
}

// Opened records that something was opened. Its moment is now.
func (l *Ledger) Opened(ctx context.Context, o Opened) error {
	var deadline any
	if !o.Deadline.IsZero() {
		deadline = o.Deadline.UnixNano()
	}
	_, err := l.db.ExecContext(ctx, "INSERT OR REPLACE INTO open (zvm, kind, id, change, at, command, deadline) VALUES (?, ?, ?, ?, ?, ?, ?)",
		l.o.ZVM, o.Kind, o.ID, o.ChangeID, l.now().UnixNano(), o.Command, deadline)
	return l.failed("recording what was opened", err)
}

// Closed records that something is closed. What was never recorded as open stays so.
func (l *Ledger) Closed(ctx context.Context, kind, id string) error {
	_, err := l.db.ExecContext(ctx, "UPDATE open SET closed_at = ? WHERE zvm = ? AND kind = ? AND id = ? AND closed_at IS NULL",
		l.now().UnixNano(), l.o.ZVM, kind, id)
	return l.failed("recording what was closed", err)
}

// StillOpen returns what was opened and is not known to be closed, oldest first.
func (l *Ledger) StillOpen(ctx context.Context) ([]Opened, error) {
	open := []Opened{}
	err := l.query(ctx, func(scan func(...any) error) error {
		var o Opened
		var at int64
		var deadline *int64
		if err := scan(&o.Kind, &o.ID, &o.ChangeID, &at, &o.Command, &deadline); err != nil {
			return err
		}
		o.At = time.Unix(0, at).UTC()
		if deadline != nil {
			o.Deadline = time.Unix(0, *deadline).UTC()
		}
		open = append(open, o)
		return nil
	}, "SELECT kind, id, change, at, command, deadline FROM open WHERE zvm = ? AND closed_at IS NULL ORDER BY at, id", l.o.ZVM)
	return open, l.failed("listing what is open", err)
}
