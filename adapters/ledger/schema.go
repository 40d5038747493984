package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
)

// migrations lead from one version of the tables to the next; the version is their number. A released one never changes.
//
// Moments are nanoseconds since 1970, by the clock of this machine.
var migrations = []string{`
CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE guards (
	zvm TEXT NOT NULL, change TEXT NOT NULL, vm TEXT NOT NULL,
	record TEXT NOT NULL, proven_at INTEGER NOT NULL, closed INTEGER NOT NULL DEFAULT 0, void TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (zvm, change, vm)
) STRICT, WITHOUT ROWID;
CREATE INDEX guards_by_vm ON guards (zvm, vm);
CREATE TABLE names (
	zvm TEXT NOT NULL, name TEXT NOT NULL, vm TEXT NOT NULL,
	PRIMARY KEY (zvm, name, vm)
) STRICT, WITHOUT ROWID;

CREATE TABLE freezes (
	id INTEGER PRIMARY KEY, by TEXT NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, thawed_at INTEGER
) STRICT;
CREATE TABLE approvals (
	id TEXT PRIMARY KEY, approval TEXT NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL, spent_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE questions (
	session TEXT NOT NULL, call TEXT NOT NULL, event TEXT NOT NULL, at INTEGER NOT NULL,
	PRIMARY KEY (session, call)
) STRICT, WITHOUT ROWID;
CREATE TABLE consents (
	id INTEGER PRIMARY KEY, zvm TEXT NOT NULL, consent TEXT NOT NULL, at INTEGER NOT NULL
) STRICT;

CREATE TABLE started (
	zvm TEXT NOT NULL, vms TEXT NOT NULL, change TEXT NOT NULL, since INTEGER NOT NULL, taken_until INTEGER NOT NULL,
	PRIMARY KEY (zvm, vms)
) STRICT, WITHOUT ROWID;
CREATE TABLE open (
	zvm TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, change TEXT NOT NULL, at INTEGER NOT NULL, command TEXT NOT NULL,
	deadline INTEGER, closed_at INTEGER,
	PRIMARY KEY (zvm, kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (seq INTEGER PRIMARY KEY, line TEXT NOT NULL, hash BLOB NOT NULL) STRICT;
CREATE TRIGGER audit_is_not_edited BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the record is only added to'); END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the record is only added to'); END;
CREATE TRIGGER audit_grows_at_its_end BEFORE INSERT ON audit
	WHEN NEW.seq <= (SELECT coalesce(max(seq), 0) FROM audit) BEGIN SELECT RAISE(ABORT, 'the record is only added to'); END;
`}

// migrate brings the tables up to date. Of several processes one does it.
func (l *Ledger) migrate(ctx context.Context) error {
	version, err := versionOf(ctx, l.db)
	if err != nil || version == len(migrations) {
		return err
	}
	switch {
	case version > len(migrations):
		return ErrNewer
	case version == 0:
		// The file remembers this mode, in which readers wait for nobody.
		if _, err := l.db.ExecContext(ctx, "PRAGMA journal_mode = wal"); err != nil {
			return err
		}
	}
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	err = upgrade(ctx, tx)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func upgrade(ctx context.Context, tx *sql.Tx) error {
	version, err := versionOf(ctx, tx) // another process may have been first
	if err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		if _, err := tx.ExecContext(ctx, migrations[version]); err != nil {
			return fmt.Errorf("bringing its tables up to date: %w", err)
		}
		if version == 0 {
			if err := setUp(ctx, tx); err != nil {
				return err
			}
		}
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
	return err
}

// setUp gives a new ledger its key and the beginning of its chain.
func setUp(ctx context.Context, tx *sql.Tx) error {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	_, err := tx.ExecContext(ctx, "INSERT INTO meta VALUES ('key', ?), ('seq', 0), ('head', ?)", key, make([]byte, hashBytes))
	return err
}

func versionOf(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (version int, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}
