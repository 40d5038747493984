package zvmtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func (c *client) mount(vpg *zvmtest.VPG, vm *zvmtest.VM, checkpoint string) answer {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"jflr": map[string]string{
		"vpgIdentifier": vpg.ID(), "vmIdentifier": vm.ID(), "checkpointIdentifier": checkpoint,
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.post("/v1/flrs", string(body))
}

// mounted is a VM whose files can be had through session.
type mounted struct {
	*client
	vpg     *zvmtest.VPG
	vm      *zvmtest.VM
	session string
}

// mountNow mounts web01, with the files, from its latest checkpoint.
func mountNow(t *testing.T, files map[string]string, opts ...zvmtest.Option) mounted {
	t.Helper()
	s := start(t, opts...)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	for path, content := range files {
		if err := vm.Guest().WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	s.Advance(6 * time.Second)
	c := login(t, s)
	all := vpg.Checkpoints(s.Now().Add(-6*time.Second), s.Now())
	session := c.mount(vpg, vm, all[len(all)-1].ID).text(t)
	s.Advance(3 * time.Second)
	return mounted{c, vpg, vm, session}
}

func (m mounted) browse(body string) (parent string, items []string) {
	m.t.Helper()
	a := m.post("/v1/flrs/"+m.session+"/browse", body)
	if a.status != http.StatusOK {
		m.t.Fatalf("browse %s: %d %s", body, a.status, a.body)
	}
	var got struct {
		MainPathItem struct{ Path string }
		PathItems    []struct {
			Path, Type          string
			SizeInBytes         *int64
			IsBrowsable         bool
			DownloadInformation struct {
				IsDownloadable        bool
				AdditionalInformation *string
			}
		}
	}
	a.into(m.t, &got)
	for _, one := range got.PathItems {
		text := one.Type + " " + one.Path
		if one.SizeInBytes != nil {
			text += fmt.Sprint(" ", *one.SizeInBytes)
		}
		if !one.DownloadInformation.IsDownloadable && one.DownloadInformation.AdditionalInformation != nil {
			text += " " + *one.DownloadInformation.AdditionalInformation
		}
		items = append(items, text)
	}
	return got.MainPathItem.Path, items
}

func TestFLRServesTheGuestAsItWasAtTheTag(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	c := login(t, s)
	write := func(content string) {
		t.Helper()
		if err := vm.Guest().WriteFile("/etc/app.conf", []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	write("before")
	c.insert(vpg, "mark")
	s.Advance(3 * time.Second)
	write("after")
	s.Advance(10 * time.Second)

	tag := vpg.TaggedCheckpoints()[0]
	later := vpg.Checkpoints(s.Now().Add(-4*time.Second), s.Now())[0]
	for id, want := range map[string]string{tag.ID: "before", later.ID: "after"} {
		session := c.mount(vpg, vm, id).text(t)
		s.Advance(3 * time.Second)
		link := c.post("/v1/flrs/"+session+"/download", `{"pathList":["Volume1-Ext4/etc/app.conf"]}`).text(t)
		got := c.get(link)
		if got.body != want || got.header.Get("Content-Length") != fmt.Sprint(len(want)) {
			t.Errorf("download = %d %q with Content-Length %q, want %q", got.status, got.body, got.header.Get("Content-Length"), want)
		}
	}
}

// A tag holds what the guest held when its task was done: not what was changed
// later in the same instant of a clock that stands still.
func TestTagIsFrozenWhenItsTaskIsDone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		insert  time.Duration
		observe bool // ask for the task before the change
	}{
		{"seen to be done", 3 * time.Second, true},
		{"done and not looked at", 3 * time.Second, false},
		{"done at once", 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, zvmtest.WithInsertTime(tc.insert))
			vpg := s.AddVPG("web", quiet())
			vm := s.AddVM("web01", vpg)
			c := login(t, s)
			write := func(content string) {
				t.Helper()
				if err := vm.Guest().WriteFile("/etc/app.conf", []byte(content)); err != nil {
					t.Fatal(err)
				}
			}
			write("before")
			id := c.insert(vpg, "mark")
			s.Advance(tc.insert)
			if tc.observe {
				c.task(id)
			}
			write("after")
			m := mounted{c, vpg, vm, c.mount(vpg, vm, vpg.TaggedCheckpoints()[0].ID).text(t)}
			s.Advance(3 * time.Second)
			link := c.post("/v1/flrs/"+m.session+"/download", `{"pathList":["Volume1-Ext4/etc/app.conf"]}`).text(t)
			if got := c.get(link); got.body != "before" {
				t.Errorf("the tag holds %q", got.body)
			}
		})
	}
}

