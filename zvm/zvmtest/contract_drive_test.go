package zvmtest_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// exchange is one answered request of a route.
type exchange struct {
	method, pattern string
	answer          answer
}

// driver asks a server for everything it serves, in a world where each answer
// has something to say.
type driver struct {
	*client
	exchanges []exchange
}

// ask sends a request of a route: ids take the places of its parameters, and
// what follows a "?" is the query.
func (d *driver) ask(method, route, body string, ids ...string) answer {
	d.t.Helper()
	pattern, query, _ := strings.Cut(route, "?")
	segments := strings.Split(pattern, "/")
	for i, segment := range segments {
		if strings.HasPrefix(segment, "{") {
			segments[i], ids = url.PathEscape(ids[0]), ids[1:]
		}
	}
	path := strings.Join(segments, "/")
	if query != "" {
		path += "?" + query
	}
	contentType := ""
	if body != "" {
		contentType = "application/json"
	}
	if strings.HasSuffix(pattern, "/token") {
		contentType = "application/x-www-form-urlencoded"
	}
	return d.keep(method, pattern, d.do(method, path, contentType, strings.NewReader(body)))
}

func (d *driver) keep(method, pattern string, a answer) answer {
	d.t.Helper()
	want := http.StatusOK
	if pattern == "/v1/session/add" {
		want = http.StatusNotFound
	}
	if a.status != want {
		d.t.Fatalf("%s %s: %d %s", method, pattern, a.status, a.body)
	}
	d.exchanges = append(d.exchanges, exchange{method, pattern, a})
	return a
}

func (d *driver) get(route string, ids ...string) answer {
	d.t.Helper()
	return d.ask(http.MethodGet, route, "", ids...)
}

func (d *driver) post(route, body string, ids ...string) answer {
	d.t.Helper()
	return d.ask(http.MethodPost, route, body, ids...)
}

// drive fails the test if it leaves out a route that is served.
func drive(t *testing.T, s *zvmtest.Server) []exchange {
	t.Helper()
	d := &driver{client: login(t, s)}
	vpg, vm := furnish(t, s)
	d.login()
	d.inventory(vpg, vm)
	checkpoint := d.insert(vpg)
	d.failoverTest(vpg, vm, checkpoint)
	d.clone(vpg, vm, checkpoint)
	d.fileLevelRecovery(vpg, vm, checkpoint)
	d.history(vpg, vm)

	driven := map[string]bool{}
	for _, e := range d.exchanges {
		driven[e.method+" "+e.pattern] = true
	}
	for _, op := range s.Support() {
		if op.Served && !driven[op.Method+" "+op.Path] {
			t.Errorf("%s %s is served and not driven", op.Method, op.Path)
		}
	}
	return d.exchanges
}

