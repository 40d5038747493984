// Package ledger keeps what gates remember and share, in one SQLite file that the hook, the MCP server and the command
// line use at once: guards and the names of their VMs, freezes, approvals, consents, changes that are being tagged, what
// is open, and a record that is only ever added to.
//
//	l, err := ledger.Open(ctx, stateDir, ledger.Options{ZVM: client.BaseURL(), Agent: "patch-bot"})
//
// It is a cache of proof, not the truth: the journals are. It is no stronghold either. An agent that runs as the user whose
// file it is can write it, and whoever can write it can make up a consent, lift a freeze, or make a new chain of the whole
// record; [Ledger.Verify] says what a chain shows and what it cannot.
package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

const (
	fileName = "ledger.db"
	lockName = "ledger.lock"
	// lockRetry is how often the lock of a ledger that another process is creating is tried.
	lockRetry       = 10 * time.Millisecond
	defaultPatience = time.Second
)

// ErrNewer is a ledger that a later version of the program has written. It is left alone.
var ErrNewer = errors.New("it was written by a newer version of zerto-rewind")

// Options are what a ledger is told by whoever opens it. The zero value is usable.
type Options struct {
	// ZVM is the address of the ZVM whose guards are meant: names mean nothing without it.
	ZVM string
	// Agent and Human go into the record where an event names no other.
	Agent, Human string
	// Patience is how long one operation waits for other processes, if its context lasts that long; zero means 1 s.
	Patience time.Duration
	// Now is the clock; nil means that of this machine.
	Now func() time.Time

	pragmas []string
}

// Ledger is an open ledger. It is safe for concurrent use, by other processes too.
type Ledger struct {
	db   *sql.DB
	path string
	o    Options
}

var _ gate.Ledger = (*Ledger)(nil)

// Open opens the ledger in a folder, and makes both where there is none: the folder for its owner alone, and so the file.
// A folder in which others may write is refused, and so is a file that is not a plain one; a link to the folder is
// followed. A ledger that cannot be read is kept as it is: it may hold a freeze.
func Open(ctx context.Context, dir string, o Options) (*Ledger, error) {
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Ledger{path: filepath.Join(dir, fileName), o: o}
	if err := l.open(ctx, dir); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context, dir string) error {
	if err := prepare(dir); err != nil {
		return err
	}
	switch info, err := os.Lstat(l.path); {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return l.create(ctx, dir)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a plain file")
	}
	return l.connect(ctx)
}

// create makes the file and its tables. One process does it while others wait: a file that is being made is not yet in the
// mode in which processes can share it.
func (l *Ledger) create(ctx context.Context, dir string) error {
	lock := flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))
	waiting, cancel := context.WithTimeout(ctx, l.o.Patience)
	defer cancel()
	if _, err := lock.TryLockContext(waiting, lockRetry); err != nil {
		return fmt.Errorf("waiting for another process that makes it: %w", err)
	}
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = errors.Join(file.Close(), l.connect(ctx))
	}
	return errors.Join(err, lock.Unlock())
}

func (l *Ledger) connect(ctx context.Context) error {
	if err := l.dial(); err != nil {
		return err
	}
	return l.migrate(ctx)
}

func (l *Ledger) dial() error {
	query := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{
		"busy_timeout(" + strconv.FormatInt(l.o.Patience.Milliseconds(), 10) + ")",
		"synchronous(full)", "trusted_schema(0)", "cell_size_check(1)",
	}, l.o.pragmas...)}
	path, err := filepath.Abs(l.path)
	if err != nil {
		return err
	}
	address := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: query.Encode()}
	if l.db, err = sql.Open("sqlite", address.String()); err != nil {
		return err
	}
	l.db.SetMaxOpenConns(1)
	return nil
}

// prepare makes the folder, or finds it to be one that nobody else can put files into.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", real)
	}
	return checkOwner(real, info)
}

// Path returns the name of the file.
func (l *Ledger) Path() string { return l.path }

// Close lets go of the file.
func (l *Ledger) Close() error {
	if l == nil || l.db == nil {
		return nil
	}
	return l.db.Close()
}

// change runs f in one transaction that is written whole or not at all.
func (l *Ledger) change(ctx context.Context, what string, f func(tx *sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err == nil {
		if err = f(tx); err == nil {
			err = tx.Commit()
		} else {
			_ = tx.Rollback() // the error of f says more
		}
	}
	return l.failed(what, err)
}

func (l *Ledger) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", l.path, what, err)
}

// query hands every row to each.
func (l *Ledger) query(ctx context.Context, each func(scan func(...any) error) error, text string, args ...any) error {
	rows, err := l.db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (l *Ledger) now() time.Time { return l.o.Now().UTC() }