func TestMountTakesItsTime(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	c := login(t, s)
	session := c.mount(vpg, vm, vpg.Checkpoints(time.Time{}, time.Time{})[0].ID).text(t)
	status := func() string {
		var got struct{ FlrSessionStatus string }
		c.get("/v1/flrs/"+session).into(t, &got)
		return got.FlrSessionStatus
	}
	if got := status(); got != zvmtest.MountInProgress {
		t.Errorf("at once: %s", got)
	}
	for _, call := range []string{"browse", "download"} {
		if a := c.post("/v1/flrs/"+session+"/"+call, `{"path":"","pathList":["x"]}`); a.status != http.StatusBadRequest {
			t.Errorf("%s before the mount is done = %d, want 400", call, a.status)
		}
	}
	s.Advance(3 * time.Second)
	if got := status(); got != zvmtest.MountCompleted {
		t.Errorf("after 3 s: %s", got)
	}
}

func TestMountIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	local := s.AddVPG("local", zvmtest.VPGConfig{})
	remote := s.AddVPG("remote", zvmtest.VPGConfig{RecoverySite: s.AddPeerSite("There")})
	syncing := s.AddVPG("syncing", zvmtest.VPGConfig{})
	vm, other := s.AddVM("web01", local, remote), s.AddVM("other", syncing)
	off := s.AddVM("off", local)
	off.SetFLREnabled(false)
	id := func(vpg *zvmtest.VPG) string { return vpg.Checkpoints(time.Time{}, time.Time{})[0].ID }
	lost := id(local)
	local.LoseCheckpoint(lost)
	pending := local.RunForeignInsert("not yet")
	syncing.SetStatus(1, 6)
	c := login(t, s)
	for name, tc := range map[string]struct {
		a    answer
		want int
	}{
		"at a recovery site elsewhere": {c.mount(remote, vm, id(remote)), 500},
		"of another VPG's VM":          {c.mount(local, other, id(local)), 404},
		"while syncing":                {c.mount(syncing, other, id(syncing)), 500},
		"without FLR":                  {c.mount(local, off, id(local)), 500},
		"from a lost checkpoint":       {c.mount(local, vm, lost), 400},
		"from a task id":               {c.mount(local, vm, pending), 400},
		"without jflr":                 {c.post("/v1/flrs", `{}`), 400},
		"with jflr and bflr":           {c.post("/v1/flrs", `{"jflr":{},"bflr":{}}`), 400},
	} {
		if tc.a.status != tc.want || !strings.Contains(tc.a.body, `"Message":"`) {
			t.Errorf("mount %s = %d %s, want %d", name, tc.a.status, tc.a.body, tc.want)
		}
	}
	if n := len(s.LiveFLRSessions()); n != 0 {
		t.Errorf("sessions = %d", n)
	}
}

func TestBitmapSyncAllowsMounts(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	vpg.BitmapSync(true)
	if a := login(t, s).mount(vpg, vm, vpg.Checkpoints(time.Time{}, time.Time{})[0].ID); a.status != http.StatusOK {
		t.Errorf("mount = %d %s", a.status, a.body)
	}
}

func TestMountThatFails(t *testing.T) {
	t.Parallel()
	m := mountNow(t, nil, zvmtest.WithSwitch(zvmtest.MountFails))
	if got := m.s.LiveFLRSessions()[0].Status; got != zvmtest.MountFailed {
		t.Errorf("status = %s", got)
	}
}

func TestPointsInTimeTellWhatCanBeMounted(t *testing.T) {
	t.Parallel()
	s := start(t)
	vm, vpgs := threefold(s)
	c := login(t, s)
	for i, want := range []bool{true, false} {
		var list []struct {
			Checkpoint wireCheckpoint
			CanMount   struct {
				IsAllowed bool
				Reason    *string
			}
		}
		c.get("/v1/vms/"+vm.ID()+"/pointsInTime?vpgIdentifier="+vpgs[i].ID()+"&startDate=2026-11-29T09:59:50Z").into(t, &list)
		if len(list) != 2 || list[0].CanMount.IsAllowed != want || (list[0].CanMount.Reason == nil) != want {
			t.Errorf("VPG %s: %+v", vpgs[i].Name(), list)
		}
		var stats struct {
			Latest *struct{ Checkpoint wireCheckpoint }
		}
		c.get("/v1/vms/"+vm.ID()+"/pointsInTime/stats?vpgIdentifier="+vpgs[i].ID()).into(t, &stats)
		if diff := cmp.Diff(list[1].Checkpoint, stats.Latest.Checkpoint); diff != "" {
			t.Errorf("latest (-want +got):\n%s", diff)
		}
	}
}

