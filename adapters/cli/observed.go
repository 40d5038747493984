package cli

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// guardsOfLate is how far back the guards go that an MCP client can list without naming a VM.
const guardsOfLate = 24 * time.Hour

// lateGuards lists what the ledger claims.
func (a *app) lateGuards(ctx context.Context) ([]rewind.GuardRecord, error) {
	l, err := a.ledger(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := l.AllClaims(ctx, time.Now().Add(-guardsOfLate))
	if err != nil {
		return nil, err
	}
	var records []rewind.GuardRecord
	seen := map[string]bool{}
	for _, c := range claims {
		if !seen[c.Record.ChangeID] && !c.Closed && c.Void == "" {
			seen[c.Record.ChangeID] = true
			records = append(records, c.Record)
		}
	}
	return records, nil
}

// definitions are how a server defines its tools now, as far as it has listed them.
type definitions struct {
	mu     sync.Mutex
	server string
	byName map[catalog.Name]catalog.Definition
}

func (d *definitions) observe(tools []json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byName == nil {
		d.byName = map[catalog.Name]catalog.Definition{}
	}
	for _, text := range tools {
		var tool catalog.Definition
		if json.Unmarshal(text, &tool) != nil || tool.Name == "" {
			continue
		}
		if _, err := tool.Fingerprint(); err != nil {
			tool = catalog.Definition{Name: tool.Name, Description: "unreadable"} // no ruling was on that
		}
		d.byName[catalog.Name{Server: d.server, Tool: tool.Name}] = tool
	}
}

// within returns the catalogue as it stands for the tools that the server has listed to this proxy: a ruling on another
// definition of one is void. A tool that was not listed yet keeps its ruling.
func (d *definitions) within(known *catalog.Catalog) (*catalog.Catalog, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return known.WithDefinitions(d.byName)
}
