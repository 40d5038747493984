package zvm_test

import (
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestItemsComeAsTheirPagesDo(t *testing.T) {
	t.Parallel()
	sim, client, id := mount(t, func(g *zvmtest.Guest) error { return g.WriteManyFiles("/dir", 2500) })
	n := 0
	for item, err := range client.ItemsFLR(t.Context(), id, "Volume1-Ext4/dir") {
		if err != nil || item.Name() == "" {
			t.Fatalf("item %+v, %v", item, err)
		}
		if n++; n == 1500 {
			break
		}
	}
	// The first answer may be page 0 or page 1; the one after that tells.
	if asked := sim.Count("POST", "/v1/flrs/*/browse"); n != 1500 || asked != 3 {
		t.Errorf("%d items took %d requests", n, asked)
	}
}

func TestTheLastErrorSaysThatItemsAreHeldBack(t *testing.T) {
	t.Parallel()
	_, client, id := mount(t, func(g *zvmtest.Guest) error { return g.WriteManyFiles("/dir", 2500) },
		zvmtest.WithSwitch(zvmtest.BrowseAlwaysFirstPage))
	n := 0
	var last error
	for _, err := range client.ItemsFLR(t.Context(), id, "Volume1-Ext4/dir") {
		if last = err; err == nil {
			n++
		}
	}
	if n != 1000 || !errors.Is(last, zvm.ErrIncomplete) {
		t.Errorf("%d items, then %v", n, last)
	}
}

// BenchmarkBrowse lists folders as their pages come. What is held is looked at once the last item has come.
func BenchmarkBrowse(b *testing.B) {
	for _, count := range []int{2_000, 200_000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			var pages atomic.Int64
			_, client, id := mount(b, func(g *zvmtest.Guest) error { return g.WriteManyFiles("/dir", count) },
				zvmtest.WithRequestLog(10), zvmtest.WithOnRequest(func(zvmtest.Request) { pages.Add(1) }))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			pages.Store(0)
			held := 0.0
			for b.Loop() {
				n := 0
				for _, err := range client.ItemsFLR(b.Context(), id, "Volume1-Ext4/dir") {
					if err != nil {
						b.Fatal(err)
					}
					if n++; n == count {
						runtime.GC()
						runtime.ReadMemStats(&after)
						held = max(held, float64(after.HeapAlloc)-float64(before.HeapAlloc))
					}
				}
				if n != count {
					b.Fatalf("%d items", n)
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(pages.Load())/1024, "KiB/page")
			b.ReportMetric(held/1024, "KiB_held")
			b.ReportMetric(0, "ns/op")
		})
	}
}
