package ledger

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

const hashBytes = sha256.Size

// Line is one event of the record as it was written.
type Line struct {
	Seq int64     `json:"seq"` // counts from 1
	At  time.Time `json:"at"`  // by the clock of the machine, which may have been set back between two lines

	gate.Event

	// Hash is over this line and the hash of the one before. It is no part of what it is over.
	Hash string `json:"hash,omitempty"`
}

// Append adds one event to the record.
func (l *Ledger) Append(ctx context.Context, e gate.Event) error {
	return l.change(ctx, "recording", func(tx *sql.Tx) error {
		if e.Kind == gate.EventVerdict && e.Decision == gate.Ask.String() {
			if err := l.ask(ctx, tx, e); err != nil {
				return err
			}
		}
		return l.append(ctx, tx, e)
	})
}

// append goes on from where the chain was said to end and not from the last line that is there: a record whose end was
// cut off has a hole for ever after.
func (l *Ledger) append(ctx context.Context, tx *sql.Tx, e gate.Event) error {
	e.Agent, e.Human = cmp.Or(e.Agent, l.o.Agent), cmp.Or(e.Human, l.o.Human)
	seq, head, err := headOf(ctx, tx)
	if err != nil {
		return err
	}
	seq++
	text, err := json.Marshal(Line{Seq: seq, At: l.now(), Event: e})
	if err != nil {
		return err
	}
	head = chain(head, seq, text)
	if _, err := tx.ExecContext(ctx, "INSERT INTO audit VALUES (?, ?, ?)", seq, string(text), head); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE meta SET value = CASE name WHEN 'seq' THEN ?1 ELSE ?2 END WHERE name IN ('seq', 'head')", seq, head)
	return err
}

func headOf(ctx context.Context, tx *sql.Tx) (seq int64, head []byte, err error) {
	err = tx.QueryRowContext(ctx, "SELECT (SELECT value FROM meta WHERE name = 'seq'), (SELECT value FROM meta WHERE name = 'head')").Scan(&seq, &head)
	return seq, head, err
}

// chain hashes one line: the hash before it, its number, its text.
func chain(before []byte, seq int64, text []byte) []byte {
	h := sha256.New()
	h.Write(before)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(seq)))
	h.Write(text)
	return h.Sum(nil)
}

// Lines hands every line since a moment to each, oldest first. A line that cannot be read is an error.
func (l *Ledger) Lines(ctx context.Context, since time.Time, each func(Line) error) error {
	return l.failed("reading the record", l.query(ctx, func(scan func(...any) error) error {
		var text string
		var hash []byte
		var line Line
		if err := scan(&text, &hash); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			return err
		}
		line.Hash = hex.EncodeToString(hash)
		if line.At.Before(since) {
			return nil
		}
		return each(line)
	}, "SELECT line, hash FROM audit ORDER BY seq"))
}

// Verification is what the chain of the record shows.
type Verification struct {
	Lines int64 `json:"lines"`
	// Head is the hash of the last line. Kept elsewhere, it shows later whether the record up to it is still the same.
	Head     string    `json:"head"`
	Problems []Problem `json:"problems"`
}

// Problem is one place at which the chain does not hold.
type Problem struct {
	Seq  int64  `json:"seq"`
	What string `json:"what"`
}

// mostProblems bounds what a verification lists.
const mostProblems = 100

// Verify reads the record and its chain. It finds lines that were edited, deleted, put in or moved, and an end that was cut
// off, as far as whoever did it left the hashes as they were. A chain cannot show more: whoever can write the file can
// compute all of it anew, and the key of no hash is anywhere that they could not read. Only a head that is kept elsewhere
// shows that, which is what known is for: hashes of heads that were printed earlier. Each has to be one of the record.
func (l *Ledger) Verify(ctx context.Context, known ...string) (*Verification, error) {
	tx, err := l.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, l.failed("verifying the record", err)
	}
	defer func() { _ = tx.Rollback() }()
	v, err := verify(ctx, tx, known)
	return v, l.failed("verifying the record", err)
}

func verify(ctx context.Context, tx *sql.Tx, known []string) (*Verification, error) {
	v := &Verification{Problems: []Problem{}}
	wanted := map[string]bool{}
	for _, head := range known {
		wanted[head] = true
	}
	lastSeq, lastHead, err := headOf(ctx, tx)
	if err != nil {
		return nil, err
	}
	before, next := make([]byte, hashBytes), int64(1)
	rows, err := tx.QueryContext(ctx, "SELECT seq, line, hash FROM audit ORDER BY seq")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var seq int64
		var text, hash []byte
		if err := rows.Scan(&seq, &text, &hash); err != nil {
			return nil, err
		}
		if seq != next {
			v.problem(next, "lines %d to %d are missing", next, seq-1)
		} else if !bytes.Equal(chain(before, seq, text), hash) {
			v.problem(seq, "the line or the one before it is not what it was")
		}
		before, next = hash, seq+1
		v.Lines++
		delete(wanted, hex.EncodeToString(hash))
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	switch {
	case next-1 < lastSeq:
		v.problem(next, "lines %d to %d are missing at the end", next, lastSeq)
	case next-1 > lastSeq || !bytes.Equal(before, lastHead):
		v.problem(next-1, "the record does not end where it was said to")
	}
	for head := range wanted {
		v.problem(0, "no line has the hash %s", head)
	}
	v.Head = hex.EncodeToString(before)
	return v, nil
}

func (v *Verification) problem(seq int64, format string, args ...any) {
	if len(v.Problems) < mostProblems {
		v.Problems = append(v.Problems, Problem{seq, fmt.Sprintf(format, args...)})
	}
}
