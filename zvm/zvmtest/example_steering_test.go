package zvmtest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// What a test needs can stand in a document, beside the test or in it.
func ExampleWithInventory() {
	s, err := zvmtest.New(zvmtest.WithInventory(strings.NewReader(`{
		"peers": ["Recovery"],
		"vpgs":  [{"name": "web-local"}, {"name": "web-remote", "recoverySite": "Recovery"}],
		"vms":   [{"name": "web01", "vpgs": ["web-local", "web-remote"], "files": {"/etc/motd": "hello"}}]
	}`), "."))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	motd, err := s.VMs()[0].Guest().ReadFile("/etc/motd")
	fmt.Println(s.VMs()[0].Name(), "in", len(s.VPGs()), "VPGs says", string(motd), err)
	// Output:
	// web01 in 2 VPGs says hello <nil>
}

// A Windows guest has drives, and does not care for case.
func ExampleGuest() {
	s, err := zvmtest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	guest := s.AddVM("win01", s.AddVPG("win", zvmtest.VPGConfig{})).Guest()
	if err := guest.SetLayout(zvmtest.WindowsLayout()); err != nil {
		fmt.Println(err)
		return
	}
	if err := guest.WriteFile(`C:\inetpub\web.config`, []byte("<configuration/>")); err != nil {
		fmt.Println(err)
		return
	}
	data, err := guest.ReadFile("c:/INETPUB/Web.config")
	fmt.Println(string(data), err)
	// Output:
	// <configuration/> <nil>
}

// A VPG lives through what VPGs live through. With a clock that stands still,
// a day takes no time.
func ExampleVPG_BitmapSync() {
	s, err := zvmtest.New(zvmtest.WithManualClock(time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	vpg := s.AddVPG("web", zvmtest.VPGConfig{JournalAge: 24 * time.Hour, CheckpointInterval: time.Minute})
	count := func() int { return len(vpg.Checkpoints(time.Time{}, time.Time{})) }

	fmt.Println("a day's journal:", count())
	vpg.BitmapSync(true)
	s.Advance(6 * time.Hour)
	fmt.Println("after six hours of bitmap sync:", count())
	vpg.Resync()
	fmt.Println("after the sync of an edit:", count())
	// Output:
	// a day's journal: 1440
	// after six hours of bitmap sync: 1080
	// after the sync of an edit: 0
}

// WithOnRequest tells of each request as it ends; nothing secret is in it.
func ExampleWithOnRequest() {
	s, err := zvmtest.New(zvmtest.WithOnRequest(func(r zvmtest.Request) {
		fmt.Println(r.Method, r.Path, r.Status, r.Header.Get("Authorization"))
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL()+"/v1/vms", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Authorization", "Bearer MARKER-made-up")
	resp, err := s.Client().Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close()
	s.Close()
	// Output:
	// GET /v1/vms 401 [redacted]
}

// Hostile turns the switches by the seed: a run that failed can be had again.
func ExampleWithProfile() {
	for range 2 {
		s, err := zvmtest.New(zvmtest.WithProfile(zvmtest.Hostile), zvmtest.WithSeed(7))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.AddVPG("web", zvmtest.VPGConfig{}).ID())
		s.Close()
	}
	// Output:
	// 1d2c6ee4-98a4-434a-bf19-00440ecdcbfa
	// 1d2c6ee4-98a4-434a-bf19-00440ecdcbfa
}
