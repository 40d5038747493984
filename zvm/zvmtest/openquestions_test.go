package zvmtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// question is a server that can be asked how it stands to an open question.
type question struct {
	*client
	vpg, remote *zvmtest.VPG
	vm          *zvmtest.VM
}

func ask(t *testing.T, opts ...zvmtest.Option) question {
	t.Helper()
	opts = append(opts, zvmtest.WithUser("viewer", "MARKER-viewer", zvmtest.Viewer))
	s := start(t, opts...)
	q := question{vpg: s.AddVPG("web", quiet())}
	q.remote = s.AddVPG("web-dr", zvmtest.VPGConfig{RecoverySite: s.AddPeerSite("Far"), CheckpointInterval: -1})
	q.vm = s.AddVM("web01", q.vpg, q.remote)
	if err := q.vm.Guest().WriteFile("/etc/app.conf", []byte("before")); err != nil {
		t.Fatal(err)
	}
	q.client = login(t, s)
	return q
}

// tag inserts a checkpoint and tells how that ended.
func (q question) tag(vpg *zvmtest.VPG, name string) string {
	q.t.Helper()
	body, err := json.Marshal(map[string]string{"checkpointName": name})
	if err != nil {
		q.t.Fatal(err)
	}
	a := q.post("/v1/vpgs/"+vpg.ID()+"/checkpoints", string(body))
	if a.status != http.StatusOK {
		return fmt.Sprint(a.status)
	}
	q.s.Advance(3 * time.Second)
	return fmt.Sprint("state ", q.task(a.text(q.t)).Status.State)
}

func (q question) mounted(vpg *zvmtest.VPG) (session, status string) {
	q.t.Helper()
	tags := vpg.TaggedCheckpoints()
	a := q.mount(vpg, q.vm, tags[len(tags)-1].ID)
	if a.status != http.StatusOK {
		return "", fmt.Sprint(a.status)
	}
	session = a.text(q.t)
	status = q.sessionStatus(session)
	q.s.Advance(3 * time.Second)
	return session, status + ", " + q.sessionStatus(session)
}

func (q question) sessionStatus(session string) string {
	q.t.Helper()
	a := q.get("/v1/flrs/" + session)
	if a.status != http.StatusOK {
		return fmt.Sprint(a.status)
	}
	var got struct{ FlrSessionStatus string }
	a.into(q.t, &got)
	return got.FlrSessionStatus
}

