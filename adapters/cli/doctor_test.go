package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

type diagnosis struct {
	Checks     []struct{ Name, Result, Evidence, ToDo string }
	NotCovered map[string][]string
}

// doctor runs the check and returns the result of each of its parts.
func (w *world) doctor(code int, args ...string) (map[string]string, diagnosis) {
	w.t.Helper()
	o := w.run(append([]string{"doctor", "--json"}, args...)...)
	o.want(w.t, code)
	var d diagnosis
	if err := json.Unmarshal([]byte(o.out), &d); err != nil {
		w.t.Fatalf("%v:\n%s%s", err, o.out, o.err)
	}
	results := map[string]string{}
	for _, c := range d.Checks {
		results[c.Name] = c.Result
		if c.Evidence == "" || (c.Result == "warn" || c.Result == "fail" && c.Name != "settings") && c.ToDo == "" {
			w.t.Errorf("%+v lacks its evidence, or what to do", c)
		}
	}
	if strings.Contains(o.out+o.err, "MARKER-") {
		w.t.Errorf("a secret is shown:\n%s%s", o.out, o.err)
	}
	return results, d
}

// healthy is the result where nothing is wrong and no hook is installed.
func healthy() map[string]string {
	return map[string]string{
		"settings": "ok", "reachable": "ok", "TLS": "ok", "login": "ok", "roles": "skipped", "clock": "ok", "VPGs": "ok", "file-level recovery": "ok",
		"ledger": "ok", "catalogue": "ok", "hooks": "warn",
	}
}

// afterwards sets every check of the ZVM behind one to skipped.
func afterwards(results map[string]string, name string) map[string]string {
	behind := false
	for _, check := range []string{"settings", "reachable", "TLS", "login", "roles", "clock", "VPGs", "file-level recovery"} {
		if behind {
			results[check] = "skipped"
		}
		behind = behind || check == name
	}
	return results
}

func TestDoctorFindsWhatIsWrongWithTheZVM(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts   []zvmtest.Option
		change func(w *world) *world
		code   int
		want   func(results map[string]string) map[string]string
		says   string
	}{
		"nothing": {want: func(r map[string]string) map[string]string { return r }},
		"a wrong password": {
			change: func(w *world) *world { return w.with("ZVM_PASSWORD", "MARKER-wrong") }, code: 4, says: "ZVM_PASSWORD",
			want: func(r map[string]string) map[string]string { r["login"] = "fail"; return afterwards(r, "login") },
		},
		"no Keycloak": {
			change: func(w *world) *world { return w.with("ZVM_REALM", "elsewhere") }, code: 1, says: "version 10",
			want: func(r map[string]string) map[string]string { r["login"] = "fail"; return afterwards(r, "login") },
		},
		"no settings": {
			change: func(w *world) *world { return w.without("ZVM_URL") }, code: 1, says: "ZVM_URL",
			want: func(r map[string]string) map[string]string { r["settings"] = "fail"; return afterwards(r, "settings") },
		},
		"nobody answers": {
			change: func(w *world) *world { return w.with("ZVM_URL", "https://127.0.0.1:1") }, code: 1, says: "refused",
			want: func(r map[string]string) map[string]string {
				r["reachable"] = "fail"
				return afterwards(r, "reachable")
			},
		},
		"something else answers": {
			change: func(w *world) *world {
				plain := httptest.NewServer(nil)
				w.t.Cleanup(plain.Close)
				return w.with("ZVM_URL", strings.Replace(plain.URL, "http:", "https:", 1))
			}, code: 1, says: "not with TLS",
			want: func(r map[string]string) map[string]string {
				r["reachable"] = "fail"
				return afterwards(r, "reachable")
			},
		},
		"another certificate than the pinned one": {
			change: func(w *world) *world { return w.with("ZVM_CERT_SHA256", strings.Repeat("00", 32)) }, code: 1, says: "ZVM_CERT_SHA256",
			want: func(r map[string]string) map[string]string { r["TLS"] = "fail"; return afterwards(r, "TLS") },
		},
		"an authority that nobody knows": {
			change: func(w *world) *world { return w.without("ZVM_CERT_SHA256") }, code: 1, says: "ZVM_CA_FILE",
			want: func(r map[string]string) map[string]string { r["TLS"] = "fail"; return afterwards(r, "TLS") },
		},
		"no check of the certificate": {
			change: func(w *world) *world {
				return w.without("ZVM_CERT_SHA256").with("ZVM_INSECURE_SKIP_VERIFY", "1")
			}, says: "set ZVM_CERT_SHA256 to",
			want: func(r map[string]string) map[string]string { r["TLS"] = "warn"; return r },
		},
		"an expired certificate": {
			change: func(w *world) *world { w, ca, _ := w.expired(); return w.with("ZVM_CA_FILE", ca) }, code: 1, says: "expired",
			want: func(r map[string]string) map[string]string { r["TLS"] = "fail"; return afterwards(r, "TLS") },
		},
		"an expired certificate that is pinned": {
			change: func(w *world) *world { w, _, pin := w.expired(); return w.with("ZVM_CERT_SHA256", pin) }, says: "the pin overrules",
			want: func(r map[string]string) map[string]string { r["TLS"] = "warn"; return r },
		},
		"a clock ten minutes slow": {
			opts: []zvmtest.Option{zvmtest.WithClock(func() time.Time { return time.Now().Add(-10 * time.Minute) })}, code: 1, says: "behind",
			want: func(r map[string]string) map[string]string { r["clock"] = "fail"; return r },
		},
		"a clock one minute fast": {
			opts: []zvmtest.Option{zvmtest.WithClock(func() time.Time { return time.Now().Add(time.Minute) })}, says: "ahead",
			want: func(r map[string]string) map[string]string { r["clock"] = "warn"; return r },
		},
		"VPGs to another site alone": {
			change: func(w *world) *world {
				other := emptyWorld(w.t, zvmtest.WithClock(time.Now))
				other.sim.AddVM("web01", other.sim.AddVPG("web", zvmtest.VPGConfig{RecoverySite: other.sim.AddPeerSite("Recovery")}))
				return other
			}, says: "files come back only",
			want: func(r map[string]string) map[string]string {
				r["VPGs"], r["file-level recovery"] = "warn", "skipped"
				return r
			},
		},
		"no VPG": {
			change: func(w *world) *world { return emptyWorld(w.t, zvmtest.WithClock(time.Now)) }, says: "nothing can be guarded",
			want: func(r map[string]string) map[string]string {
				r["VPGs"], r["file-level recovery"] = "warn", "skipped"
				return r
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append([]zvmtest.Option{zvmtest.WithClock(time.Now)}, tt.opts...)...)
			if tt.change != nil {
				w = tt.change(w)
			}
			w, _ = w.program()
			got, d := w.doctor(tt.code)
			if diff := cmp.Diff(tt.want(healthy()), got); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			text := ""
			for _, c := range d.Checks {
				text += c.Evidence + "\n" + c.ToDo + "\n"
			}
			if !strings.Contains(text, tt.says) {
				t.Errorf("%q is not said:\n%s", tt.says, text)
			}
			if w.sim != nil && len(w.sim.Problems()) > 0 {
				t.Errorf("the ZVM objects: %v", w.sim.Problems())
			}
		})
	}
}

