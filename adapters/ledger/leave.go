package ledger

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

const (
	// clockSlack is how far ahead of the clock the beginning of an approval may be: one from later than that was made
	// before the clock was set back.
	clockSlack = time.Minute
	// questionReach is how long after a question the call that was asked about may run.
	questionReach = time.Hour
	// consentReach is how long a consent counts at most, however old the policy lets a guard be.
	consentReach = 24 * time.Hour
	digestChars  = 16
)

// Frozen returns the freeze in force, nil when there is none.
func (l *Ledger) Frozen(ctx context.Context) (*gate.Freeze, error) {
	var f gate.Freeze
	var at int64
	err := l.db.QueryRowContext(ctx, "SELECT by, at, reason FROM freezes WHERE thawed_at IS NULL ORDER BY id LIMIT 1").Scan(&f.By, &at, &f.Reason)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	f.At = time.Unix(0, at).UTC()
	return &f, l.failed("looking for a freeze", err)
}

// Freeze stops every call but reads and those that stay on the agent's own machine, unless that is [gate.Policy.LocalVM],
// until [Ledger.Thaw]. Freezing twice is freezing once, with both recorded.
func (l *Ledger) Freeze(ctx context.Context, by, reason string) error {
	return l.change(ctx, "freezing", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO freezes (by, at, reason) VALUES (?, ?, ?)", by, l.now().UnixNano(), reason); err != nil {
			return err
		}
		return l.append(ctx, tx, gate.Event{Kind: gate.EventFrozen, By: by, Reason: reason})
	})
}

// Thaw lifts every freeze, and reports whether there was one. That a person says so is for the caller to make sure of.
func (l *Ledger) Thaw(ctx context.Context, by string) (thawed bool, err error) {
	err = l.change(ctx, "thawing", func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "UPDATE freezes SET thawed_at = ? WHERE thawed_at IS NULL", l.now().UnixNano())
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err != nil || n == 0 {
			return err
		}
		thawed = true
		return l.append(ctx, tx, gate.Event{Kind: gate.EventThawed, By: by})
	})
	return thawed && err == nil, err
}

// Approve records a person's leave for one call, and returns it with its id. That a person gives it is for the caller to
// make sure of. It fails for one that would fit whatever call, and for one that has no time to be used.
func (l *Ledger) Approve(ctx context.Context, a gate.Approval, ttl time.Duration) (gate.Approval, error) {
	switch {
	case a.Server == "" || a.Tool == "":
		return gate.Approval{}, errors.New("ledger: an approval names a server and a tool")
	case len(a.Targets) == 0 && a.Digest == "":
		return gate.Approval{}, errors.New("ledger: an approval names the machines, or the one call that is meant")
	case ttl <= 0:
		return gate.Approval{}, fmt.Errorf("ledger: an approval for %v can never be used", ttl)
	}
	a.ID = strings.ToLower(rand.Text()[:12])
	a.At = l.now()
	a.Until = a.At.Add(ttl)
	text, err := json.Marshal(a)
	if err != nil {
		return gate.Approval{}, l.failed("approving", err)
	}
	return a, l.change(ctx, "approving", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO approvals (id, approval, at, until) VALUES (?, ?, ?, ?)",
			a.ID, string(text), a.At.UnixNano(), a.Until.UnixNano()); err != nil {
			return err
		}
		return l.append(ctx, tx, gate.Event{
			Kind: gate.EventApproved, By: a.By, Server: a.Server, Tool: a.Tool, Targets: a.Targets, Digest: a.Digest, Approval: a.ID,
		})
	})
}

// Spend uses up one approval that fits the call, and returns nil when none does.
func (l *Ledger) Spend(ctx context.Context, call gate.Call, targets []string) (*gate.Approval, error) {
	var spent *gate.Approval
	digest, err := l.Digest(ctx, call.Args)
	if err != nil {
		return nil, err
	}
	open, err := l.approvals(ctx, call, targets, digest)
	if err != nil || len(open) == 0 {
		return nil, err // most calls have none: they wait for no other process
	}
	err = l.change(ctx, "using an approval", func(tx *sql.Tx) error {
		for _, a := range open {
			done, err := tx.ExecContext(ctx, "UPDATE approvals SET spent_at = ? WHERE id = ? AND spent_at IS NULL", l.now().UnixNano(), a.ID)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); err != nil || n > 0 {
				spent = &a
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return spent, nil
}

// approvals returns those that fit a call and were not used when it looked, the first to expire first.
func (l *Ledger) approvals(ctx context.Context, call gate.Call, targets []string, digest string) ([]gate.Approval, error) {
	var open []gate.Approval
	now := l.now()
	err := l.query(ctx, func(scan func(...any) error) error {
		var text string
		var a gate.Approval
		if err := scan(&text); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return err
		}
		if approves(a, call, targets, digest) {
			open = append(open, a)
		}
		return nil
	}, "SELECT approval FROM approvals WHERE spent_at IS NULL AND until > ? AND at <= ? ORDER BY until",
		now.UnixNano(), now.Add(clockSlack).UnixNano())
	return open, l.failed("looking for approvals", err)
}

func approves(a gate.Approval, call gate.Call, targets []string, digest string) bool {
	switch {
	case !strings.EqualFold(a.Server, gate.ServerOf(call.Name)) || !strings.EqualFold(a.Tool, call.Name.Tool):
		return false
	case a.Digest != "" && a.Digest != digest:
		return false
	case len(a.Targets) > 0:
		return within(targets, a.Targets)
	}
	return a.Digest != ""
}

// within reports whether there are targets, and all of them are among those allowed.
func within(targets, allowed []string) bool {
	return len(targets) > 0 && !slices.ContainsFunc(targets, func(t string) bool {
		return !slices.ContainsFunc(allowed, func(a string) bool { return fold(a) == fold(t) })
	})
}

// Consent records that a person agreed to an unknown tool while the guard of a change stands. It fails for a consent that
// would hold without one, and for one to a tool of the agent host itself.
func (l *Ledger) Consent(ctx context.Context, c gate.Consent) error {
	if c.ChangeID == "" || c.VM == "" || c.Server == "" || c.Server == "-" || c.Tool == "" || c.Source == "" {
		return errors.New("ledger: a consent names a change, its VM, the server, the tool, and how it is known")
	}
	return l.change(ctx, "recording a consent", func(tx *sql.Tx) error { return l.consent(ctx, tx, c) })
}

func (l *Ledger) consent(ctx context.Context, tx *sql.Tx, c gate.Consent) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO consents (zvm, consent, at) VALUES (?, ?, ?)", l.o.ZVM, string(text), l.now().UnixNano()); err != nil {
		return err
	}
	return l.append(ctx, tx, gate.Event{
		Kind: gate.EventConsented, By: cmp.Or(c.By, string(c.Source)), Server: c.Server, Tool: c.Tool, Targets: c.Targets,
		Changes: []string{c.ChangeID},
	})
}

