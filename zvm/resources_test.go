package zvm

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func decoded[W, R any](t *testing.T, data string, convert func(W) (R, error)) (R, error) {
	t.Helper()
	var w W
	if err := json.Unmarshal([]byte(data), &w); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return convert(w)
}

func TestIdentifiersWhereverTheyStand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, data string
		want       VPGID // "" for an error
	}{
		{"Pascal case at the top", `{"VpgIdentifier":"v1"}`, "v1"},
		{"camel case at the top", `{"vpgIdentifier":"v1"}`, "v1"},
		{"in the link alone", `{"link":{"identifier":"v1"}}`, "v1"},
		{"in the link, with a query", `{"Link":{"identifier":"v1?x=y"}}`, "v1"},
		{"in both, the same", `{"VpgIdentifier":"V1","Link":{"identifier":"v1"}}`, "V1"},
		{"in both, different", `{"VpgIdentifier":"v1","Link":{"identifier":"v2"}}`, ""},
		{"nowhere", `{"VpgName":"web"}`, ""},
		{"null", `{"VpgIdentifier":null,"Link":null}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decoded(t, tt.data, wireVPG.vpg)
			if got.ID != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", got.ID, err, tt.want)
			}
		})
	}
}

func TestAContradictionNamesBothIdentifiers(t *testing.T) {
	t.Parallel()
	_, err := decoded(t, `{"VmIdentifier":"a","VpgIdentifier":"v","Link":{"identifier":"b?VpgIdentifier=v"}}`, wireVM.vm)
	if err == nil || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("got %v, want both named", err)
	}
}

func TestAVMRow(t *testing.T) {
	t.Parallel()
	enabled := true
	for name, data := range map[string]string{
		"as captured": `{"VmIdentifier":"s.vm-38","VmName":"web01","VpgIdentifier":"v1","VpgName":"web",
			"Link":{"identifier":"s.vm-38?VpgIdentifier=v1"},"Link_{0}":{"href":"x"},
			"ProtectedSite":{"identifier":"p","type":"LocalSiteApi"},"RecoverySite":{"href":"https://z/v1/peersites/r","type":"PeerSiteApi"},
			"SourceSite":"Here","TargetSite":"There","EnabledActions":{"IsFlrEnabled":true},"LastTest":null,"ActualRPO":7,
			"VmNetworkInformation":{"NetworkAdapters":[null,{"IpAddresses":null},{"IpAddresses":["192.0.2.1"]}]}}`,
		"ids only in the link": `{"vmName":"web01","vpgName":"web","link":{"identifier":"s.vm-38?vpgidentifier=v1"},
			"protectedSite":{"identifier":"p"},"recoverySite":{"identifier":"r"},"protectedSiteName":"Here","recoverySiteName":"There",
			"enabledActions":{"isFlrEnabled":true},"vmNetworkInformation":{"networkAdapters":[{"ipAddresses":["192.0.2.1"]}]}}`,
	} {
		got, err := decoded(t, data, wireVM.vm)
		want := VM{
			ID: "s.vm-38", Name: "web01", VPG: "v1", VPGName: "web",
			ProtectedSite: SiteRef{"p", "Here"}, RecoverySite: SiteRef{"r", "There"},
			IPs: []string{"192.0.2.1"}, FLREnabled: &enabled,
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, VM (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestStatusInEveryForm(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"VpgIdentifier":"v","Status":1,"SubStatus":0}`:                                       "MeetingSLA None",
		`{"VpgIdentifier":"v","Status":"1","SubStatus":"23"}`:                                  "MeetingSLA BitmapSync",
		`{"VpgIdentifier":"v","Status":"meetingsla","SubStatus":"BitmapSync"}`:                 "MeetingSLA BitmapSync",
		`{"VpgIdentifier":"v","Status":9,"SubStatus":99}`:                                      "unknown (9) unknown (99)",
		`{"VpgIdentifier":"v","Status":-1,"SubStatus":-7}`:                                     "unknown unknown (-7)",
		`{"VpgIdentifier":"v","Status":"NeedsConfiguration2","SubStatus":1.5}`:                 "unknown unknown",
		`{"VpgIdentifier":"v","Status":null}`:                                                  "unknown unknown",
		`{"VpgIdentifier":"v"}`:                                                                "unknown unknown",
		`{"VpgIdentifier":"v","Status":{},"SubStatus":[]}`:                                     "unknown unknown",
		`{"VpgIdentifier":"v","Status":3,"StatusDescription":"RPO","SubStatusDescription":""}`: "RpoNotMeetingSLA unknown",
	} {
		v, err := decoded(t, data, wireVPG.vpg)
		if got := v.Status.String() + " " + v.SubStatus.String(); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", data, got, err, want)
		}
	}
	v, _ := decoded(t, `{"VpgIdentifier":"v","Status":"NeedsConfiguration2"}`, wireVPG.vpg)
	if v.Status != StatusUnknown || v.StatusText != "NeedsConfiguration2" {
		t.Errorf("an unknown name is lost: %v %q", v.Status, v.StatusText)
	}
}