// expired puts a certificate in front of the ZVM that ended yesterday.
func (w *world) expired() (_ *world, authority, pin string) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(w.sim)
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	front.StartTLS()
	w.t.Cleanup(front.Close)
	authority = filepath.Join(w.t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return w.without("ZVM_CERT_SHA256").with("ZVM_URL", front.URL), authority, hex.EncodeToString(sum[:])
}

func TestDoctorLooksAtLedgerAndCatalogue(t *testing.T) {
	t.Parallel()
	make := func(t *testing.T) (w *world, dir string) {
		t.Helper()
		w, _ = newWorld(t, zvmtest.WithClock(time.Now)).program()
		dir = filepath.Join(t.TempDir(), "state")
		return w.with("ZERTO_REWIND_STATE_DIR", dir), dir
	}
	open := func(t *testing.T, dir string) *ledger.Ledger {
		t.Helper()
		l, err := ledger.Open(t.Context(), dir, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	t.Run("no ledger", func(t *testing.T) {
		t.Parallel()
		w, dir := make(t)
		w.doctor(0)
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("doctor made one: %v", err)
		}
	})
	t.Run("a frozen one", func(t *testing.T) {
		t.Parallel()
		w, dir := make(t)
		l := open(t, dir)
		if err := l.Freeze(t.Context(), "ann", "an incident"); err != nil {
			t.Fatal(err)
		}
		l.Close()
		if got, _ := w.doctor(0); got["ledger"] != "ok" || got["freeze"] != "warn" {
			t.Errorf("%v", got)
		}
	})
	t.Run("a broken one", func(t *testing.T) {
		t.Parallel()
		w, dir := make(t)
		l := open(t, dir)
		path := l.Path()
		l.Close()
		if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := w.doctor(1); got["ledger"] != "fail" {
			t.Errorf("%v", got)
		}
	})
	t.Run("an open folder", func(t *testing.T) {
		t.Parallel()
		w, dir := make(t)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, _ := w.doctor(0); got["state folder"] != "warn" {
			t.Errorf("%v", got)
		}
	})
	t.Run("a damaged catalogue", func(t *testing.T) {
		t.Parallel()
		w, dir := make(t)
		path := dir + ".json"
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := w.with("ZERTO_REWIND_CATALOG", path).doctor(1); got["catalogue"] != "fail" {
			t.Errorf("%v", got)
		}
	})
}

// TestCanaryIsRefusedByEveryHost starts what was installed as each host does. It covers pitfalls 15 and 22.
func TestCanaryIsRefusedByEveryHost(t *testing.T) {
	t.Parallel()
	w, binary := newWorld(t, zvmtest.WithClock(time.Now)).program("First Last")
	for _, host := range install.Hosts() {
		w.mustRun("hook", "install", host, "--binary", binary)
	}
	got, d := w.doctor(0, "--live")
	canaries := 0
	for name, result := range got {
		if strings.HasPrefix(name, "canary of ") {
			canaries++
		}
		if (strings.HasPrefix(name, "canary of ") || strings.HasPrefix(name, "hook of ")) && result != "ok" {
			t.Errorf("%s: %s", name, result)
		}
	}
	if canaries != 10 {
		t.Errorf("%d canaries were sent, want 10: %v", canaries, got)
	}
	for _, host := range install.Hosts() {
		if len(d.NotCovered[host]) == 0 {
			t.Errorf("nothing is said of what goes past the hook of %s", host)
		}
	}
	o := w.mustRun("doctor")
	if !strings.Contains(o.out, "known to go past the hook of Codex:\n") {
		t.Errorf("stdout:\n%s", o.out)
	}
}

func TestDoctorFindsAHookThatLetsCallsThrough(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, check string }{
		"it lets every call run": {"if [ -s /dev/stdin ]; then :; fi; input=$(cat); [ -n \"$input\" ] && exit 0; echo 'zerto-rewind: nothing' >&2; exit 2", "canary of codex (user, PreToolUse)"},
		"it crashes":             {"input=$(cat); [ -n \"$input\" ] && exit 1; echo 'zerto-rewind: nothing' >&2; exit 2", "canary of codex (user, PreToolUse)"},
		"it says more than Codex reads": {
			"input=$(cat); [ -n \"$input\" ] && echo '{\"continue\":false,\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"x\"}}' && exit 0; echo 'zerto-rewind: nothing' >&2; exit 2",
			"canary of codex (user, PreToolUse)",
		},
		"it does not start": {"exit 127", "hook of codex (user)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, binary := newWorld(t, zvmtest.WithClock(time.Now)).program()
			w.mustRun("hook", "install", "codex", "--binary", binary)
			replace(t, binary, "#!/bin/sh\n"+tt.script+"\n", 0o755)
			if got, _ := w.doctor(1, "--live"); got[tt.check] != "fail" {
				t.Errorf("%v", got)
			}
		})
	}
	t.Run("an entry that was edited", func(t *testing.T) {
		t.Parallel()
		w, binary := newWorld(t, zvmtest.WithClock(time.Now)).program()
		w.mustRun("hook", "install", "claude", "--binary", binary)
		path := filepath.Join(w.env["HOME"], ".claude", "settings.json")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		edited := strings.Replace(string(data), `"onFailure": "block"`, `"async": true`, 1)
		if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := w.doctor(1); got["hook of claude (user)"] != "fail" {
			t.Errorf("%v", got)
		}
	})
}