// Consents returns what persons have agreed to that fits the call.
func (l *Ledger) Consents(ctx context.Context, call gate.Call, targets []string) ([]gate.Consent, error) {
	var fitting []gate.Consent
	err := l.query(ctx, func(scan func(...any) error) error {
		var text string
		var c gate.Consent
		if err := scan(&text); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return err
		}
		fits := within(targets, c.Targets) || len(targets) == 0 && len(c.Targets) == 0
		if fits && strings.EqualFold(c.Server, gate.ServerOf(call.Name)) && strings.EqualFold(c.Tool, call.Name.Tool) {
			fitting = append(fitting, c)
		}
		return nil
	}, "SELECT consent FROM consents WHERE zvm = ? AND at >= ? ORDER BY id DESC", l.o.ZVM, l.now().Add(-consentReach).UnixNano())
	return fitting, l.failed("looking for consents", err)
}

// Ran tells that a host ran a call. If that call was asked about, a person said yes. To an unknown tool of a server that is
// a consent for each change that guards its one machine; to anything else it is recorded and counts for nothing more. Ran
// reports whether there is a consent now. A call is told of once; one that was never asked about tells nothing.
func (l *Ledger) Ran(ctx context.Context, session, callID string) (consented bool, err error) {
	err = l.change(ctx, "recording that a call ran", func(tx *sql.Tx) error {
		var text string
		var asked gate.Event
		err := tx.QueryRowContext(ctx, "DELETE FROM questions WHERE session = ? AND call = ? AND at >= ? RETURNING event",
			session, callID, l.now().Add(-questionReach).UnixNano()).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &asked)
		}
		if err != nil {
			return err
		}
		ran := asked
		ran.Kind, ran.Decision, ran.Reason = gate.EventRan, "", ""
		if len(asked.Targets) == 1 {
			if ran.Changes, err = l.guarding(ctx, tx, asked.Targets[0]); err != nil {
				return err
			}
		}
		if err := l.append(ctx, tx, ran); err != nil || asked.Class != catalog.Unknown.String() || asked.Server == "-" {
			return err
		}
		for _, change := range ran.Changes {
			consented = true
			err = errors.Join(err, l.consent(ctx, tx, gate.Consent{
				ChangeID: change, VM: asked.Targets[0], Server: asked.Server, Tool: asked.Tool, Targets: asked.Targets, Source: gate.HostRelayed,
			}))
		}
		return err
	})
	return consented && err == nil, err
}

// guarding returns the changes whose guards of a VM are neither closed nor void.
func (l *Ledger) guarding(ctx context.Context, tx *sql.Tx, vm string) ([]string, error) {
	rows, err := tx.QueryContext(ctx, `SELECT DISTINCT change FROM guards WHERE zvm = ?1 AND closed = 0 AND void = '' AND proven_at >= ?3
		AND vm IN (SELECT vm FROM names WHERE zvm = ?1 AND name = ?2)`, l.o.ZVM, fold(vm), l.now().Add(-consentReach).UnixNano())
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var changes []string
	for rows.Next() {
		var change string
		if err := rows.Scan(&change); err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, rows.Err()
}

// ask notes a question to a person, so that the call can be known again if the host runs it.
func (l *Ledger) ask(ctx context.Context, tx *sql.Tx, e gate.Event) error {
	if e.Session == "" || e.CallID == "" {
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	now := l.now()
	if _, err := tx.ExecContext(ctx, "DELETE FROM questions WHERE at < ?", now.Add(-questionReach).UnixNano()); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO questions VALUES (?, ?, ?, ?)", e.Session, e.CallID, string(text), now.UnixNano())
	return err
}

// Digest returns what stands for the arguments of a call: a MAC under a key of this ledger's own. Without the key, which
// the export of the record does not have, nobody can try out which arguments have this digest, and a password among them is
// often short enough to be tried. Whoever has the file has the key.
func (l *Ledger) Digest(ctx context.Context, args map[string]any) (string, error) {
	if args == nil {
		return "", nil
	}
	text, err := json.Marshal(args)
	if err != nil {
		return "", l.failed("the arguments", err)
	}
	var key []byte
	if err := l.db.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'key'").Scan(&key); err != nil {
		return "", l.failed("reading its key", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))[:digestChars], nil
}
