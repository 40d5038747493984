package ledger

import (
	"context"
	"database/sql"
	"errors"
)

// Seen records the fingerprint of a tool as a server describes it now, and returns the one it had before, empty for a tool
// that was never seen.
func (l *Ledger) Seen(ctx context.Context, server, tool, fingerprint string) (before string, err error) {
	err = l.change(ctx, "recording a tool", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT fingerprint FROM tools WHERE server = ? AND tool = ?", server, tool).Scan(&before)
		if err != nil && !errors.Is(err, sql.ErrNoRows) || before == fingerprint {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO tools VALUES (?, ?, ?, ?)", server, tool, fingerprint, l.now().UnixNano())
		return err
	})
	return before, err
}
