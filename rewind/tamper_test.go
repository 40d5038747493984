package rewind_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func vmid(v *zvmtest.VM) zvm.VMID    { return zvm.VMID(v.ID()) }
func vpgid(v *zvmtest.VPG) zvm.VPGID { return zvm.VPGID(v.ID()) }

// tamper changes answers on their way: a server that is wrong in one respect.
type tamper struct {
	next   http.RoundTripper
	change func(*http.Request, []byte) []byte
}

func (t *tamper) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	body = t.change(r, body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// tampered returns a session whose answers are changed.
func (w *world) tampered(t *testing.T, change func(*http.Request, []byte) []byte) *rewind.Session {
	t.Helper()
	client, err := zvm.New(w.sim.URL(), zvm.Password(w.sim.Username(), w.sim.Password()),
		zvm.WithTransport(&tamper{w.sim.Client().Transport, change}),
		zvm.WithRetry(zvm.RetryPolicy{Max: 2, MinWait: time.Millisecond, MaxWait: 10 * time.Millisecond}))
	must(t, err)
	s, err := rewind.NewSession(client, rewind.WithAgent("patch-bot"),
		rewind.WithSchedule(task.Schedule{Min: 2 * time.Millisecond, Max: 20 * time.Millisecond}),
		rewind.WithLimits(rewind.Limits{Listing: 5 * time.Second, Reconcile: 500 * time.Millisecond, Mount: 5 * time.Second, Unmount: 2 * time.Second}))
	must(t, err)
	return s
}