func TestEachQuestionHasTwoSides(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		sw      zvmtest.Switch
		ask     func(q question) string
		off, on string
	}{
		{zvmtest.MissingScopeAs403, func(q question) string {
			_, got := q.tokens(passwordForm(q.s.Username(), q.s.Password(), ""))
			q.token = got.AccessToken
			return fmt.Sprint(q.get("/v1/vpgs").status)
		}, "401", "403"},
		{zvmtest.ForbiddenEmpty, func(q question) string {
			a := loginAs(q.t, q.s, "viewer", "MARKER-viewer").post("/v1/vpgs/"+q.vpg.ID()+"/CloneAbort", "")
			return fmt.Sprint(a.status, a.body)
		}, `403{"Message":"the user is not permitted to do this"}`, "403"},
		{zvmtest.UnauthorizedNoChallenge, func(q question) string {
			q.token = ""
			a := q.get("/v1/vpgs")
			return fmt.Sprint(a.status, a.header.Get("WWW-Authenticate"))
		}, `401Bearer error="invalid_token"`, "401"},
		{zvmtest.FiltersWildcard, func(q question) string {
			found := ""
			for _, filter := range []string{"*", "WEB-*", "*eb", "w*-*r", "web*x", "web"} {
				var list []struct{ VpgName string }
				q.get("/v1/vpgs?name="+url.QueryEscape(filter)).into(q.t, &list)
				found += fmt.Sprint(len(list))
			}
			return found
		}, "000001", "211101"},
		{zvmtest.BareVMLinks, func(q question) string {
			return fmt.Sprint(strings.Contains(q.get("/v1/vms").body, `"identifier":"`+q.vm.ID()+`"`))
		}, "false", "true"},
		{zvmtest.FewerSubStatusNames, func(q question) string {
			var names []string
			q.get("/v1/vpgs/substatuses").into(q.t, &names)
			return fmt.Sprint(len(names), " ", names[32])
		}, "41 VmNotProtectedError", "33 VmNotProtectedError"},
		{zvmtest.TagTypeZero, tagType, "1", "0"},
		{zvmtest.TagTypeTwo, tagType, "1", "2"},
		{zvmtest.OddTagRefused, oddTags, "a|b state 6, grün state 6, a\nb state 6", "a|b state 6, grün 500, a\nb 500"},
		{zvmtest.OddTagReplaced, func(q question) string {
			q.tag(q.vpg, "grün")
			return q.vpg.TaggedCheckpoints()[0].Tag
		}, "grün", "gr??n"},
		{zvmtest.EmptyTagAccepted, func(q question) string { return q.tag(q.vpg, "") }, "500", "state 6"},
		{zvmtest.DuplicateTagRefused, func(q question) string {
			return q.tag(q.vpg, "x") + ", " + q.tag(q.vpg, "x") + ", " + q.tag(q.vpg, "y") + ", " + q.tag(q.remote, "x")
		}, "state 6, state 6, state 6, state 6", "state 6, 500, state 6, state 6"},
		{zvmtest.PausedInsertTaken, func(q question) string {
			got := ""
			for _, sub := range []int{25, 26, 23} {
				q.vpg.SetStatus(1, sub)
				got += q.tag(q.vpg, "x") + ", "
			}
			return got + fmt.Sprint(len(q.vpg.TaggedCheckpoints()))
		}, "state 4, state 4, state 4, 0", "state 6, state 6, state 4, 2"},
		{zvmtest.TestRefusesInsert, func(q question) string {
			q.tag(q.vpg, "x")
			q.post("/v1/vpgs/"+q.vpg.ID()+"/FailoverTest", "{}")
			return q.tag(q.vpg, "y") + ", " + q.tag(q.remote, "y")
		}, "state 6, state 6", "state 4, state 6"},
		{zvmtest.CloneRefusesInsert, func(q question) string {
			q.tag(q.vpg, "x")
			q.post("/v1/vpgs/"+q.vpg.ID()+"/CloneStart", "{}")
			during := q.tag(q.vpg, "y")
			q.s.Advance(10 * time.Second)
			return during + ", " + q.tag(q.vpg, "z")
		}, "state 6, state 6", "state 4, state 6"},
		{zvmtest.TagTimeIsRequest, func(q question) string {
			asked := q.s.Now()
			id := q.insert(q.vpg, "x")
			q.s.Advance(time.Second)
			if err := q.vm.Guest().WriteFile("/etc/app.conf", []byte("meanwhile")); err != nil {
				q.t.Fatal(err)
			}
			q.s.Advance(2 * time.Second)
			q.task(id)
			session, _ := q.mounted(q.vpg)
			link := q.post("/v1/flrs/"+session+"/download", `{"pathList":["Volume1-Ext4/etc/app.conf"]}`).text(q.t)
			return fmt.Sprint(q.vpg.TaggedCheckpoints()[0].Time.Sub(asked), " ", q.get(link).body)
		}, "3s meanwhile", "0s before"},
		{zvmtest.SecondInsertQueued, func(q question) string {
			first, second := q.insert(q.vpg, "a"), q.insert(q.vpg, "b")
			q.s.Advance(3 * time.Second)
			got := fmt.Sprint(q.task(first).Status.State, q.task(second).Status.State)
			q.s.Advance(3 * time.Second)
			return fmt.Sprint(got, ", ", q.task(second).Status.State, " ", len(q.vpg.TaggedCheckpoints()), " ", q.tag(q.vpg, "c"))
		}, "6 4, 4 1 state 6", "6 1, 6 2 state 6"},
		{zvmtest.TasksBeginUnstarted, func(q question) string {
			id := q.insert(q.vpg, "a")
			got := fmt.Sprint(q.task(id).Status.State)
			for range 3 {
				q.s.Advance(time.Second)
				got += fmt.Sprint(q.task(id).Status.State)
			}
			return got
		}, "1116", "0116"},
		{zvmtest.LegacyMountNames, mountNames, "MountInProgress, MountCompletedSuccessfully", "NotMounted, MountReady"},
		{zvmtest.FailedMountVanishes, func(q question) string {
			q.s.ScriptTask("FlrJournalMount", zvmtest.TaskFailed, "scripted")
			return mountNames(q)
		}, "MountInProgress, MountFailed", "MountInProgress, 404"},
		{zvmtest.RemoteFLRServed, func(q question) string {
			q.tag(q.remote, "x")
			_, status := q.mounted(q.remote)
			return status
		}, "500", "MountInProgress, MountCompletedSuccessfully"},
		{zvmtest.FLREnabledIgnored, func(q question) string {
			q.vm.SetFLREnabled(false)
			return mountNames(q)
		}, "500", "MountInProgress, MountCompletedSuccessfully"},
		{zvmtest.MountEndsWithCheckpoint, func(q question) string {
			q.tag(q.vpg, "x")
			session, _ := q.mounted(q.vpg)
			q.vpg.Resync()
			return q.sessionStatus(session)
		}, "MountCompletedSuccessfully", "404"},
		{zvmtest.DownloadChunked, func(q question) string {
			q.tag(q.vpg, "x")
			session, _ := q.mounted(q.vpg)
			link := q.post("/v1/flrs/"+session+"/download", `{"pathList":["Volume1-Ext4/etc/app.conf"]}`).text(q.t)
			a := q.get(link)
			return a.body + a.header.Get("Content-Length")
		}, "before6", "before"},
		{zvmtest.SecondUnmountRefused, func(q question) string {
			q.tag(q.vpg, "x")
			session, _ := q.mounted(q.vpg)
			first := q.do(http.MethodDelete, "/v1/flrs/"+session, "", nil)
			return fmt.Sprint(first.status, " ", q.do(http.MethodDelete, "/v1/flrs/"+session, "", nil).status)
		}, "200 200", "200 500"},
		{zvmtest.TestRefusedWhileMounted, func(q question) string {
			q.tag(q.vpg, "x")
			q.mounted(q.vpg)
			return fmt.Sprint(q.post("/v1/vpgs/"+q.vpg.ID()+"/FailoverTest", "{}").status)
		}, "200", "500"},
		{zvmtest.TestAndCloneExclude, func(q question) string {
			q.tag(q.vpg, "x")
			q.tag(q.remote, "x")
			got := ""
			for _, path := range []string{
				q.vpg.ID() + "/FailoverTest", q.vpg.ID() + "/CloneStart", q.remote.ID() + "/CloneStart", q.remote.ID() + "/FailoverTest",
			} {
				got += fmt.Sprint(q.post("/v1/vpgs/"+path, "{}").status, " ")
			}
			return got
		}, "200 200 200 200 ", "200 500 200 500 "},
		{zvmtest.CloneTakesCheckpointIdentifier, func(q question) string {
			q.tag(q.vpg, "x")
			q.tag(q.vpg, "y")
			wanted := q.vpg.TaggedCheckpoints()[0].ID
			q.post("/v1/vpgs/"+q.vpg.ID()+"/CloneStart", `{"checkpointIdentifier":"`+wanted+`"}`)
			q.s.Advance(time.Minute)
			return fmt.Sprint(q.s.Clones()[0].CheckpointID == wanted)
		}, "false", "true"},
		{zvmtest.CloneAbortFails, func(q question) string {
			q.tag(q.vpg, "x")
			id := q.post("/v1/vpgs/"+q.vpg.ID()+"/CloneStart", "{}").text(q.t)
			q.post("/v1/vpgs/"+q.vpg.ID()+"/CloneAbort", "")
			return fmt.Sprint(q.task(id).Status.State)
		}, "5", "4"},
		{
			zvmtest.ProblemDetails, func(q question) string { return q.post("/v1/flrs", "{}").body },
			`{"Message":"the body needs jflr alone; the simulator has no repositories"}`,
			`{"type":"about:blank","title":"Bad Request","status":400,"detail":"the body needs jflr alone; the simulator has no repositories"}`,
		},
		{zvmtest.BusinessErrorsAs400, func(q question) string {
			return fmt.Sprint(q.post("/v1/vpgs/"+q.vpg.ID()+"/FailoverTestStop", "{}").status, " ", q.get("/v1/vpgs/x").status)
		}, "500 404", "400 404"},
	} {
		t.Run(tc.sw.String(), func(t *testing.T) {
			t.Parallel()
			got := []string{tc.ask(ask(t)), tc.ask(ask(t, zvmtest.WithSwitch(tc.sw)))}
			if diff := cmp.Diff([]string{tc.off, tc.on}, got); diff != "" {
				t.Errorf("off and on (-want +got):\n%s", diff)
			}
		})
	}
}

