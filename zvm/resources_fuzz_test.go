package zvm

import (
	"encoding/json"
	"testing"
)

// fuzzRecord checks that no bytes make a decoder panic, and that a record without an id is never let through.
func fuzzRecord[W, R any](f *testing.F, convert func(W) (R, error), id func(R) string, seeds ...string) {
	for _, s := range append(seeds, `null`, `{}`, `[]`, `{"Link":null}`, `{"Link":{"identifier":null}}`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		many, err := oneOrMany[*W](data)
		if err != nil {
			return
		}
		for _, w := range many {
			if w == nil {
				continue
			}
			if r, err := convert(*w); err == nil && id(r) == "" {
				t.Errorf("%q became a record without an id: %+v", data, r)
			}
		}
	})
}

func FuzzVM(f *testing.F) {
	fuzzRecord(f, wireVM.vm, func(v VM) string { return string(v.ID) + string(v.VPG) },
		`{"VmIdentifier":"s.vm-38","VpgIdentifier":"v","VmNetworkInformation":{"NetworkAdapters":[null]},"EnabledActions":null}`,
		`[{"link":{"identifier":"s.vm-38?VpgIdentifier=%zz"}}]`)
}

func FuzzVPG(f *testing.F) {
	fuzzRecord(f, wireVPG.vpg, func(v VPG) string { return string(v.ID) },
		`{"VpgIdentifier":"v","Status":"3","SubStatus":null,"HistoryStatusApi":{"EarliestCheckpoint":null}}`,
		`{"VpgIdentifier":"v","ActiveProcessesApi":{"RunningFailOverTestApi":{"Stage":"InTest"}}}`)
}

func FuzzTask(f *testing.F) {
	fuzzRecord(f, wireTask.task, func(t Task) string { return string(t.ID) },
		`{"TaskIdentifier":"a:b","Status":{"State":"6"},"Started":"/Date(1520423877045)/","RelatedEntities":{"Vpgs":[null]}}`)
}

func FuzzCheckpoint(f *testing.F) {
	fuzzRecord(f, wireCheckpoint.checkpoint, func(c Checkpoint) string { return string(c.ID) },
		`{"CheckpointIdentifier":786,"TimeStamp":"2019-07-11T13:47:23Z","Tag":null}`)
}

func FuzzFLRSession(f *testing.F) {
	fuzzRecord(f, wireFLRSession.session, func(s FLRSession) string { return string(s.ID) },
		`{"FlrSessionIdentifier":"a.b","FlrSessionStatus":"MountInProgress","CheckpointIdentifier":"6","MountTime":null}`)
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{`"2026-11-29T10:00:00Z"`, `"/Date(1520423877045+0200)/"`, `null`, `"x"`, `1e99`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got Time
		if err := json.Unmarshal(data, &got); err == nil && !got.IsZero() && got.Raw != "" {
			t.Errorf("%q was understood and not understood: %v, %q", data, got.Time, got.Raw)
		}
	})
}

func FuzzAnswersOfWrites(f *testing.F) {
	for _, s := range []string{`"a.b"`, `{ "a.b" }`, `{"TaskIdentifier":"x"}`, ``, `null`, `"https://z/x"`, `"/v1/downloads/a"`, `{"TaskIdentifier":"x","taskIdentifier":"y"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if id, err := createdID(data, "TaskIdentifier"); err == nil {
			if _, err := apiPath("v1", "tasks", id); err != nil {
				t.Errorf("%q gave an id that no path can hold: %v", data, err)
			}
		}
		if link, err := downloadLink(data); err == nil && link == "" {
			t.Errorf("%q gave an empty link", data)
		}
	})
}
