package zvm_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// mount starts a ZVM in which nothing takes time, and mounts its one VM.
func mount(t testing.TB, fill func(*zvmtest.Guest) error, opts ...zvmtest.Option) (*zvmtest.Server, *zvm.Client, zvm.SessionID) {
	t.Helper()
	sim := zvmtest.Start(t, append([]zvmtest.Option{
		zvmtest.WithInsertTime(0), zvmtest.WithMountTime(0), zvmtest.WithUnmountTime(0),
	}, opts...)...)
	vpg := sim.AddVPG("web", zvmtest.VPGConfig{})
	vm := sim.AddVM("web01", vpg)
	if err := fill(vm.Guest()); err != nil {
		t.Fatal(err)
	}
	client, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.InsertCheckpoint(t.Context(), zvm.VPGID(vpg.ID()), "here"); err != nil {
		t.Fatal(err)
	}
	tagged := vpg.TaggedCheckpoints()
	id, err := client.MountFLR(t.Context(), zvm.FLRTarget{
		VPG: zvm.VPGID(vpg.ID()), VM: zvm.VMID(vm.ID()), Checkpoint: zvm.CheckpointID(tagged[0].ID),
	})
	if err != nil {
		t.Fatal(err)
	}
	return sim, client, id
}

// Every name that a server gives a session that can be browsed, or never will be, is known (zvm-wire 6.3). What is not known
// is waited for.
func TestASessionIsReadyOrFailedUnderEachOfItsNames(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]struct{ ready, failed bool }{
		"MountCompletedSuccessfully": {ready: true},
		"mountcompletedsuccessfully": {ready: true},
		"MountReady":                 {ready: true},
		"MOUNTREADY":                 {ready: true},
		"MountFailed":                {failed: true},
		"MOUNTFAILED":                {failed: true},
		"MountInProgress":            {},
		"NotMounted":                 {},
		"UnmountInProgress":          {},
		"MountReadyToBegin":          {},
		"":                           {},
	} {
		s := zvm.FLRSession{Status: status}
		if s.Ready() != want.ready || s.Failed() != want.failed {
			t.Errorf("%q: ready %t, failed %t, want %+v", status, s.Ready(), s.Failed(), want)
		}
	}
}

