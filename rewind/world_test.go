package rewind_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// quick makes a simulated ZVM fast enough for a suite, and a session look often enough to notice.
var quick = []zvmtest.Option{
	zvmtest.WithInsertTime(20 * time.Millisecond),
	zvmtest.WithMountTime(10 * time.Millisecond),
	zvmtest.WithUnmountTime(5 * time.Millisecond),
}

// The whole suite runs against any side of the simulator's switches: go test ./rewind -profile hostile -seed 7.
var (
	profileFlag = flag.String("profile", "quick", "how the simulated ZVM behaves: quick, realistic or hostile")
	seedFlag    = flag.Uint64("seed", 1, "the seed of the simulated ZVM")
)

// speed is how much faster than time the clock of a realistic ZVM runs here.
const speed = 500

// profile returns the options of the profile that was asked for. Realistic times are those of an appliance, at speed.
func profile(t *testing.T) []zvmtest.Option {
	t.Helper()
	seed := zvmtest.WithSeed(*seedFlag)
	switch *profileFlag {
	case "quick":
		return append([]zvmtest.Option{seed}, quick...)
	case "hostile":
		return append([]zvmtest.Option{seed, zvmtest.WithProfile(zvmtest.Hostile)}, quick...)
	case "realistic":
		began := time.Now()
		fast := func() time.Time { return began.Add(speed * time.Since(began)) }
		return []zvmtest.Option{
			seed, zvmtest.WithProfile(zvmtest.Realistic), zvmtest.WithClock(fast), zvmtest.WithTokenTTL(speed * time.Minute),
		}
	}
	t.Fatalf("there is no profile %q", *profileFlag)
	return nil
}

// lasting returns the length on the ZVM's clock of what is to last d here.
func lasting(d time.Duration) time.Duration {
	if *profileFlag == "realistic" {
		return speed * d
	}
	return d
}

// tellsAll reports whether the ZVM fills in every optional field. A hostile one may leave out reasons, addresses, and
// what a task concerns.
func tellsAll() bool { return *profileFlag != "hostile" }

// stopped are the options of a ZVM whose clock only the test moves: nothing in it takes time.
func stopped() []zvmtest.Option {
	return []zvmtest.Option{
		zvmtest.WithManualClock(tagMoment), zvmtest.WithInsertTime(0), zvmtest.WithListLag(0), zvmtest.WithTaskVisibleAfter(0),
	}
}

const goodConfig = "server { listen 80; }\n"

// world is a ZVM with web01, which is in one local VPG and in one that recovers to another site.
type world struct {
	sim           *zvmtest.Server
	local, remote *zvmtest.VPG
	web           *zvmtest.VM
	client        *zvm.Client
	*rewind.Session
}

func newWorld(t *testing.T, opts ...zvmtest.Option) *world {
	t.Helper()
	return newWorldAt(t, start(t, opts...))
}

func newWorldAt(t *testing.T, sim *zvmtest.Server) *world {
	t.Helper()
	w := &world{sim: sim}
	w.local = sim.AddVPG("web-local", zvmtest.VPGConfig{})
	w.remote = sim.AddVPG("web-dr", zvmtest.VPGConfig{RecoverySite: sim.AddPeerSite("DR")})
	w.web = sim.AddVM("web01", w.local, w.remote)
	must(t, w.web.Guest().WriteFile("/etc/nginx/nginx.conf", []byte(goodConfig)))
	w.client, w.Session = connect(t, sim)
	return w
}

func start(t *testing.T, opts ...zvmtest.Option) *zvmtest.Server {
	t.Helper()
	return zvmtest.Start(t, append(append(profile(t), withinReach(t)), opts...)...)
}

// withinReach holds a ZVM to the checked-in table of what may be asked of it: anything else fails the test.
func withinReach(t *testing.T) zvmtest.Option {
	t.Helper()
	table, err := os.ReadFile(filepath.FromSlash("../zvm/testdata/reach.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return zvmtest.WithReach(strings.Split(strings.TrimSpace(string(table)), "\n")...)
}

func connect(t *testing.T, sim *zvmtest.Server, opts ...rewind.Option) (*zvm.Client, *rewind.Session) {
	t.Helper()
	return connectWithin(t, sim, time.Minute, opts...)
}

// connectWithin is connect with a limit on how long an answer may take to begin.
func connectWithin(t *testing.T, sim *zvmtest.Server, limit time.Duration, opts ...rewind.Option) (*zvm.Client, *rewind.Session) {
	t.Helper()
	client, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()),
		zvm.WithRetry(zvm.RetryPolicy{Max: 2, MinWait: time.Millisecond, MaxWait: 10 * time.Millisecond}),
		zvm.WithHeaderTimeout(limit))
	must(t, err)
	settle := 5 * time.Second
	if !tellsAll() {
		settle = 1500 * time.Millisecond // is waited for in full where the server does not say at which VPG an insert ran
	}
	opts = append([]rewind.Option{
		rewind.WithAgent("patch-bot"),
		rewind.WithSchedule(task.Schedule{Min: 2 * time.Millisecond, Max: 20 * time.Millisecond}),
		rewind.WithLimits(rewind.Limits{
			Listing: 5 * time.Second, Reconcile: time.Second, Settle: settle, Mount: 5 * time.Second, Unmount: 3 * time.Second,
		}),
	}, opts...)
	s, err := rewind.NewSession(client, opts...)
	must(t, err)
	return client, s
}

// guard protects a VM for a change that has no id of its own.
func (w *world) guard(t *testing.T, vm string) *rewind.Guard {
	t.Helper()
	g, err := w.Protect(t.Context(), vm, rewind.Change{Action: "upgrade nginx"})
	must(t, err)
	return g
}

func (w *world) nothingMounted(t *testing.T) {
	t.Helper()
	if left := w.sim.LiveFLRSessions(); len(left) != 0 {
		t.Errorf("left mounted: %+v", left)
	}
}

// taggedIn returns the tags of ours that stand in a VPG's journal.
func taggedIn(v *zvmtest.VPG) []string {
	var tags []string
	for _, cp := range v.TaggedCheckpoints() {
		tags = append(tags, cp.Tag)
	}
	return tags
}

// untilSeen returns a context that ends once the server has seen a request, for requests that it never answers.
func (w *world) untilSeen(t *testing.T, method, pattern string) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	before := w.sim.Count(method, pattern) // now: the request may come before the goroutine does
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for ; ctx.Err() == nil; <-ticker.C {
			if w.sim.Count(method, pattern) > before {
				cancel()
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// folderIs fails when a folder holds anything but the named files.
func folderIs(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, want %q", filepath.Base(dir), got, names)
	}
}
