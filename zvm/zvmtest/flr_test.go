package zvmtest_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

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

func TestFLRServesTheGuestAsItWasAtTheTag(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	if err := vm.Guest().WriteFile("/etc/app.conf", []byte("before")); err != nil {
		t.Fatal(err)
	}
	c := login(t, s)
	task := c.insert(vpg, "mark")
	s.Advance(3 * time.Second)
	if got := c.task(task).Status.State; got != zvmtest.TaskCompleted {
		t.Fatalf("state of the insert = %d", got)
	}
	s.Advance(time.Second)
	if err := vm.Guest().WriteFile("/etc/app.conf", []byte("after")); err != nil {
		t.Fatal(err)
	}

	session := c.mount(vpg, vm, vpg.TaggedCheckpoints()[0].ID).text(t)
	browse := c.post("/v1/flrs/"+session+"/browse", `{"path":""}`)
	if browse.status != http.StatusBadRequest {
		t.Errorf("browse before the mount is done = %d, want 400", browse.status)
	}
	s.Advance(3 * time.Second)
	link := c.post("/v1/flrs/"+session+"/download", `{"pathList":["Volume1-Ext4/etc/app.conf"]}`).text(t)
	got := c.get(link)
	if got.body != "before" || got.header.Get("Content-Length") != "6" {
		t.Errorf("download = %d %q with Content-Length %q, want the content at the tag", got.status, got.body, got.header.Get("Content-Length"))
	}

	unmount := c.do(http.MethodDelete, "/v1/flrs/"+session, "", nil).text(t)
	if n := len(s.LiveFLRSessions()); n != 1 {
		t.Errorf("sessions while unmounting = %d, want 1", n)
	}
	s.Advance(time.Second)
	if got := c.task(unmount); got.Status.State != zvmtest.TaskCompleted || got.Type != "FlrJournalUnmount" {
		t.Errorf("unmount task = %+v", got)
	}
	if n := len(s.LiveFLRSessions()); n != 0 {
		t.Errorf("sessions after the unmount = %d, want 0", n)
	}
}
