package catalog_test

import (
	"testing"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

func builtInData(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Default()
	if err != nil {
		t.Fatalf("Default:\n%v", err)
	}
	return c
}

func TestToolInNeitherListIsUnknownAndNotSafe(t *testing.T) {
	t.Parallel()
	got := builtInData(t).Classify(catalog.Name{Server: "proxmox", Tool: "migrate_everything"})
	if got.Class != catalog.Unknown || got.Safe() {
		t.Errorf("verdict %+v, want unknown and not safe", got)
	}
}
