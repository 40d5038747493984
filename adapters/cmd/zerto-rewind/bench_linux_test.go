package main_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	bigFile = 4 << 30
	bigPath = "Volume1-Ext4/var/big.bin"
)

// BenchmarkFourGiB has the built program and curl bring the same file from a simulated ZVM in a process of its own, in
// turn, each from its start to its end: the program finds the guard, mounts, hashes, syncs and unmounts as well, curl
// follows a link. Files go to TMPDIR, and to memory, where no disk has a say.
func BenchmarkFourGiB(b *testing.B) {
	b.Run("disk", func(b *testing.B) { benchFourGiB(b, b.TempDir()) })
	b.Run("memory", func(b *testing.B) {
		if _, err := os.Stat("/dev/shm"); err != nil {
			b.Skip("no files in memory here: ", err)
		}
		b.Setenv("TMPDIR", "/dev/shm")
		benchFourGiB(b, b.TempDir())
	})
}

func benchFourGiB(b *testing.B, dir string) {
	b.Helper()
	z := startProcesses(b, dir)
	var ratios []float64
	var resident int64
	var curl, program time.Duration
	for b.Loop() {
		dest := filepath.Join(dir, "curl")
		took, _ := z.run("curl", "-sSf", "--cacert", z.CAFile, "-H", "Authorization: Bearer "+z.token, "-o", dest, z.URL+z.link())
		z.gone(dest)
		dest = filepath.Join(dir, "program")
		ours, peak := z.run(z.binary, "recover", "--change", z.change, "/var/big.bin", "-o", dest)
		z.gone(dest)
		curl, program, resident = curl+took, program+ours, max(resident, peak)
		ratios = append(ratios, took.Seconds()/ours.Seconds())
	}
	slices.Sort(ratios)
	rounds := float64(len(ratios))
	b.ReportMetric(ratios[len(ratios)/2], "x_of_curl")
	b.ReportMetric(float64(resident)/(1<<20), "MiB_resident")
	b.ReportMetric(bigFile*rounds/1e6/program.Seconds(), "MB/s_program")
	b.ReportMetric(bigFile*rounds/1e6/curl.Seconds(), "MB/s_curl")
	b.ReportMetric(0, "ns/op")
}

// processes are a simulated ZVM and what is run against it.
type processes struct {
	b      *testing.B
	binary string
	env    []string
	client *http.Client
	token  string
	change string
	mount  string

	URL, Username, Password, CAFile string
}

func startProcesses(b *testing.B, dir string) *processes {
	b.Helper()
	z := &processes{b: b, binary: filepath.Join(dir, "zerto-rewind")}
	_, _ = z.run("go", "build", "-o", z.binary, ".")
	inventory := filepath.Join(dir, "inventory.json")
	document := fmt.Sprintf(`{"vpgs":[{"name":"web"}],"vms":[{"name":"web01","vpgs":["web"],"noise":{"/var/big.bin":%d}}]}`, int64(bigFile))
	z.must(os.WriteFile(inventory, []byte(document), 0o600))
	sim := exec.CommandContext(b.Context(), z.binary, "sim", "--json", "--profile", "quick", "--token-ttl", "2h", "--inventory", inventory)
	out, err := sim.StdoutPipe()
	z.must(err)
	z.must(sim.Start())
	b.Cleanup(func() {
		_ = sim.Process.Signal(os.Interrupt)
		_ = sim.Wait()
	})
	z.must(json.NewDecoder(out).Decode(z))
	z.env = []string{
		"ZVM_URL=" + z.URL, "ZVM_USERNAME=" + z.Username, "ZVM_PASSWORD=" + z.Password, "ZVM_CA_FILE=" + z.CAFile,
		"ZERTO_REWIND_STATE_DIR=" + filepath.Join(dir, "state"), "HOME=" + dir,
	}
	z.protect()
	return z
}

// protect guards the VM, and mounts it once more for curl.
func (z *processes) protect() {
	z.b.Helper()
	protect := exec.CommandContext(z.b.Context(), z.binary, "protect", "web01", "--action", "bench", "--json")
	protect.Env = z.env
	out, err := protect.Output()
	z.must(err)
	var guard struct {
		ChangeID    string
		VMs         []struct{ ID string }
		Checkpoints []struct{ VPGID, CheckpointID string }
	}
	z.must(json.Unmarshal(out, &guard))
	z.change = guard.ChangeID
	pem, err := os.ReadFile(z.CAFile)
	z.must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	z.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	login := url.Values{
		"grant_type": {"password"}, "client_id": {"zerto-client"}, "scope": {"openid"}, "username": {z.Username}, "password": {z.Password},
	}
	var granted struct {
		Token string `json:"access_token"`
	}
	z.post("/auth/realms/zerto/protocol/openid-connect/token", "application/x-www-form-urlencoded", login.Encode(), &granted)
	z.token = granted.Token
	z.postJSON("/v1/flrs", map[string]any{"jflr": map[string]string{
		"vpgIdentifier": guard.Checkpoints[0].VPGID, "vmIdentifier": guard.VMs[0].ID, "checkpointIdentifier": guard.Checkpoints[0].CheckpointID,
	}}, &z.mount)
}

// link waits for the mount as long as there is none.
func (z *processes) link() (link string) {
	z.b.Helper()
	for deadline := time.Now().Add(10 * time.Second); link == "" && time.Now().Before(deadline); {
		z.postJSON("/v1/flrs/"+z.mount+"/download", map[string][]string{"pathList": {bigPath}}, &link)
	}
	return link
}

func (z *processes) postJSON(path string, body, into any) {
	z.b.Helper()
	text, err := json.Marshal(body)
	z.must(err)
	z.post(path, "application/json", string(text), into)
}

// post leaves into as it is when the server refuses.
func (z *processes) post(path, contentType, body string, into any) {
	z.b.Helper()
	req, err := http.NewRequestWithContext(z.b.Context(), http.MethodPost, z.URL+path, strings.NewReader(body))
	z.must(err)
	req.Header.Set("Content-Type", contentType)
	if z.token != "" {
		req.Header.Set("Authorization", "Bearer "+z.token)
	}
	resp, err := z.client.Do(req)
	z.must(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	z.must(err)
	if resp.StatusCode == http.StatusOK {
		z.must(json.Unmarshal(answer, into))
	}
}

// run returns how long a process took and what it had in memory at most, in bytes. The kernel counts what this process had
// when it started the other, so that the figure is no less than the truth.
func (z *processes) run(name string, args ...string) (took time.Duration, resident int64) {
	z.b.Helper()
	c := exec.CommandContext(z.b.Context(), name, args...)
	c.Env = z.env
	var said bytes.Buffer
	c.Stderr = &said
	began := time.Now()
	if err := c.Run(); err != nil {
		z.b.Fatalf("%s: %v: %s", name, err, said.String())
	}
	took = time.Since(began)
	usage, _ := c.ProcessState.SysUsage().(*syscall.Rusage)
	return took, usage.Maxrss << 10
}

// gone checks what was brought and makes room for the next. Nothing is left to be written when the next begins.
func (z *processes) gone(dest string) {
	z.b.Helper()
	info, err := os.Stat(dest)
	z.must(err)
	if info.Size() != bigFile {
		z.b.Fatalf("%s holds %d bytes", dest, info.Size())
	}
	z.must(os.Remove(dest))
	syscall.Sync()
}

func (z *processes) must(err error) {
	z.b.Helper()
	if err != nil {
		z.b.Fatal(err)
	}
}
