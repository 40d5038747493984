//go:build keycloak

package zvm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	keycloakAdmin         = "admin"
	keycloakAdminPassword = "MARKER-password-of-the-keycloak-admin"
	keycloakStartLimit    = 4 * time.Minute // an installation that is not built yet is built first
)

// keycloakServer is a running Keycloak with the realm of testdata/keycloak.
type keycloakServer struct {
	base string // above /realms
	dir  string
	http *http.Client

	users atomic.Int64 // made so far
	alive io.Closer    // the process group ends with it
	ended chan struct{}
}

// shared is started by the first test that asks and stopped by TestMain.
var shared struct {
	once   sync.Once
	server *keycloakServer
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		shared.server.stop()
	}
	os.Exit(code)
}

func keycloak(t *testing.T) *keycloakServer {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = startKeycloak() })
	if shared.err != nil {
		t.Fatalf("there is no Keycloak to test against: %v", shared.err)
	}
	return shared.server
}

func startKeycloak() (*keycloakServer, error) {
	installed := os.Getenv("KEYCLOAK_HOME")
	if installed == "" {
		return nil, errors.New("KEYCLOAK_HOME is not set; .ci/keycloak fetches one and sets it")
	}
	dir, err := os.MkdirTemp("", "keycloak-")
	if err != nil {
		return nil, err
	}
	k := &keycloakServer{dir: dir, http: &http.Client{Timeout: 30 * time.Second}, ended: make(chan struct{})}
	if err := k.start(installed); err != nil {
		k.stop()
		return nil, err
	}
	return k, nil
}

func (k *keycloakServer) start(installed string) error {
	if err := mirrorInstallation(installed, k.dir); err != nil {
		return err
	}
	realm, err := os.ReadFile("testdata/keycloak/zerto-realm.json")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(k.dir, "data", "import", "zerto-realm.json"), realm); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	k.base = fmt.Sprintf("http://127.0.0.1:%d/auth", port)
	begun := time.Now()
	if err := k.launch(port); err != nil {
		return err
	}
	if err := k.awaitReady(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "Keycloak was ready after %s\n", time.Since(begun).Round(100*time.Millisecond))
	return nil
}

// mirrorInstallation makes a Keycloak home whose data, and what a build
// writes, are its own, and which borrows everything else.
func mirrorInstallation(installed, home string) error {
	installed, err := filepath.Abs(installed)
	if err != nil {
		return err
	}
	for _, dir := range []string{"bin", "conf", "lib/quarkus"} {
		if err := os.CopyFS(filepath.Join(home, dir), os.DirFS(filepath.Join(installed, dir))); err != nil {
			return err
		}
	}
	for _, name := range []string{"providers", "lib/app", "lib/lib", "lib/quarkus-run.jar"} {
		if err := os.Symlink(filepath.Join(installed, name), filepath.Join(home, name)); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

func freePort() (int, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// untilStdinEnds runs a command until it ends or this process closes its end
// of the pipe, by will or by its death, and then kills the process group.
const untilStdinEnds = `{ "$@"; kill -KILL 0; } </dev/null & cat >/dev/null; kill -KILL 0`

func (k *keycloakServer) launch(port int) error {
	output, err := os.Create(k.logFile())
	if err != nil {
		return err
	}
	defer output.Close()
	cmd := exec.CommandContext(context.Background(), "sh", "-c", untilStdinEnds, "sh",
		"sh", filepath.Join(k.dir, "bin", "kc.sh"), "start", "--import-realm",
		// A change of these three builds Keycloak anew; .ci/keycloak has built it with them.
		"--db=dev-mem", "--cache=local", "--http-relative-path=/auth",
		"--http-enabled=true", "--http-host=127.0.0.1", fmt.Sprintf("--http-port=%d", port),
		"--hostname-strict=false", "--proxy-headers=xforwarded")
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "JAVA_OPTS_KC_HEAP=-Xms64m -Xmx512m", "JAVA_OPTS_APPEND=-XX:TieredStopAtLevel=1", // it lives too briefly for the second compiler
		"KC_BOOTSTRAP_ADMIN_USERNAME="+keycloakAdmin, "KC_BOOTSTRAP_ADMIN_PASSWORD="+keycloakAdminPassword)
	if k.alive, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(k.ended)
		_ = cmd.Wait()
	}()
	return nil
}

// awaitReady waits until the imported realm answers.
func (k *keycloakServer) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), keycloakStartLimit)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if k.answers(ctx) {
				return nil
			}
		case <-k.ended:
			return fmt.Errorf("it ended at once: %s", k.logTail())
		case <-ctx.Done():
			return fmt.Errorf("it was not ready after %s: %s", keycloakStartLimit, k.logTail())
		}
	}
}

func (k *keycloakServer) answers(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.base+"/realms/zerto", nil)
	if err != nil {
		return false
	}
	resp, err := k.http.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// stop ends what was started of it and removes its files.
func (k *keycloakServer) stop() {
	if k.alive != nil {
		_ = k.alive.Close()
		<-k.ended
	}
	k.http.CloseIdleConnections()
	_ = os.RemoveAll(k.dir)
}

func (k *keycloakServer) logFile() string { return filepath.Join(k.dir, "keycloak.log") }

func (k *keycloakServer) logTail() string {
	text, err := os.ReadFile(k.logFile())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[max(0, len(text)-3000):]))
}
