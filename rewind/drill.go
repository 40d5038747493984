package rewind

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// ProtectOption asks for more than a guard.
type ProtectOption func(*protectOptions)

type protectOptions struct {
	drillPath     string
	drillRequired bool
	quiesce       *quiesce
}

// Drill has the guard tried out: the fresh local checkpoint is mounted, the guest path is looked for, and what is found is
// recorded in the guard. The later question whether the file can come back then has evidence. A drill that fails is
// recorded too, and fails the guard only with [DrillRequired].
func Drill(path string) ProtectOption { return func(o *protectOptions) { o.drillPath = path } }

// DrillRequired makes a failed [Drill] an error. The tags stand all the same.
func DrillRequired() ProtectOption { return func(o *protectOptions) { o.drillRequired = true } }

// Drilled is the evidence of a [Drill].
type Drilled struct {
	Path      string     `json:"path"`
	GuestPath string     `json:"guestPath"`         // as the server spells it, empty when it was not found
	Bytes     *int64     `json:"bytes,omitempty"`   // nil when unknown
	Written   *time.Time `json:"written,omitempty"` // nil when unknown
	// SHA256 is hexadecimal, and empty for files over [MaxDrillBytes], for what is not a file, and after a failure.
	SHA256 string `json:"sha256"`
	// Error is why the drill failed, empty when it did not.
	Error string `json:"error"`
}

// MaxDrillBytes is the largest file that a drill reads whole.
const MaxDrillBytes = 1 << 20

// DrillError says that the tags stand and the drill failed, which was asked to be an error.
type DrillError struct {
	Record GuardRecord // what stands in the journals
	Err    error
}

func (e *DrillError) Error() string {
	return fmt.Sprintf("change %s is tagged, but its drill failed: %v", e.Record.ChangeID, e.Err)
}

// Unwrap returns why the drill failed.
func (e *DrillError) Unwrap() error { return e.Err }

// drill looks for a path in the guard's local checkpoint.
func (s *Session) drill(ctx context.Context, g *Guard, path string) (*Drilled, error) {
	d := &Drilled{Path: path}
	wanted, err := parseGuestPath(path)
	if err != nil {
		return d, err
	}
	from, err := s.chooseMount(ctx, g, nil)
	if err != nil {
		return d, err
	}
	_, _, err = s.withMount(ctx, from, func(ctx context.Context, m mounted) error {
		item, err := m.locate(ctx, wanted)
		if err != nil {
			return err
		}
		listed := listedItem(item)
		d.GuestPath, d.Bytes, d.Written = item.Path, listed.Bytes, listed.Written
		if !item.Downloadable {
			return &NotDownloadableError{Path: item.Path, Reason: item.Reason}
		}
		if item.Browsable || item.Size < 0 || item.Size > MaxDrillBytes {
			return nil
		}
		d.SHA256, err = s.hash(ctx, m, item)
		return err
	})
	return d, err
}

// hash reads a small file whole.
func (s *Session) hash(ctx context.Context, m mounted, item zvm.Item) (string, error) {
	data, err := m.at.zvm.DownloadFLR(ctx, m.session, item.Path)
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", item.Path, err)
	}
	sum := sha256.New()
	n, err := copyFile(sum, data, item)
	if err := errors.Join(err, data.Body.Close()); err != nil {
		return "", fmt.Errorf("downloading %s: %w", item.Path, err)
	}
	if n != item.Size {
		return "", fmt.Errorf("downloading %s: %w", item.Path, io.ErrUnexpectedEOF)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
