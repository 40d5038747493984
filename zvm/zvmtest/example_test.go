package zvmtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// A checkpoint is tagged, a file is changed, and the journal still has the
// old one: in no real time, since the clock is the test's.
func Example() {
	s, err := zvmtest.New(zvmtest.WithManualClock(time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	vpg := s.AddVPG("web", zvmtest.VPGConfig{CheckpointInterval: -1})
	vm := s.AddVM("web01", vpg)
	if err := vm.Guest().WriteFile("/etc/motd", []byte("hello")); err != nil {
		fmt.Println(err)
		return
	}

	login, err := post(s, "/auth/realms/zerto/protocol/openid-connect/token", "", "application/x-www-form-urlencoded", url.Values{
		"grant_type": {"password"}, "client_id": {"zerto-client"}, "scope": {"openid"},
		"username": {s.Username()}, "password": {s.Password()},
	}.Encode())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer login.Body.Close()
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(login.Body).Decode(&token); err != nil {
		fmt.Println(err)
		return
	}
	queued, err := post(s, "/v1/vpgs/"+vpg.ID()+"/checkpoints", token.AccessToken, "application/json", `{"checkpointName":"before the upgrade"}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer queued.Body.Close()

	fmt.Println(queued.StatusCode, "means queued:", len(vpg.TaggedCheckpoints()), "tags")
	s.Advance(3 * time.Second)
	for _, c := range vpg.TaggedCheckpoints() {
		fmt.Println(c.Time.Format(time.TimeOnly), c.Tag)
	}
	fmt.Println(s.Problems())
	// Output:
	// 200 means queued: 0 tags
	// 10:00:03 before the upgrade
	// []
}

func post(s *zvmtest.Server, path, token, contentType, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return s.Client().Do(req)
}

// Faults are scripted per method and path, and act exactly as often as told.
func ExampleServer_On() {
	s, err := zvmtest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	s.On("GET", "/v1/tasks/*").After(2).Times(3).Header("Retry-After", "1").Status(http.StatusServiceUnavailable, "")
	s.On("POST", "/v1/vpgs/*/checkpoints").CutAfter()
	fmt.Println(strings.Join(s.Unused(), "\n"))
	// Output:
	// fault on GET /v1/tasks/*
	// fault on POST /v1/vpgs/*/checkpoints
}
