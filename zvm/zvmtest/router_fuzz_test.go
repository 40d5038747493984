package zvmtest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever is sent, the server answers: with the token of an Admin, so that
// the handlers are reached.
func FuzzEveryRequestIsAnswered(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET", "/v1/vms?vmName=x", ""},
		{"GET", "/v1/vpgs//checkpoints?startDate=2026", ""},
		{"GET", "/v1/VPGS/x%2Fy/Checkpoints/stats", ""},
		{"POST", "/v1/flrs", `{"jflr":null}`},
		{"POST", "/v1/flrs", `{"jflr":{"vpgIdentifier":7}}`},
		{"POST", "/v1/flrs/x/browse", `{"pageNumber":-1}`},
		{"POST", "/auth/realms/zerto/protocol/openid-connect/token", "grant_type=password;%zz"},
		{"DELETE", "/v1/flrs/%", ""},
		{"GET", "*", ""},
		{"", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	s, err := New()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	s.AddVM("web01", s.AddVPG("web", VPGConfig{}))
	f.Fuzz(func(t *testing.T, method, target, body string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1"+target, strings.NewReader(body))
		if err != nil {
			return // no client could send it
		}
		s.mu.Lock()
		s.tokens["MARKER-fuzz"] = &accessToken{account: account{role: Admin}, openid: true, until: s.Now().AddDate(1, 0, 0)}
		s.problems, s.log.entries = nil, nil
		s.mu.Unlock()
		r.Header.Set("Authorization", "Bearer MARKER-fuzz")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		for _, problem := range s.Problems() {
			if strings.HasPrefix(problem, "panic") {
				t.Error(problem)
			}
		}
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("status = %d", w.Code)
		}
	})
}