func TestSessionListAndShape(t *testing.T) {
	t.Parallel()
	for _, array := range []bool{false, true} {
		var opts []zvmtest.Option
		if array {
			opts = append(opts, zvmtest.WithSwitch(zvmtest.SessionAsArray))
		}
		m := mountNow(t, nil, opts...)
		if body := m.get("/v1/flrs/" + m.session).body; strings.HasPrefix(body, "[") != array {
			t.Errorf("array %v: %s", array, body)
		}
		for query, want := range map[string]int{"": 1, "?vmIdentifier=" + m.vm.ID(): 1, "?vmIdentifier=x": 0} {
			var list []struct{ FlrSessionIdentifier, FlrSessionType string }
			m.get("/v1/flrs"+query).into(t, &list)
			if len(list) != want || want == 1 && (list[0].FlrSessionIdentifier != m.session || list[0].FlrSessionType != "jflr") {
				t.Errorf("sessions%s = %+v", query, list)
			}
		}
	}
}

func TestUnmountIsATask(t *testing.T) {
	t.Parallel()
	m := mountNow(t, nil)
	path := "/v1/flrs/" + m.session
	task := m.do(http.MethodDelete, path, "", nil).text(t)
	if again := m.do(http.MethodDelete, path, "", nil).text(t); again != task {
		t.Errorf("second unmount = %s, want the first's task %s", again, task)
	}
	if live := m.s.LiveFLRSessions(); len(live) != 1 || live[0].Status != zvmtest.UnmountInProgress {
		t.Errorf("sessions while unmounting = %+v", live)
	}
	m.s.Advance(time.Second)
	if got := m.task(task); got.Type != "FlrJournalUnmount" || got.Status.State != zvmtest.TaskCompleted {
		t.Errorf("task = %+v", got)
	}
	if live := m.s.LiveFLRSessions(); len(live) != 0 {
		t.Errorf("sessions after the unmount = %+v", live)
	}
	if a := m.do(http.MethodDelete, path, "", nil); a.status != http.StatusNotFound {
		t.Errorf("unmount of what is gone = %d, want 404", a.status)
	}
}

func TestUnmountSwitches(t *testing.T) {
	t.Parallel()
	for sw, want := range map[zvmtest.Switch]func(m mounted) string{
		zvmtest.UnmountAnswersNothing: func(mounted) string { return "" },
		zvmtest.UnmountAnswersSession: func(m mounted) string { return m.session },
	} {
		m := mountNow(t, nil, zvmtest.WithSwitch(sw))
		if got := m.do(http.MethodDelete, "/v1/flrs/"+m.session, "", nil).text(t); got != want(m) {
			t.Errorf("%v: answer = %q", sw, got)
		}
	}
	m := mountNow(t, nil, zvmtest.WithSwitch(zvmtest.UnmountFails))
	m.do(http.MethodDelete, "/v1/flrs/"+m.session, "", nil)
	m.s.Advance(time.Second)
	if live := m.s.LiveFLRSessions(); len(live) != 1 || live[0].Status != zvmtest.MountCompleted {
		t.Errorf("sessions after a failed unmount = %+v", live)
	}
}

func TestBrowse(t *testing.T) {
	t.Parallel()
	m := mountNow(t, map[string]string{"/data/a b%41#ü.txt": "xyz", "/data/sub/x": ""})
	if err := m.vm.Guest().Symlink("/data", "/data/link"); err != nil {
		t.Fatal(err)
	}
	if parent, items := m.browse(`{}`); parent != "" || len(items) != 1 || !strings.HasPrefix(items[0], "Partition Volume1-Ext4") {
		t.Errorf("roots of %q = %q", parent, items)
	}
	parent, items := m.browse(`{"PATH":"Volume1-Ext4/data"}`)
	want := []string{"File Volume1-Ext4/data/a b%41#ü.txt 3", "Folder Volume1-Ext4/data/sub"}
	if diff := cmp.Diff(want, items); diff != "" || parent != "Volume1-Ext4/data" {
		t.Errorf("children of %q (-want +got):\n%s", parent, diff)
	}
	for path, status := range map[string]int{"Volume1-Ext4/none": 404, `Volume1-Ext4\\data`: 400, "Volume1-Ext4/../x": 400} {
		if a := m.post("/v1/flrs/"+m.session+"/browse", `{"path":"`+path+`"}`); a.status != status {
			t.Errorf("browse %s = %d, want %d", path, a.status, status)
		}
	}
}