func TestTimeDialects(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.Date(2026, 11, 29, 10, 0, 0, ms*1e6, time.UTC) }
	for text, want := range map[string]time.Time{
		`"2026-11-29T10:00:00Z"`:         at(0),
		`"2026-11-29T10:00:00.000Z"`:     at(0),
		`"2026-11-29T10:00:00.022Z"`:     at(22),
		`"2026-11-29T10:00:00.0220000Z"`: at(22),
		`"2026-11-29T10:00:00"`:          at(0), // no zone is UTC
		`"2026-11-29T13:00:00+03:00"`:    at(0),
		`"/Date(1795946400022)/"`:        at(22),
		`"/Date(1795946400022+0200)/"`:   at(22),
		`"11/29/2026 10:00 AM"`:          at(0),
		`"0001-01-01T00:00:00"`:          {},
		`"0001-01-01T00:00:00Z"`:         {},
		`""`:                             {},
		`null`:                           {},
	} {
		var got Time
		if err := json.Unmarshal([]byte(text), &got); err != nil || !got.Equal(want) || got.Raw != "" {
			t.Errorf("%s: %v (raw %q), %v, want %v", text, got.Time, got.Raw, err, want)
		}
	}
	for text, raw := range map[string]string{`"gestern"`: "gestern", `12`: "12", `{"a":1}`: `{"a":1}`, `"/Date(99999999999999999)/"`: "/Date(99999999999999999)/"} {
		var got Time
		if err := json.Unmarshal([]byte(text), &got); err != nil || !got.IsZero() || got.Raw != raw {
			t.Errorf("%s: %v, raw %q, %v, want zero and %q", text, got.Time, got.Raw, err, raw)
		}
	}
}

func TestABadDateDoesNotSinkTheRecord(t *testing.T) {
	t.Parallel()
	cp, err := decoded(t, `{"CheckpointIdentifier":"786","TimeStamp":"soon","Tag":"x"}`, wireCheckpoint.checkpoint)
	if err != nil || cp.ID != "786" || cp.Tag != "x" || cp.Time.Raw != "soon" {
		t.Errorf("got %+v, %v", cp, err)
	}
}

func TestCheckpointIDsCompareAsNumbers(t *testing.T) {
	t.Parallel()
	ids := []CheckpointID{"10", "9", "0100", "", "x", "99999999999999999999999", "2"}
	slices.SortFunc(ids, CheckpointID.Compare)
	if diff := cmp.Diff([]CheckpointID{"", "x", "2", "9", "10", "0100", "99999999999999999999999"}, ids); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestIdsOfWhatWasCreated(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`"a-b.c-d"`:                        "a-b.c-d",
		" \"a.b\"\r\n":                     "a.b",
		`a.b`:                              "a.b",
		`{"TaskIdentifier":"a.b"}`:         "a.b",
		`{"taskIdentifier":"a:b"}`:         "a:b",
		`{ "2c13.6b5b" }`:                  "2c13.6b5b", // not JSON, but printed so by the vendor (zvm-wire 6.2)
		`""`:                               "",
		``:                                 "",
		`null`:                             "",
		`{}`:                               "",
		`{"Message":"done"}`:               "",
		`"<html>"`:                         "",
		`"../vpgs"`:                        "",
		`["a.b"]`:                          "",
		`"` + strings.Repeat(" ", 9) + `"`: "",
	} {
		got, err := createdID([]byte(body), "TaskIdentifier")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", body, got, err, want)
		}
	}
}

