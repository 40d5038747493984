package zvmtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// client speaks to a server in plain HTTP, as any client would.
type client struct {
	t     *testing.T
	s     *zvmtest.Server
	http  *http.Client
	token string
}

type answer struct {
	status int
	header http.Header
	body   string
}

// into decodes the body.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("decode %q: %v", a.body, err)
	}
}

// text is the body as the JSON string it has to be.
func (a answer) text(t *testing.T) string {
	t.Helper()
	var s string
	a.into(t, &s)
	return s
}

func newClient(t *testing.T, s *zvmtest.Server) *client {
	t.Helper()
	plain := *s.Client()
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{t: t, s: s, http: &plain}
}

// login is newClient with the token of the server's first user.
func login(t *testing.T, s *zvmtest.Server) *client {
	t.Helper()
	return loginAs(t, s, s.Username(), s.Password())
}

func loginAs(t *testing.T, s *zvmtest.Server, user, password string) *client {
	t.Helper()
	c := newClient(t, s)
	a := c.grant(url.Values{
		"grant_type": {"password"}, "client_id": {"zerto-client"}, "scope": {"openid"},
		"username": {user}, "password": {password},
	})
	var result struct {
		AccessToken string `json:"access_token"`
	}
	a.into(t, &result)
	if a.status != http.StatusOK || result.AccessToken == "" {
		t.Fatalf("login of %s: %d %s", user, a.status, a.body)
	}
	c.token = result.AccessToken
	return c
}

func (c *client) grant(form url.Values) answer {
	c.t.Helper()
	return c.do(http.MethodPost, "/auth/realms/zerto/protocol/openid-connect/token",
		"application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

func (c *client) get(path string) answer {
	c.t.Helper()
	return c.do(http.MethodGet, path, "", nil)
}

func (c *client) post(path, body string) answer {
	c.t.Helper()
	return c.do(http.MethodPost, path, "application/json", strings.NewReader(body))
}

func (c *client) do(method, path, contentType string, body io.Reader) answer {
	c.t.Helper()
	a, err := c.try(method, path, contentType, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *client) try(method, path, contentType string, body io.Reader) (answer, error) {
	c.t.Helper()
	target := path
	if !strings.HasPrefix(path, "https://") {
		target = c.s.URL() + path
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, target, body)
	if err != nil {
		return answer{}, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	return answer{resp.StatusCode, resp.Header, b.String()}, err
}

// start gives a server whose clock only Advance moves.
func start(t *testing.T, opts ...zvmtest.Option) *zvmtest.Server {
	t.Helper()
	opts = append([]zvmtest.Option{zvmtest.WithManualClock(time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC))}, opts...)
	return zvmtest.Start(t, opts...)
}

type taskStatus struct {
	Type           string
	CompleteReason string
	Completed      *string
	Status         struct{ State, Progress int }
}

func (c *client) task(id string) taskStatus {
	c.t.Helper()
	a := c.get("/v1/tasks/" + id)
	if a.status != http.StatusOK {
		c.t.Fatalf("task %s: %d %s", id, a.status, a.body)
	}
	var got taskStatus
	a.into(c.t, &got)
	return got
}

func (c *client) insert(vpg *zvmtest.VPG, tag string) string {
	c.t.Helper()
	body, err := json.Marshal(map[string]string{"checkpointName": tag})
	if err != nil {
		c.t.Fatal(err)
	}
	a := c.post("/v1/vpgs/"+vpg.ID()+"/checkpoints", string(body))
	if a.status != http.StatusOK {
		c.t.Fatalf("insert: %d %s", a.status, a.body)
	}
	return a.text(c.t)
}
