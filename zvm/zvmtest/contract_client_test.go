package zvmtest_test

import (
	"errors"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// checkClient compares what the client really sends with the document: paths,
// query names, body fields and their spelling.
func checkClient(t *testing.T, doc *contract) {
	server := start(t, zvmtest.WithServiceClient("robot", "MARKER-secret-of-robot", zvmtest.Admin))
	callEverything(t, server)
	outside, form := newUsage(map[string]string{
		"GET /v1/downloads/{link}": outsideTheDocument["GET /v1/downloads/{link}"],
	}), newUsage(formFields)
	for _, request := range server.Requests() {
		name := request.Method + " " + request.Path
		operation := doc.template(request.Method, request.Path)
		switch {
		case operation == nil && strings.HasPrefix(request.Path, "/v1/downloads/") && outside.use("GET /v1/downloads/{link}"):
			continue
		case operation == nil:
			t.Errorf("%s is not in the document", name)
			continue
		}
		query, err := url.ParseQuery(request.Query)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, unknown := range unknownNames(keys(query), queryNames(operation)) {
			t.Errorf("%s: the query name %s is not in the document", name, unknown)
		}
		if strings.HasPrefix(request.Path, "/auth/") {
			checkForm(t, bodySchema(operation, "application/x-www-form-urlencoded"), request.Body, form)
			continue
		}
		for _, problem := range checkRequestBody(bodySchema(operation, "application/json"), request.Body) {
			t.Errorf("%s %s: %s", name, request.Body, problem)
		}
		if accept := request.Header.Get("Accept"); !strings.HasPrefix(accept, "application/json") {
			t.Errorf("%s: Accept is %q; old servers may then answer XML (zvm-wire 10.1)", name, accept)
		}
	}
	outside.report(t, "requests outside the document")
	form.report(t, "form fields outside the document")
}

func checkForm(t *testing.T, schema *openapi3.SchemaRef, body string, extras *usage) {
	t.Helper()
	fields, err := url.ParseQuery(body)
	if err != nil {
		t.Errorf("the token form: %v", err)
	}
	for _, name := range keys(fields) {
		if !hasField(schema, []string{name}) && !extras.use(name) {
			t.Errorf("the token form: %s is not in the document", name)
		}
	}
}

func keys(values url.Values) []string { return slices.Sorted(maps.Keys(values)) }

// scenario calls the methods of a client in an order in which each succeeds.
type scenario struct {
	t       *testing.T
	s       *zvmtest.Server
	c       *zvm.Client
	called  map[string]bool
	vpg     zvm.VPGID
	vm      zvm.VMID
	point   zvm.CheckpointID
	task    zvm.TaskID
	session zvm.SessionID
}

func callEverything(t *testing.T, s *zvmtest.Server) {
	t.Helper()
	vpg, vm := furnish(t, s)
	sc := &scenario{t: t, s: s, called: map[string]bool{}, vpg: zvm.VPGID(vpg.ID()), vm: zvm.VMID(vm.ID())}
	sc.c = newSDK(t, s, zvm.ClientCredentials("robot", "MARKER-secret-of-robot"))
	sc.call("GetLocalSite", func() error { _, err := sc.c.GetLocalSite(t.Context()); return err })
	sc.c = newSDK(t, s, zvm.Password(s.Username(), s.Password()))
	sc.reads()
	sc.writes()
	s.Advance(61 * time.Second) // the token ends, and the refresh token renews it
	sc.call("GetServerTime", func() error { _, err := sc.c.GetServerTime(t.Context()); return err })

	describe := []string{"With", "BaseURL", "Format", "String", "Trouble"}
	client := reflect.TypeFor[*zvm.Client]()
	for i := range client.NumMethod() {
		if name := client.Method(i).Name; !sc.called[name] && !slices.Contains(describe, name) {
			t.Errorf("Client.%s was not called; its requests are not checked", name)
		}
	}
}

func newSDK(t *testing.T, s *zvmtest.Server, credentials zvm.Credentials) *zvm.Client {
	t.Helper()
	c, err := zvm.New(s.URL(), credentials, zvm.WithRootCAs(s.CertPool()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (sc *scenario) call(name string, method func() error) {
	sc.t.Helper()
	sc.called[name] = true
	if err := method(); err != nil {
		sc.t.Fatalf("%s: %v", name, err)
	}
	sc.s.Advance(10 * time.Second)
}

func (sc *scenario) reads() {
	ctx, now := sc.t.Context(), sc.s.Now()
	sc.call("ListPointsInTime", func() error {
		_, err := sc.c.ListPointsInTime(ctx, sc.vm, sc.vpg, zvm.Window{From: now.Add(-time.Hour), To: now})
		return err
	})
	sc.call("ListVMs", func() error {
		_, err := sc.c.ListVMs(ctx, zvm.VMFilter{ID: sc.vm, Name: "web01", VPGName: "web"})
		return err
	})
	sc.call("ListVPGs", func() error { _, err := sc.c.ListVPGs(ctx, zvm.VPGFilter{Name: "web"}); return err })
	sc.call("GetVPG", func() error { _, err := sc.c.GetVPG(ctx, sc.vpg); return err })
	sc.call("ListEvents", func() error {
		_, err := sc.c.ListEvents(ctx, zvm.EventFilter{Type: zvm.EventInsertTaggedCP, After: now})
		return err
	})
	sc.call("ListTasks", func() error {
		_, err := sc.c.ListTasks(ctx, zvm.TaskFilter{Type: "Clone", StartedAfter: now, StartedBefore: now})
		return err
	})
}

func (sc *scenario) writes() {
	ctx, since := sc.t.Context(), sc.s.Now().Add(-time.Minute)
	sc.call("InsertCheckpoint", func() (err error) { sc.task, err = sc.c.InsertCheckpoint(ctx, sc.vpg, "contract"); return err })
	sc.call("GetTask", func() error { _, err := sc.c.GetTask(ctx, sc.task); return err })
	sc.call("TaskStatus", func() error { _, err := task.Wait(ctx, sc.c, sc.task); return err })
	sc.call("ListCheckpoints", func() error {
		for point, err := range sc.c.ListCheckpoints(ctx, sc.vpg, zvm.Window{From: since, To: sc.s.Now()}) {
			if err != nil {
				return err
			}
			if point.Tag == "contract" {
				sc.point = point.ID
			}
		}
		return nil
	})
	vms := []zvm.VMID{sc.vm}
	sc.call("StartFailoverTest", func() error { _, err := sc.c.StartFailoverTest(ctx, sc.vpg, sc.point, vms); return err })
	sc.call("StopFailoverTest", func() error { _, err := sc.c.StopFailoverTest(ctx, sc.vpg, true, "as hoped"); return err })
	sc.call("StartClone", func() error {
		_, err := sc.c.StartClone(ctx, sc.vpg, sc.point, vms)
		return errors.Join(err, sc.c.AbortClone(ctx, sc.vpg))
	})
	sc.called["AbortClone"] = true
	sc.call("MountFLR", func() (err error) {
		sc.session, err = sc.c.MountFLR(ctx, zvm.FLRTarget{VPG: sc.vpg, VM: sc.vm, Checkpoint: sc.point})
		return err
	})
	sc.call("GetFLRSession", func() error { _, err := sc.c.GetFLRSession(ctx, sc.session); return err })
	sc.call("ListFLRSessions", func() error { _, err := sc.c.ListFLRSessions(ctx, sc.vm); return err })
	var root zvm.Item
	sc.call("ItemsFLR", func() error {
		for _, err := range sc.c.ItemsFLR(ctx, sc.session, "") {
			if err != nil {
				return err
			}
		}
		return nil
	})
	sc.call("BrowseFLR", func() error {
		items, err := sc.c.BrowseFLR(ctx, sc.session, "")
		if err == nil {
			root = items.Items[0]
		}
		return err
	})
	sc.call("DownloadFLR", func() error {
		download, err := sc.c.DownloadFLR(ctx, sc.session, root.Path+"/etc/app.conf")
		if err == nil {
			err = download.Body.Close()
		}
		return err
	})
	sc.call("UnmountFLR", func() error { _, err := sc.c.UnmountFLR(ctx, sc.session); return err })
}
