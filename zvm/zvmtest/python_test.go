package zvmtest_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// TestPythonClient runs a client in another language, with another HTTP and
// another TLS library, against the server's socket.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	python := pythonWithRequests(t)
	s := zvmtest.Start(t, zvmtest.WithProfile(zvmtest.Quick))
	web := s.AddVPG("web", zvmtest.VPGConfig{})
	s.AddVPG("other", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", web)
	if err := vm.Guest().WriteFile("/etc/app.conf", []byte("grüß before\n")); err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, s.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "python", "client.py"))
	// Nothing else of the environment: neither its proxies nor its authorities are the test's.
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1",
		"ZVM_URL=" + s.URL(), "ZVM_USERNAME=" + s.Username(), "ZVM_PASSWORD=" + s.Password(), "ZVM_CA_FILE=" + authority,
		"ZVM_VPG=web", "ZVM_FILE=/etc/app.conf",
	}
	output, err := command.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("%v\n%s", err, failed.Stderr)
		}
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(output, &got); err != nil {
		t.Fatalf("%v in %s", err, output)
	}
	want := map[string]any{
		"vpgs": []any{"other", "web"}, "vm": "web01", "task": "InsertTaggedCP", "tagged": 1.0,
		"content": "grüß before\n", "open": 0.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the client saw (-want +got):\n%s", diff)
	}
	if tags := web.TaggedCheckpoints(); len(tags) != 1 || tags[0].Tag != "before the change" {
		t.Errorf("tagged checkpoints: %+v", tags)
	}
	if left := s.LiveFLRSessions(); len(left) > 0 {
		t.Errorf("left mounted: %+v", left)
	}
}

// pythonWithRequests finds an interpreter that has the module: the one that
// .ci/python installs, or any other.
func pythonWithRequests(t *testing.T) string {
	t.Helper()
	for _, python := range []string{filepath.Join("..", "..", ".bin", "python", "bin", "python"), "python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import requests").Run() == nil {
			return python
		}
	}
	const reason = "there is no python3 with the module requests; .ci/python installs it"
	if os.Getenv("ZERTO_REWIND_REQUIRE_PYTHON") == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
	return ""
}
