package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// fileTokenCache keeps tokens between runs: one file for each ZVM, realm, client and user, in a folder that only its
// owner may enter. It is used only on request, since a file that holds a token is worth stealing.
type fileTokenCache struct{ folder string }

func newFileTokenCache(stateDir string) (*fileTokenCache, error) {
	folder := filepath.Join(stateDir, "tokens")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is not a folder that its owner alone may enter (chmod 700)", folder)
	}
	return &fileTokenCache{folder}, nil
}

// lockRetry is how often a lock that another process holds is tried.
const lockRetry = 20 * time.Millisecond

// Lock waits for the entry's lock file.
func (c *fileTokenCache) Lock(ctx context.Context, key string) (zvm.TokenEntry, error) {
	path := filepath.Join(c.folder, key)
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("locking the token cache: %w", err)
	}
	return &tokenFile{path: path + ".json", lock: lock}, nil
}

type tokenFile struct {
	path string
	lock *flock.Flock
}

// savedToken is the file's form.
type savedToken struct {
	Access  string    `json:"access"`
	Expiry  time.Time `json:"expiry"`
	Refresh string    `json:"refresh"`
}

// Load returns what was stored. A file that cannot be read as a token, after a crash in the middle of writing it say,
// is as good as none.
func (f *tokenFile) Load() (zvm.SavedToken, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return zvm.SavedToken{}, nil
	}
	if err != nil {
		return zvm.SavedToken{}, err
	}
	var t savedToken
	if json.Unmarshal(data, &t) != nil {
		return zvm.SavedToken{}, nil
	}
	return zvm.SavedToken{Access: zvm.Secret(t.Access), Expiry: t.Expiry, Refresh: zvm.Secret(t.Refresh)}, nil
}

// Store replaces the file. Readers hold the lock as well, so nobody sees it half written.
func (f *tokenFile) Store(t zvm.SavedToken) error {
	if t == (zvm.SavedToken{}) {
		if err := os.Remove(f.path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(savedToken{t.Access.Reveal(), t.Expiry, t.Refresh.Reveal()})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Chmod(0o600), file.Close())
}

// Unlock lets the next process in.
func (f *tokenFile) Unlock() error { return f.lock.Unlock() }

// stateDir returns the folder for what is kept between runs.
func (r *reader) stateDir() (string, error) {
	if dir := r.text(setStateDir); dir != "" {
		return dir, nil
	}
	for _, base := range []struct{ variable, below string }{
		{"XDG_STATE_HOME", ""}, {"LOCALAPPDATA", ""}, {"HOME", ".local/state"},
	} {
		if dir := r.variable(base.variable); filepath.IsAbs(dir) {
			return filepath.Join(dir, filepath.FromSlash(base.below), "zerto-rewind"), nil
		}
	}
	return "", fmt.Errorf("no place to keep anything: set %s", setStateDir.variable)
}