func TestBrowseNamesWhyALinkCannotBeHad(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	if err := vm.Guest().Symlink("/etc", "/link"); err != nil {
		t.Fatal(err)
	}
	c := login(t, s)
	s.Advance(6 * time.Second)
	all := vpg.Checkpoints(s.Now().Add(-6*time.Second), s.Now())
	m := mounted{c, vpg, vm, c.mount(vpg, vm, all[len(all)-1].ID).text(t)}
	s.Advance(3 * time.Second)
	_, items := m.browse(`{"path":"Volume1-Ext4"}`)
	if !strings.Contains(strings.Join(items, "\n"), "Volume1-Ext4/link Cannot restore. Links are not supported.") {
		t.Errorf("items = %q", items)
	}
	a := m.post("/v1/flrs/"+m.session+"/download", `{"pathList":["Volume1-Ext4/link"]}`)
	if a.status != http.StatusInternalServerError || !strings.Contains(a.body, "Links are not supported") {
		t.Errorf("download of the link = %d %s", a.status, a.body)
	}
}

func TestBrowsePages(t *testing.T) {
	t.Parallel()
	const all = 250
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		page string
		n    int
		at   int // the first item's number
	}{
		{"no page asked", nil, ``, all, 0},
		{"first page", nil, `,"pageNumber":1,"pageSize":100`, 100, 0},
		{"page 0 is the first", nil, `,"pageNumber":0,"pageSize":100`, 100, 0},
		{"last page", nil, `,"pageNumber":3,"pageSize":100`, 50, 200},
		{"behind the last", nil, `,"pageNumber":4,"pageSize":100`, 0, 0},
		{"far behind the last", nil, `,"pageNumber":9223372036854775807,"pageSize":9223372036854775807`, 0, 0},
		{"exactly full", nil, `,"pageNumber":5,"pageSize":50`, 50, 200},
		{"a number without a size", nil, `,"pageNumber":2`, 0, 0},
		{"default size by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.BrowsePageSize100)}, ``, 100, 0},
		{"page 1 from 0 by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.BrowsePageBaseZero)}, `,"pageNumber":1,"pageSize":100`, 100, 100},
		{"ignored by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.BrowseIgnoresPaging)}, `,"pageNumber":3,"pageSize":100`, all, 0},
		{"always the first by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.BrowseAlwaysFirstPage)}, `,"pageNumber":3,"pageSize":100`, 100, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for i := range all {
				files[fmt.Sprintf("/many/%03d", i)] = "x"
			}
			m := mountNow(t, files, tc.opts...)
			_, items := m.browse(`{"path":"Volume1-Ext4/many"` + tc.page + `}`)
			if len(items) != tc.n || tc.n > 0 && items[0] != fmt.Sprintf("File Volume1-Ext4/many/%03d 1", tc.at) {
				t.Errorf("%d items from %v, want %d from number %d", len(items), items[:min(1, len(items))], tc.n, tc.at)
			}
		})
	}
}

func TestBrowseBaseNames(t *testing.T) {
	t.Parallel()
	m := mountNow(t, map[string]string{"/data/x": ""}, zvmtest.WithSwitch(zvmtest.BrowseBaseNames))
	parent, items := m.browse(`{"path":"Volume1-Ext4/data"}`)
	if diff := cmp.Diff([]string{"File x 0"}, items); diff != "" || parent != "Volume1-Ext4/data" {
		t.Errorf("items of %q (-want +got):\n%s", parent, diff)
	}
}

func TestInsertCapturesAHostDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "app.conf"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before")
	s := start(t)
	vpg := s.AddVPG("web", quiet())
	vm := s.AddVM("web01", vpg)
	if err := vm.Guest().MountDir("/etc/app", dir); err != nil {
		t.Fatal(err)
	}
	c := login(t, s)
	s.Advance(time.Second)
	write("at the tag")
	c.insert(vpg, "mark")
	s.Advance(3 * time.Second)
	write("after")
	m := mounted{c, vpg, vm, c.mount(vpg, vm, vpg.TaggedCheckpoints()[0].ID).text(t)}
	s.Advance(3 * time.Second)
	if got := m.get(m.download(`"Volume1-Ext4/etc/app/app.conf"`).text(t)).body; got != "at the tag" {
		t.Errorf("download = %q", got)
	}
}
