package rewind_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// transcript collects everything a user could come to see.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (tr *transcript) Write(p []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.text.Write(p)
}

func (tr *transcript) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.text.String()
}

func (tr *transcript) show(values ...any) {
	for _, v := range values {
		data, _ := json.Marshal(v)
		fmt.Fprintf(tr, "%v\n%+v\n%#v\n%s\n", v, v, v, data)
	}
}

func TestLaw7_NoSecretIsEverShown(t *testing.T) {
	t.Parallel()
	routes := []struct{ method, pattern string }{
		{"POST", "/auth/realms/*/protocol/openid-connect/token"},
		{"GET", "/v1/vms"},
		{"GET", "/v1/vpgs/*"},
		{"POST", "/v1/vpgs/*/checkpoints"},
		{"GET", "/v1/tasks/*"},
		{"POST", "/v1/flrs"},
		{"POST", "/v1/flrs/*/download"},
		{"GET", "/v1/downloads/*"},
		{"DELETE", "/v1/flrs/*"},
	}
	faults := map[string]func(*zvmtest.Fault){
		"401":         func(f *zvmtest.Fault) { f.Status(401, `{"Message":"no"}`).Always() },
		"500":         func(f *zvmtest.Fault) { f.Status(500, `{"Message":"no"}`).Always() },
		"HTML":        func(f *zvmtest.Fault) { f.Garbage("<html><form action=login>", "text/html").Always() },
		"cut":         func(f *zvmtest.Fault) { f.CutAfter().Always() },
		"truncated":   func(f *zvmtest.Fault) { f.Truncate(4).Always() },
		"redirect":    func(f *zvmtest.Fault) { f.Redirect("https://elsewhere.example.test/").Always() },
		"never comes": func(f *zvmtest.Fault) { f.Hang().Always() },
	}
	for _, route := range routes {
		for name, apply := range faults {
			t.Run(route.method+" "+route.pattern+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, zvmtest.WithSwitch(zvmtest.DownloadLinkAbsolute))
				apply(w.sim.On(route.method, route.pattern))
				seen := &transcript{}
				logger := slog.New(slog.NewTextHandler(seen, &slog.HandlerOptions{Level: slog.LevelDebug}))
				creds := zvm.Password(w.sim.Username(), w.sim.Password())
				client, err := zvm.New(w.sim.URL(), creds, zvm.WithRootCAs(w.sim.CertPool()), zvm.WithLogger(logger),
					zvm.WithRetry(zvm.RetryPolicy{Max: 1, MinWait: time.Millisecond, MaxWait: time.Millisecond}))
				must(t, err)
				s, err := rewind.NewSession(client,
					rewind.WithSchedule(task.Schedule{Min: 2 * time.Millisecond, Max: 20 * time.Millisecond}),
					rewind.WithLimits(rewind.Limits{Listing: 5 * time.Second, Reconcile: 100 * time.Millisecond, Mount: 5 * time.Second, Unmount: 500 * time.Millisecond}),
					rewind.WithProgress(func(e rewind.Event) { seen.show(e) }))
				must(t, err)
				ctx := t.Context()
				// A task that is answered 500 may be one that is not there yet, which is waited for half a minute.
				if name == "never comes" || name == "500" && route.pattern == "/v1/tasks/*" {
					ctx = w.untilSeen(t, route.method, route.pattern)
				}
				g, err := s.Protect(ctx, "web01", rewind.Change{Action: "sweep"})
				seen.show(g, err, creds, client, s)
				if err == nil {
					r, err := s.Recover(ctx, g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
					seen.show(r, err)
				}
				text := seen.String()
				if text == "" {
					t.Fatal("nothing was seen: this test shows nothing")
				}
				noSecret(t, text, w.sim.Password())
			})
		}
	}
}

func noSecret(t *testing.T, text string, secrets ...string) {
	t.Helper()
	for _, secret := range append(secrets, "MARKER-", "/v1/downloads/") {
		for form, needle := range map[string]string{
			"plain": secret, "percent-encoded": url.QueryEscape(secret),
			"base64": strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "="),
		} {
			if at := strings.Index(text, needle); at >= 0 && len(needle) > 6 {
				t.Errorf("%s %q is shown: …%s…", form, secret, text[max(0, at-150):min(len(text), at+80)])
			}
		}
	}
}
