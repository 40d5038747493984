package rewind_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// BENCHMARKS.md is made from these by make benchmarks. The limits are those of the design: what the simulated ZVM takes
// is the limit of physics, and x_of_limit is how many times that a caller waited.

func benchSim(b *testing.B, opts ...zvmtest.Option) *zvmtest.Server {
	b.Helper()
	sim, err := zvmtest.New(opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(sim.Close)
	return sim
}

func benchSession(b *testing.B, sim *zvmtest.Server) (*zvm.Client, *rewind.Session) {
	b.Helper()
	client, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()))
	if err != nil {
		b.Fatal(err)
	}
	s, err := rewind.NewSession(client, rewind.WithAgent("bench"))
	if err != nil {
		b.Fatal(err)
	}
	return client, s
}

// waits gathers how long callers waited, as multiples of the least that was possible, and with how many requests.
type waits struct {
	mu       sync.Mutex
	x        float64
	requests int
	tokens   int
	n        int
}

func (w *waits) add(x float64, requests, tokens int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.x += x
	w.requests += requests
	w.tokens += tokens
	w.n++
}

func (w *waits) report(b *testing.B, x, requests float64) {
	b.Helper()
	b.ReportMetric(w.x/float64(w.n), "x_of_limit")
	b.ReportMetric(float64(w.requests)/float64(w.n), "requests/op")
	b.ReportMetric(float64(w.tokens)/float64(w.n), "token_requests/op")
	b.ReportMetric(x, "x_target")
	b.ReportMetric(requests, "requests_target")
	b.ReportMetric(0, "ns/op")
}

// benchClients is how many independent ZVMs, each with one client, are measured side by side.
const benchClients = 40

// sideBySide runs f for each client at once, with a ZVM whose insert takes a time of its own between 1 and 30 s.
func sideBySide(b *testing.B, f func(rng *rand.Rand, insertTime time.Duration)) {
	b.Helper()
	var wg sync.WaitGroup
	for i := range benchClients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			f(rng, time.Second+time.Duration((float64(i)+rng.Float64())/benchClients*float64(29*time.Second)))
		})
	}
	wg.Wait()
}

// protectOnce guards web01 and returns the wait as a multiple of the moment at which the tag became visible.
func protectOnce(b *testing.B, sim *zvmtest.Server, protect func() error) (x float64, requests, tokens int) {
	b.Helper()
	before, logins, began := len(sim.Requests()), sim.TokenRequests(), time.Now()
	if err := protect(); err != nil {
		b.Error(err)
	}
	took := time.Since(began)
	tasks := sim.Tasks()
	visible := tasks[len(tasks)-1].Completed.Sub(began)
	return float64(took) / float64(visible), len(sim.Requests()) - before, sim.TokenRequests() - logins
}

func BenchmarkGuardCold(b *testing.B) {
	var w waits
	b.ReportAllocs()
	for b.Loop() {
		sideBySide(b, func(_ *rand.Rand, insertTime time.Duration) {
			sim := benchSim(b, zvmtest.WithInsertTime(insertTime))
			sim.AddVM("web01", sim.AddVPG("web", zvmtest.VPGConfig{}))
			_, s := benchSession(b, sim)
			w.add(protectOnce(b, sim, func() error {
				_, err := s.Protect(context.Background(), "web01", rewind.Change{})
				return err
			}))
		})
	}
	w.report(b, 1.08, 60)
}

func BenchmarkGuardWarm(b *testing.B) {
	var w waits
	b.ReportAllocs()
	for b.Loop() {
		sideBySide(b, func(rng *rand.Rand, insertTime time.Duration) {
			sim := benchSim(b, zvmtest.WithInsertTimes(func(int) time.Duration {
				return time.Duration(float64(insertTime) * (0.9 + 0.2*rng.Float64()))
			}))
			sim.AddVM("web01", sim.AddVPG("web", zvmtest.VPGConfig{}))
			_, s := benchSession(b, sim)
			protect := func() error {
				_, err := s.Protect(context.Background(), "web01", rewind.Change{})
				return err
			}
			for range 3 {
				protectOnce(b, sim, protect)
			}
			w.add(protectOnce(b, sim, protect))
		})
	}
	w.report(b, 1.03, 25)
}

