package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// Begin takes the turn at tagging these VMs. A change whose guard was closed or voided meanwhile is not gone on with.
func (l *Ledger) Begin(ctx context.Context, vms []string, since time.Duration, until time.Time) (gate.Started, error) {
	folded := make([]string, len(vms))
	for i, vm := range vms {
		folded[i] = fold(vm)
	}
	slices.Sort(folded)
	key := strings.Join(slices.Compact(folded), "\n")
	var s gate.Started
	err := l.change(ctx, "beginning a change", func(tx *sql.Tx) error {
		now := l.now()
		var begun, taken int64
		err := tx.QueryRowContext(ctx, `SELECT change, since, taken_until FROM started WHERE zvm = ?1 AND vms = ?2 AND since BETWEEN ?3 AND ?4
			AND NOT EXISTS (SELECT 1 FROM guards g WHERE g.zvm = ?1 AND g.change = started.change AND (g.closed OR g.void <> ''))`,
			l.o.ZVM, key, now.Add(-since).UnixNano(), now.Add(clockSlack).UnixNano()).Scan(&s.ChangeID, &begun, &taken)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			s.ChangeID, s.Since = newChangeID(), now
		case err != nil:
			return err
		default:
			s.Since = time.Unix(0, begun).UTC()
			if s.Taken = taken > now.UnixNano(); s.Taken {
				return nil
			}
		}
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO started VALUES (?, ?, ?, ?, ?)",
			l.o.ZVM, key, s.ChangeID, s.Since.UnixNano(), until.UnixNano())
		return err
	})
	return s, err
}

// newChangeID is in the form of those that a session makes.
func newChangeID() string {
	text := strings.ToLower(rand.Text()[:12])
	return text[:4] + "-" + text[4:8] + "-" + text[8:]
}

// End gives the turn back. What was begun under the change stays known.
func (l *Ledger) End(ctx context.Context, changeID string) error {
	_, err := l.db.ExecContext(ctx, "UPDATE started SET taken_until = 0 WHERE zvm = ? AND change = ?", l.o.ZVM, changeID)
	return l.failed("ending a turn", err)
}