func tagType(q question) string {
	q.tag(q.vpg, "x")
	var list []struct{ Type int }
	q.get("/v1/vpgs/"+q.vpg.ID()+"/checkpoints").into(q.t, &list)
	return fmt.Sprint(list[0].Type)
}

func oddTags(q question) string {
	var all []string
	for _, tag := range []string{"a|b", "grün", "a\nb"} {
		all = append(all, tag+" "+q.tag(q.vpg, tag))
	}
	return strings.Join(all, ", ")
}

func mountNames(q question) string {
	q.tag(q.vpg, "x")
	_, status := q.mounted(q.vpg)
	return status
}

func TestDownloadMayBlockTheUnmount(t *testing.T) {
	t.Parallel()
	q := ask(t, zvmtest.WithSwitch(zvmtest.DownloadBlocksUnmount))
	if err := q.vm.Guest().WriteSparse("/big", 1<<30, 1); err != nil {
		t.Fatal(err)
	}
	q.tag(q.vpg, "x")
	session, _ := q.mounted(q.vpg)
	link := q.post("/v1/flrs/"+session+"/download", `{"pathList":["Volume1-Ext4/big"]}`).text(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, q.s.URL()+link, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+q.token)
	running, err := q.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if a := q.do(http.MethodDelete, "/v1/flrs/"+session, "", nil); a.status != http.StatusInternalServerError {
		t.Errorf("unmount during a download = %d", a.status)
	}
	if err := running.Body.Close(); err != nil {
		t.Error(err)
	}
	for q.do(http.MethodDelete, "/v1/flrs/"+session, "", nil).status != http.StatusOK && t.Context().Err() == nil {
		continue
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("mounts of a VM", func(t *testing.T) {
		t.Parallel()
		q := ask(t, zvmtest.WithMountLimit(1))
		q.tag(q.vpg, "x")
		session, first := q.mounted(q.vpg)
		_, second := q.mounted(q.vpg)
		q.do(http.MethodDelete, "/v1/flrs/"+session, "", nil)
		q.s.Advance(time.Second)
		_, third := q.mounted(q.vpg)
		if first != third || second != "500" {
			t.Errorf("mounts = %q, %q, %q", first, second, third)
		}
	})
	t.Run("life of a mount", func(t *testing.T) {
		t.Parallel()
		q := ask(t, zvmtest.WithMountTTL(10*time.Second))
		q.tag(q.vpg, "x")
		session, _ := q.mounted(q.vpg)
		q.s.Advance(7*time.Second - 1)
		before := q.sessionStatus(session)
		q.s.Advance(1)
		if after := q.sessionStatus(session); before != zvmtest.MountCompleted || after != "404" {
			t.Errorf("a nanosecond before its end %s, then %s", before, after)
		}
	})
	t.Run("length of a list", func(t *testing.T) {
		t.Parallel()
		q := ask(t, zvmtest.WithListLimit(2))
		for _, tag := range []string{"a", "b", "c"} {
			q.tag(q.vpg, tag)
		}
		if n := len(q.checkpoints(q.vpg, "")); n != 2 {
			t.Errorf("the list has %d elements", n)
		}
	})
	t.Run("sessions of a user", func(t *testing.T) {
		t.Parallel()
		s := start(t, zvmtest.WithSessionLimit(2), zvmtest.WithRefreshTTL(time.Minute))
		c := newClient(t, s)
		form := passwordForm(s.Username(), s.Password(), "openid")
		var got []int
		for range 3 {
			got = append(got, c.grant(form).status)
		}
		s.Advance(time.Minute)
		got = append(got, c.grant(form).status)
		if diff := cmp.Diff([]int{200, 200, 401, 200}, got); diff != "" {
			t.Errorf("logins (-want +got):\n%s", diff)
		}
	})
	t.Run("wrong passwords of a user", func(t *testing.T) {
		t.Parallel()
		s := start(t, zvmtest.WithLockout(2))
		c := newClient(t, s)
		right, wrong := passwordForm(s.Username(), s.Password(), "openid"), passwordForm(s.Username(), "MARKER-no", "openid")
		var got []int
		for _, form := range []url.Values{wrong, right, wrong, wrong, right} {
			got = append(got, c.grant(form).status)
		}
		if diff := cmp.Diff([]int{401, 200, 401, 401, 401}, got); diff != "" {
			t.Errorf("logins (-want +got):\n%s", diff)
		}
	})
}