// BenchmarkGuardNaive waits as the public clients do: the whole journal is listed and the task looked at every 5 s. It is
// what the other figures are to be compared with.
func BenchmarkGuardNaive(b *testing.B) {
	var w waits
	b.ReportAllocs()
	for b.Loop() {
		sideBySide(b, func(_ *rand.Rand, insertTime time.Duration) {
			sim := benchSim(b, zvmtest.WithInsertTime(insertTime))
			vpg := sim.AddVPG("web", zvmtest.VPGConfig{})
			sim.AddVM("web01", vpg)
			client, _ := benchSession(b, sim)
			w.add(protectOnce(b, sim, func() error { return naiveProtect(client, zvm.VPGID(vpg.ID())) }))
		})
	}
	w.report(b, 0, 0)
}

func naiveProtect(client *zvm.Client, vpg zvm.VPGID) error {
	ctx := context.Background()
	id, err := client.InsertCheckpoint(ctx, vpg, "naive")
	if err != nil {
		return err
	}
	every5s := time.NewTicker(5 * time.Second)
	defer every5s.Stop()
	for {
		<-every5s.C
		st, err := client.TaskStatus(ctx, id)
		if err != nil {
			return err
		}
		if st.State.Terminal() {
			break
		}
	}
	for {
		for cp, err := range client.ListCheckpoints(ctx, vpg, zvm.Window{}) {
			if err != nil {
				return err
			}
			if cp.Tag == "naive" {
				return nil
			}
		}
		<-every5s.C
	}
}

// BenchmarkManyVMs guards 200 VMs in 40 VPGs, one call each, all at once, by a client that has never seen the ZVM.
func BenchmarkManyVMs(b *testing.B) {
	const vpgs, each = 40, 5
	const insertTime = 2 * time.Second
	var x, requests, tokens, maxAtOnce float64
	b.ReportAllocs()
	for b.Loop() {
		sim := benchSim(b, zvmtest.WithInsertTime(insertTime))
		var names []string
		var groups []*zvmtest.VPG
		for v := range vpgs {
			groups = append(groups, sim.AddVPG(fmt.Sprintf("vpg%02d", v), zvmtest.VPGConfig{}))
			for i := range each {
				names = append(names, fmt.Sprintf("vm%02d-%d", v, i))
				sim.AddVM(names[len(names)-1], groups[v])
			}
		}
		_, s := benchSession(b, sim)
		began := time.Now()
		var wg sync.WaitGroup
		for _, name := range names {
			wg.Go(func() {
				if _, err := s.Protect(context.Background(), name, rewind.Change{}); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		x = float64(time.Since(began)) / float64(each*insertTime)
		requests, tokens = float64(len(sim.Requests())), float64(sim.TokenRequests())
		for _, g := range groups {
			maxAtOnce = max(maxAtOnce, float64(g.MaxInFlight()))
		}
	}
	b.ReportMetric(x, "x_of_limit")
	b.ReportMetric(1.2, "x_target")
	b.ReportMetric(requests, "requests/op")
	b.ReportMetric(tokens, "token_requests/op")
	b.ReportMetric(maxAtOnce, "inserts_at_once_per_vpg")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkJournalSize guards in an empty journal and in the largest there is, 30 days at 5 s.
func BenchmarkJournalSize(b *testing.B) {
	for _, size := range []struct {
		name string
		age  time.Duration
	}{{"empty", -1}, {"518400", 30 * 24 * time.Hour}} {
		b.Run(size.name, func(b *testing.B) {
			sim := benchSim(b, zvmtest.WithInsertTime(3*time.Second))
			sim.AddVM("web01", sim.AddVPG("web", zvmtest.VPGConfig{JournalAge: size.age, History: 30 * 24 * time.Hour}))
			_, s := benchSession(b, sim)
			if _, err := s.Protect(context.Background(), "web01", rewind.Change{}); err != nil { // connections, token
				b.Fatal(err)
			}
			b.ReportAllocs()
			var before, after runtime.MemStats
			var x float64
			runtime.ReadMemStats(&before)
			n := 0
			for b.Loop() {
				ratio, _, _ := protectOnce(b, sim, func() error {
					_, err := s.Protect(context.Background(), "web01", rewind.Change{})
					return err
				})
				x += ratio
				n++
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(x/float64(n), "x_of_limit")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n)/1024, "KiB/op")
		})
	}
}