func furnish(t *testing.T, s *zvmtest.Server) (*zvmtest.VPG, *zvmtest.VM) {
	t.Helper()
	peer := s.AddPeerSite("DR")
	local := s.AddVPG("web", zvmtest.VPGConfig{})
	remote := s.AddVPG("web-dr", zvmtest.VPGConfig{RecoverySite: peer, Status: 3, SubStatus: 28})
	vm := s.AddVM("web01", local, remote)
	vm.SetIPs("192.0.2.7", "fe80::7")
	vm.SetSuspicion(2)
	local.SetSuspicion(3)
	s.AddVM("unprotected")
	syncing := s.AddVPG("syncing", zvmtest.VPGConfig{SubStatus: 1, JournalAge: -1})
	syncing.SetStatus(0, 1)
	s.AddVM("new01", syncing)
	for _, err := range []error{
		vm.Guest().WriteFile("/etc/app.conf", []byte("before")),
		vm.Guest().Symlink("app.conf", "/etc/app.link"),
		vm.Guest().Mkdir("/etc/app.d"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return local, vm
}

func (d *driver) login() {
	form := url.Values{
		"grant_type": {"password"}, "client_id": {"zerto-client"}, "scope": {"openid"},
		"username": {d.s.Username()}, "password": {d.s.Password()},
	}
	d.post("/auth/realms/{realm}/protocol/openid-connect/token", form.Encode(), "zerto")
	d.get("/auth/realms/{realm}/.well-known/openid-configuration", "zerto")
	d.post("/v1/session/add", "{}")
}

func (d *driver) inventory(vpg *zvmtest.VPG, vm *zvmtest.VM) {
	d.get("/v1/localsite")
	var peers []struct {
		Link struct{ Identifier string }
	}
	d.get("/v1/peersites").into(d.t, &peers)
	d.get("/v1/peersites/{id}", peers[0].Link.Identifier)
	d.get("/v1/virtualizationsites")
	d.get("/v1/virtualizationsites/{id}/vms", d.s.LocalSite().ID)
	d.get("/v1/vms?includeBackupedVms=false")
	d.get("/v1/vms/{id}?vpgIdentifier="+vpg.ID(), vm.ID())
	d.get("/v1/vpgs")
	d.get("/v1/vpgs/statuses")
	d.get("/v1/vpgs/substatuses")
	d.get("/v1/serverDateTime/serverDateTimeUtc")
	d.get("/v1/serverDateTime/serverDateTimeLocal")
	d.get("/v1/serverDateTime/dateTimeArgument?dateTime=2026-11-29T10:00Z")
	d.get("/v1/encryptionDetection/state")
	d.get("/v1/encryptionDetection/suspected/vpgs")
	d.get("/v1/encryptionDetection/suspected/vms")
}

func (d *driver) insert(vpg *zvmtest.VPG) (checkpoint string) {
	id := d.post("/v1/vpgs/{id}/checkpoints", `{"checkpointName":"contract"}`, vpg.ID()).text(d.t)
	d.get("/v1/tasks/{id}", strings.Replace(id, ":", ".", 1)) // in progress
	d.s.Advance(10 * time.Second)
	d.get("/v1/vpgs/{id}/checkpoints", vpg.ID())
	d.get("/v1/vpgs/{id}/checkpoints/stats", vpg.ID())
	return vpg.TaggedCheckpoints()[0].ID
}

func (d *driver) failoverTest(vpg *zvmtest.VPG, vm *zvmtest.VM, checkpoint string) {
	d.post("/v1/vpgs/{id}/FailoverTest",
		`{"checkpointIdentifier":"`+checkpoint+`","vmIdentifiers":["`+vm.ID()+`"]}`, vpg.ID())
	d.s.Advance(10 * time.Second)
	d.get("/v1/vpgs/{id}", vpg.ID()) // with a running test
	d.post("/v1/vpgs/{id}/FailoverTestStop", `{"failoverTestSuccess":true,"failoverTestSummary":"as hoped"}`, vpg.ID())
	d.s.Advance(10 * time.Second)
	d.get("/v1/vpgs/{id}", vpg.ID()) // with its LastTest
}

func (d *driver) clone(vpg *zvmtest.VPG, vm *zvmtest.VM, checkpoint string) {
	body := `{"checkpointId":"` + checkpoint + `","datastoreIdentifier":null,"vmIdentifiers":["` + vm.ID() + `"]}`
	d.post("/v1/vpgs/{id}/CloneStart", body, vpg.ID())
	d.post("/v1/vpgs/{id}/CloneAbort", "", vpg.ID())
	d.post("/v1/vpgs/{id}/CloneStart", body, vpg.ID())
	d.s.Advance(10 * time.Second)
	d.get("/v1/virtualizationsites/{id}/vms", d.s.LocalSite().ID)
}

func (d *driver) fileLevelRecovery(vpg *zvmtest.VPG, vm *zvmtest.VM, checkpoint string) {
	session := d.post("/v1/flrs", `{"jflr":{"vpgIdentifier":"`+vpg.ID()+`","vmIdentifier":"`+vm.ID()+
		`","checkpointIdentifier":"`+checkpoint+`"}}`).text(d.t)
	d.get("/v1/flrs/{id}", session) // mounting
	d.s.Advance(10 * time.Second)
	d.get("/v1/flrs")
	var roots struct{ PathItems []struct{ Path string } }
	d.post("/v1/flrs/{id}/browse", `{"path":""}`, session).into(d.t, &roots)
	folder := roots.PathItems[0].Path + "/etc"
	d.post("/v1/flrs/{id}/browse", `{"path":"`+folder+`","pageNumber":1,"pageSize":50}`, session)
	link := d.post("/v1/flrs/{id}/download", `{"pathList":["`+folder+`/app.conf"]}`, session).text(d.t)
	d.keep(http.MethodGet, "/v1/downloads/{link}", d.do(http.MethodGet, link, "", nil))
	id := d.ask(http.MethodDelete, "/v1/flrs/{id}", "", session).text(d.t)
	d.get("/v1/tasks/{id}", strings.Replace(id, ":", ".", 1)) // with an FLR session
	d.s.Advance(10 * time.Second)
}

// history asks for what the calls before have left.
func (d *driver) history(vpg *zvmtest.VPG, vm *zvmtest.VM) {
	d.s.ScriptTask("InsertTaggedCP", zvmtest.TaskFailed, "the VPG is busy")
	d.post("/v1/vpgs/{id}/checkpoints", `{"checkpointName":"refused"}`, vpg.ID())
	d.s.Advance(10 * time.Second)
	d.get("/v1/tasks")
	d.get("/v1/tasks/types")
	d.get("/v1/events")
	d.get("/v1/vms")
	d.get("/v1/vms/{id}/pointsInTime?vpgIdentifier="+vpg.ID(), vm.ID())
	d.get("/v1/vms/{id}/pointsInTime/stats?vpgIdentifier="+vpg.ID(), vm.ID())
}