// TestDoctorKnowsWhichClaudeCodeFailsClosed covers pitfall 21.
func TestDoctorKnowsWhichClaudeCodeFailsClosed(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]string{
		"echo '2.1.295 (Claude Code)'": "ok", "echo '2.1.294 (Claude Code)'": "warn", "echo 2.2.0": "ok", "echo 1.9.999": "warn", "echo 10.0.0": "ok",
		"echo dev": "skipped", "exit 3": "skipped", "": "skipped",
	} {
		w, binary := newWorld(t, zvmtest.WithClock(time.Now)).program()
		w.mustRun("hook", "install", "claude", "--binary", binary)
		path := t.TempDir()
		if says != "" {
			if err := os.WriteFile(filepath.Join(path, "claude"), []byte("#!/bin/sh\n"+says+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := w.with("PATH", "relative"+string(filepath.ListSeparator)+path).doctor(0); got["Claude Code"] != want {
			t.Errorf("%q: %s, want %s", says, got["Claude Code"], want)
		}
	}
}

// TestStatusFlagsAScriptInPlaceOfTheProgram covers pitfall 18.
func TestStatusFlagsAScriptInPlaceOfTheProgram(t *testing.T) {
	t.Parallel()
	w, binary := (&world{t: t}).program()
	script := filepath.Join(t.TempDir(), "zerto-rewind")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+binary+" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.mustRun("hook", "install", "claude", "--binary", script)
	if s := w.hookStates(0, "claude")["claude"]; len(s.Warnings) != 1 || !s.Entries[0].Starts {
		t.Errorf("%+v", s)
	}
}