func TestAnAnswerWithSeveralIdsIsReadTheSameWayEveryTime(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"Identifier":"vpg-1","TaskIdentifier":"task-1"}`:             "",
		`{"TaskIdentifier":"task-1","TaskIdentifier":"task-2"}`:        "",
		`{"TaskIdentifier":"task-1","taskidentifier":"task-2"}`:        "",
		`{"Identifier":"a.b","TaskIdentifier":"A:B"}`:                  "a.b",
		`{"Identifier":"","TaskIdentifier":"a.b","TaskId":null}`:       "a.b",
		`{"Identifier":{"x":1},"TaskId":["y"],"TaskIdentifier":"a.b"}`: "a.b",
		`{"Identifier":"../vpgs","TaskIdentifier":"a.b"}`:              "",
		`{"Inner":{"TaskIdentifier":"a.b"}}`:                           "",
	} {
		for range 20 {
			got, err := createdID([]byte(body), "TaskIdentifier", "TaskId", "Identifier")
			if got != want || (err == nil) != (want != "") {
				t.Fatalf("%s: %q, %v, want %q", body, got, err, want)
			}
		}
	}
}

func TestWritesThatAnswerWithSeveralIdsAreUnknown(t *testing.T) {
	t.Parallel()
	several := replies(`{"TaskIdentifier":"a.b","FlrSessionIdentifier":"c.d","Identifier":"e.f","taskIdentifier":"g.h"}`, 200)
	for name, write := range map[string]func(*Client) error{
		"insert":  func(c *Client) error { _, err := c.InsertCheckpoint(t.Context(), "vpg", "tag"); return err },
		"mount":   func(c *Client) error { _, err := c.MountFLR(t.Context(), FLRTarget{"vpg", "vm", "1"}); return err },
		"unmount": func(c *Client) error { _, err := c.UnmountFLR(t.Context(), "s"); return err },
	} {
		s := &script{api: several}
		if err := write(s.client(t)); !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, errSeveralIDs) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestATaskWithColonsIsAskedForWithDots(t *testing.T) {
	t.Parallel()
	got, err := decoded(t, `{"TaskIdentifier":"a:b","Status":{"State":"Completed","Progress":99.5},"CompleteReason":null,
		"RelatedEntities":{"Vpgs":[null,{"identifier":"v1"}],"FlrSessions":null}}`, wireTask.task)
	if err != nil || got.ID != "a.b" || got.State != 6 || len(got.VPGs) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDownloadLinks(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`"/v1/downloads/a.b"`:          "/v1/downloads/a.b",
		`"v1/downloads/a.b"`:           "v1/downloads/a.b",
		`"https://zvm/v1/downloads/a"`: "https://zvm/v1/downloads/a",
		`/v1/downloads/a`:              "/v1/downloads/a",
		`"done"`:                       "",
		`"see the task"`:               "",
		`{"link":"/x"}`:                "",
		`"javascript:alert(1)"`:        "",
		`"file:///etc/passwd"`:         "",
		`""`:                           "",
		`null`:                         "",
	} {
		got, err := downloadLink([]byte(body))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", body, got, err, want)
		}
	}
}

func TestSessionPathsThatMustNotTravel(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/a", "a/", "a//b", "../a", "a/..", "a/./b", `a\b`, "a\x00b"} {
		if err := checkSessionPath(path); !errors.Is(err, ErrSessionPath) {
			t.Errorf("%q gives %v, want ErrSessionPath", path, err)
		}
	}
	for _, path := range []string{"", "partition#1 Ext3/Cyber 2077/Données/100%.txt", "V/a+b&c=d.txt", "V/semi;colon?.log", "V/%41"} {
		if err := checkSessionPath(path); err != nil {
			t.Error(err)
		}
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	size := func(i Item) int64 { return i.Size }
	for data, want := range map[string]int64{
		`{"Path":"V/a","SizeInBytes":null}`: -1,
		`{"Path":"V/a"}`:                    -1,
		`{"Path":"V/a","SizeInBytes":0}`:    0,
		`{"Path":"V/a","SizeInBytes":-5}`:   -1,
	} {
		var w wireItem
		if err := json.Unmarshal([]byte(data), &w); err != nil {
			t.Fatal(err)
		}
		if got := size(w.item("V")); got != want {
			t.Errorf("%s: size %d, want %d", data, got, want)
		}
	}
	if got := (wireItem{Path: "a"}).item("V/b"); got.Path != "V/b/a" || got.Name() != "a" || got.Downloadable {
		t.Errorf("a base name without download information: %+v", got)
	}
}

func TestHistoryBeyondADurationIsTheLongest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "1.5": 90 * time.Second, "-1": -time.Minute, "1e300": 153_722_867 * time.Minute, "-1e300": -153_722_867 * time.Minute,
	} {
		var w wireVPG
		if err := json.Unmarshal([]byte(`{"VpgIdentifier":"v","HistoryStatusApi":{"ConfiguredHistoryInMinutes":`+text+`}}`), &w); err != nil {
			t.Fatal(err)
		}
		if v, err := w.vpg(); err != nil || v.History.Configured != want {
			t.Errorf("%s minutes are %v, %v, want %v", text, v.History.Configured, err, want)
		}
	}
}