// The names of older servers are those that the wire carries.
func TestAMountedSessionIsReadyUnderItsOldName(t *testing.T) {
	t.Parallel()
	_, client, id := mount(t, func(*zvmtest.Guest) error { return nil }, zvmtest.WithSwitch(zvmtest.LegacyMountNames))
	s, err := client.GetFLRSession(t.Context(), id)
	if err != nil || s.Status != "MountReady" || !s.Ready() {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestAFolderIsListedWholeHoweverItIsPaged(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, 49, 50, 99, 100, 101, 999, 1000, 1001, 2500} {
		for name, switches := range map[string][]zvmtest.Switch{
			"pages from 1":              nil,
			"pages from 0":              {zvmtest.BrowsePageBaseZero},
			"a hundred at a time":       {zvmtest.BrowsePageSize100},
			"a hundred, pages from 0":   {zvmtest.BrowsePageSize100, zvmtest.BrowsePageBaseZero},
			"pages are ignored":         {zvmtest.BrowseIgnoresPaging},
			"base names":                {zvmtest.BrowseBaseNames},
			"always the first page":     {zvmtest.BrowseAlwaysFirstPage},
			"nothing where null can be": {zvmtest.NullFields},
		} {
			t.Run(fmt.Sprintf("%d items, %s", count, name), func(t *testing.T) {
				t.Parallel()
				_, client, id := mount(t, func(g *zvmtest.Guest) error {
					if count == 0 {
						return g.Mkdir("/dir")
					}
					return g.WriteManyFiles("/dir", count)
				}, zvmtest.WithSwitch(switches...))
				l, err := client.BrowseFLR(t.Context(), id, "Volume1-Ext4/dir")
				if err != nil {
					t.Fatal(err)
				}
				want := count
				whole := true
				if slices.Contains(switches, zvmtest.BrowseAlwaysFirstPage) && count >= 1000 {
					want, whole = 1000, false
				}
				if slices.Contains(switches, zvmtest.BrowseIgnoresPaging) && count == 1000 {
					whole = false // such an answer cannot be told from that of a server that sends the first page only
				}
				if len(l.Items) != want || l.Complete != whole {
					t.Errorf("%d items, complete %t, want %d, %t", len(l.Items), l.Complete, want, whole)
				}
				for _, i := range l.Items {
					if !strings.HasPrefix(i.Path, "Volume1-Ext4/dir/") {
						t.Fatalf("item %q", i.Path)
					}
				}
			})
		}
	}
}

func TestADownloadIsALinkOrTheDataItself(t *testing.T) {
	t.Parallel()
	const content = "server { listen 80; }\n"
	for _, tt := range []struct {
		name     string
		switches []zvmtest.Switch
		refused  bool
	}{
		{"relative link", nil, false},
		{"absolute link", []zvmtest.Switch{zvmtest.DownloadLinkAbsolute}, false},
		{"bare text", []zvmtest.Switch{zvmtest.DownloadLinkUnquoted}, false},
		{"bytes", []zvmtest.Switch{zvmtest.DownloadBytes}, false},
		{"link without bearer", []zvmtest.Switch{zvmtest.DownloadWithoutBearer}, false},
		{"link that works once", []zvmtest.Switch{zvmtest.DownloadLinkSingleUse}, false},
		{"another origin", []zvmtest.Switch{zvmtest.DownloadLinkForeign}, true},
		{"no link", []zvmtest.Switch{zvmtest.DownloadNotALink}, true},
		{"a login page", []zvmtest.Switch{zvmtest.DownloadLoginPage}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sim, client, id := mount(t, func(g *zvmtest.Guest) error {
				return g.WriteFile("/etc/nginx.conf", []byte(content))
			}, zvmtest.WithSwitch(tt.switches...))
			data, err := client.DownloadFLR(t.Context(), id, "Volume1-Ext4/etc/nginx.conf")
			if tt.refused {
				if err == nil {
					_ = data.Body.Close()
					t.Error("accepted")
				} else if strings.Contains(err.Error(), "MARKER-") {
					t.Errorf("the link is shown: %v", err)
				}
				for _, r := range sim.ForeignRequests() {
					t.Errorf("asked another origin: %+v", r)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(data.Body)
			if closeErr := data.Body.Close(); err != nil || closeErr != nil || string(got) != content {
				t.Errorf("%q, %v, %v", got, err, closeErr)
			}
		})
	}
}

func TestFiltersAreCheckedAgain(t *testing.T) {
	t.Parallel()
	for _, server := range []zvmtest.Switch{0, zvmtest.FiltersIgnored, zvmtest.FiltersContain} {
		var opts []zvmtest.Option
		if server != 0 {
			opts = append(opts, zvmtest.WithSwitch(server))
		}
		sim, client, _ := mount(t, func(*zvmtest.Guest) error { return nil }, opts...)
		other := sim.AddVM("web011", sim.AddVPG("web-other", zvmtest.VPGConfig{}))
		vms, err := client.ListVMs(t.Context(), zvm.VMFilter{Name: "WEB01"})
		if err != nil || len(vms) != 1 || vms[0].Name != "web01" {
			t.Errorf("%v: VMs by name: %+v, %v", server, vms, err)
		}
		vms, err = client.ListVMs(t.Context(), zvm.VMFilter{ID: zvm.VMID(other.ID())})
		if err != nil || len(vms) != 1 || vms[0].Name != "web011" {
			t.Errorf("%v: VMs by id: %+v, %v", server, vms, err)
		}
		vpgs, err := client.ListVPGs(t.Context(), zvm.VPGFilter{Name: "web"})
		if err != nil || len(vpgs) != 1 {
			t.Errorf("%v: VPGs: %+v, %v", server, vpgs, err)
		}
		tasks, err := client.ListTasks(t.Context(), zvm.TaskFilter{Type: zvm.TypeInsertTaggedCP})
		if err != nil || len(tasks) != 1 {
			t.Errorf("%v: inserts: %+v, %v", server, tasks, err)
		}
		tasks, err = client.ListTasks(t.Context(), zvm.TaskFilter{StartedAfter: sim.Now().Add(time.Hour)})
		if err != nil || len(tasks) != 0 {
			t.Errorf("%v: tasks of the future: %+v, %v", server, tasks, err)
		}
		sessions, err := client.ListFLRSessions(t.Context(), zvm.VMID(other.ID()))
		if err != nil || len(sessions) != 0 {
			t.Errorf("%v: sessions of another VM: %+v, %v", server, sessions, err)
		}
		for cp, err := range client.ListCheckpoints(t.Context(), vpgs[0].ID, zvm.Window{From: sim.Now().Add(time.Hour)}) {
			t.Errorf("%v: checkpoint of the future: %+v, %v", server, cp, err)
		}
	}
}

func TestIdsThatCannotBePartOfAPathSendNothing(t *testing.T) {
	t.Parallel()
	sim, client, session := mount(t, func(*zvmtest.Guest) error { return nil })
	before := len(sim.Requests())
	ctx := t.Context()
	for _, id := range []string{"", ".", "..", "a/b", "a?b", "a#b", `a\b`, "a\nb"} {
		_, vpg := client.GetVPG(ctx, zvm.VPGID(id))
		_, insert := client.InsertCheckpoint(ctx, zvm.VPGID(id), "x")
		_, task := client.GetTask(ctx, zvm.TaskID(id))
		_, flr := client.GetFLRSession(ctx, zvm.SessionID(id))
		_, unmount := client.UnmountFLR(ctx, zvm.SessionID(id))
		_, test := client.StartFailoverTest(ctx, zvm.VPGID(id), "1", []zvm.VMID{"v"})
		for i, err := range []error{vpg, insert, task, flr, unmount, test} {
			if err == nil {
				t.Errorf("call %d took id %q", i, id)
			}
		}
	}
	_, noName := client.InsertCheckpoint(ctx, "v", "")
	_, noVMs := client.StartFailoverTest(ctx, "v", "1", nil)
	_, noCheckpoint := client.StartClone(ctx, "v", "", []zvm.VMID{"v"})
	_, noTarget := client.MountFLR(ctx, zvm.FLRTarget{VPG: "v"})
	_, noPath := client.DownloadFLR(ctx, session)
	_, upwards := client.BrowseFLR(ctx, session, "V/../x")
	for i, err := range []error{noName, noVMs, noCheckpoint, noTarget, noPath, upwards} {
		if err == nil {
			t.Errorf("call %d was let through", i)
		}
	}
	if n := len(sim.Requests()); n != before {
		t.Errorf("%d requests were sent", n-before)
	}
}
