package mcpadapter

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// Option configures [Register], [NewServer] and [Serve].
type Option func(*toolset) error

// WithPrefix puts prefix in front of every tool's name. It may hold ASCII letters, digits, "_" and "-"; hosts refuse
// other characters, and names that are too long.
func WithPrefix(prefix string) Option {
	return func(t *toolset) error {
		const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
		if strings.Trim(prefix, allowed) != "" || len(prefix) > maxPrefix {
			return fmt.Errorf("mcpadapter: prefix %q: only ASCII letters, digits, _ and - are taken, at most %d of them",
				prefix, maxPrefix)
		}
		t.prefix = prefix
		return nil
	}
}

// maxPrefix leaves the longest tool name within 46 characters: hosts count 64, and some put "mcp__<server>__" in front.
const maxPrefix = 20

// WithRecoverDir names the folder below which recovered files are written. It has to exist. Without it files come back
// inside the answer alone, and only small text files do.
func WithRecoverDir(dir string) Option {
	return func(t *toolset) error {
		if dir == "" {
			return errors.New("mcpadapter: WithRecoverDir needs a folder")
		}
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("mcpadapter: recovery folder: %w", err)
		}
		info, err := os.Stat(absolute)
		if err != nil {
			return fmt.Errorf("mcpadapter: recovery folder: %w", err)
		}
		if !info.IsDir() {
			return fmt.Errorf("mcpadapter: recovery folder %s is not a folder", absolute)
		}
		t.recoverDir = absolute
		return nil
	}
}

// WithCatalog sets the catalogue that says what a tool is. The default is [catalog.Default].
func WithCatalog(c *catalog.Catalog) Option {
	return WithCatalogSource(func() (*catalog.Catalog, error) { return c, nil })
}

// WithCatalogSource has the catalogue read anew for each call that needs it, so that a ruling counts at once. An error
// refuses the call.
func WithCatalogSource(load func() (*catalog.Catalog, error)) Option {
	return func(t *toolset) error { t.known = load; return nil }
}

// agentOf returns who is to be named in what a call makes, empty when nobody is known.
func (t *toolset) agentOf(c call) string {
	if t.agent != "" {
		return t.agent
	}
	if name := c.clientName(); name != "" {
		return name
	}
	return t.session.Agent()
}

// WithAgent names the agent in guards and tags. The default is the name the client gives itself, and the session's own
// agent when it gives none.
func WithAgent(name string) Option {
	return func(t *toolset) error { t.agent = name; return nil }
}

// WithHeartbeat sets how often a client that asked for progress hears that a call is still under way. The default is
// 5 s: hosts give up on a silent tool after a minute or less.
func WithHeartbeat(every time.Duration) Option {
	return func(t *toolset) error {
		if every <= 0 {
			return fmt.Errorf("mcpadapter: WithHeartbeat(%v): has to be more than nothing", every)
		}
		t.heartbeat = every
		return nil
	}
}

// WithPatience sets how long a person may take to answer a question that a client carries to them. The default is 10 min.
func WithPatience(limit time.Duration) Option {
	return func(t *toolset) error {
		if limit <= 0 {
			return fmt.Errorf("mcpadapter: WithPatience(%v): has to be more than nothing", limit)
		}
		t.patience = limit
		return nil
	}
}

// WithLogger sets where failures of the adapter itself are told, a panic of a tool among them. The default is nowhere.
// It must not write to the stream that carries the protocol.
func WithLogger(logger *slog.Logger) Option {
	return func(t *toolset) error { t.logger = logger; return nil }
}

// WithVersion sets the version that [NewServer] and [Serve] tell clients. The default is "unknown".
func WithVersion(version string) Option {
	return func(t *toolset) error { t.version = version; return nil }
}
