package cli_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestEveryMissingSettingIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	o := newWorld(t).without("ZVM_URL", "ZVM_USERNAME", "ZVM_PASSWORD").run("find", "web01")
	o.want(t, 64, "not set: ZVM_URL, ZVM_USERNAME, ZVM_PASSWORD or ZVM_PASSWORD_FILE\n", "ZVM_CLIENT_SECRET_FILE", "zerto-rewind sim\n")
	if strings.Count(o.err, "\n") != 2 {
		t.Errorf("not one line and a hint:\n%s", o.err)
	}
}

func TestABadAddressIsNamedBesideWhatIsMissing(t *testing.T) {
	t.Parallel()
	newWorld(t).without("ZVM_PASSWORD").with("ZVM_URL", "zvm.example.com").run("find", "web01").
		want(t, 64, "not set: ZVM_PASSWORD or", `ZVM_URL: the base URL must begin with "https://"`)
}

func TestSettingsGoByTheirVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, value := range map[string]string{
		"ZVM_REALM": "a/b", "ZVM_CERT_SHA256": "abc", "ZVM_INSECURE_SKIP_VERIFY": "1",
	} {
		o := w.with(name, value).run("find", "web01")
		o.want(t, 64, name+": ")
		if strings.Contains(o.err, "With") || strings.Contains(o.err, "--help") {
			t.Errorf("%s=%s: %s", name, value, o.err)
		}
	}
}

func TestAnEmptySettingIsAMissingOne(t *testing.T) {
	t.Parallel()
	newWorld(t).with("ZVM_PASSWORD", "").run("find", "web01").want(t, 64, "ZVM_PASSWORD or ZVM_PASSWORD_FILE")
}

func TestPlaceholdersAreNamedAndNotEchoed(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"${ZVM_PASSWORD}", "$ZVM_PASSWORD", "%ZVM_PASSWORD%", "${env:PW}", " ${X} "} {
		for _, name := range []string{"ZVM_PASSWORD", "ZVM_URL", "ZVM_USERNAME", "ZVM_PASSWORD_FILE", "ZVM_CA_FILE", "ZVM_CLIENT_SECRET"} {
			o := newWorld(t).with(name, value).run("find", "web01")
			o.want(t, 64, name+" holds a placeholder")
			if strings.Contains(o.err, value) || strings.Contains(o.err, "not set: "+name) {
				t.Errorf("%s=%s: %s", name, value, o.err)
			}
		}
	}
	newWorld(t, zvmtest.WithUser("svc-rewind", "$Passw0rd", zvmtest.Admin)).with("ZVM_PASSWORD", "$Passw0rd").mustRun("find", "web01")
}

func TestAFlagBeatsItsVariable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	broken := w.with("ZVM_URL", "https://127.0.0.1:1").with("ZVM_USERNAME", "nobody").with("ZVM_CERT_SHA256", strings.Repeat("0", 64)).
		with("ZERTO_REWIND_AGENT", "wrong")
	secret := secretFile(t, w.sim.Password()+"\n", 0o600)
	o := broken.mustRun("protect", "web01", "--action", "x", "--json", "--url", w.sim.URL(), "--username", w.sim.Username(),
		"--cert-sha256", w.sim.CertSHA256(), "--agent", "right", "--password-file", secret)
	if !strings.Contains(o.out, `"agent": "right"`) {
		t.Errorf("stdout:\n%s", o.out)
	}
}

func secretFile(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecretFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, content, secret, problem string }{
		{name: "no line ending", content: "pw-4711", secret: "pw-4711"},
		{name: "a line feed", content: "pw-4711\n", secret: "pw-4711"},
		{name: "the line ending of Windows", content: "pw-4711\r\n", secret: "pw-4711"},
		{name: "one line ending of two", content: "pw-4711\n\n", secret: "pw-4711\n"},
		{name: "blanks", content: " pw 4711 \n", secret: " pw 4711 "},
		{name: "a byte order mark", content: "\ufeffpw-4711", secret: "pw-4711"},
		{name: "what looks like a placeholder", content: "$SECRET", secret: "$SECRET"},
		{name: "nothing", content: "", problem: "is empty"},
		{name: "an empty line", content: "\ufeff\r\n", problem: "is empty"},
		{name: "UTF-16 with a mark", content: "\xff\xfep\x00w\x00", problem: "UTF-16"},
		{name: "UTF-16 without", content: "p\x00w\x00", problem: "UTF-16"},
		{name: "Latin-1", content: "p\xe4ss", problem: "UTF-8"},
		{name: "far too much", content: strings.Repeat("x", 1<<17), problem: "too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var opts []zvmtest.Option
			if tt.secret != "" {
				opts = append(opts, zvmtest.WithUser("reader", tt.secret, zvmtest.Viewer))
			}
			w := newWorld(t, opts...).with("ZVM_USERNAME", "reader").without("ZVM_PASSWORD").
				with("ZVM_PASSWORD_FILE", secretFile(t, tt.content, 0o600))
			o := w.run("find", "web01")
			if tt.problem == "" {
				o.want(t, 0)
				if o.err != "" {
					t.Errorf("stderr:\n%s", o.err)
				}
				return
			}
			o.want(t, 64, "ZVM_PASSWORD_FILE", tt.problem)
		})
	}
	newWorld(t).without("ZVM_PASSWORD").with("ZVM_PASSWORD_FILE", t.TempDir()).run("find", "web01").want(t, 64, "is a folder")
	newWorld(t).without("ZVM_PASSWORD").with("ZVM_PASSWORD_FILE", "/nowhere/secret").run("find", "web01").want(t, 64, "/nowhere/secret")
	newWorld(t).with("ZVM_PASSWORD_FILE", "/nowhere/secret").run("find", "web01").want(t, 64, "both set")
}

func TestASecretThatOthersCanReadIsWarnedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	loose := secretFile(t, w.sim.Password(), 0o644)
	o := w.without("ZVM_PASSWORD").with("ZVM_PASSWORD_FILE", loose).mustRun("find", "web01")
	if got := strings.Contains(o.err, "can be read by others"); got != (runtime.GOOS != "windows") {
		t.Errorf("stderr:\n%s", o.err)
	}
}

func TestAClientWithASecretLogsInItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithServiceClient("bot", "MARKER-client", zvmtest.Admin)).without("ZVM_USERNAME", "ZVM_PASSWORD")
	w.with("ZVM_CLIENT_ID", "bot").with("ZVM_CLIENT_SECRET", "MARKER-client").mustRun("find", "web01")
	w.with("ZVM_CLIENT_ID", "bot").with("ZVM_CLIENT_SECRET_FILE", secretFile(t, "MARKER-client\n", 0o600)).mustRun("find", "web01")
	w.with("ZVM_CLIENT_SECRET", "MARKER-client").run("find", "web01").want(t, 64, "not set: ZVM_CLIENT_ID")
}

func TestAUserFromFlagsBeatsAClientFromTheEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t).with("ZVM_CLIENT_ID", "zerto-client").with("ZVM_CLIENT_SECRET", "MARKER-wrong")
	w.run("find", "web01").want(t, 4)
	w.mustRun("find", "web01", "--username", w.sim.Username())
}

func TestTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t).without("ZVM_CERT_SHA256")
	w.run("find", "web01").want(t, 1, "certificate", "set ZVM_CA_FILE to a file with the authority, or ZVM_CERT_SHA256 to")
	w.with("ZVM_CERT_SHA256", strings.Repeat("00", 32)).run("find", "web01").want(t, 1, "not the expected one", "set ZVM_CERT_SHA256 to its fingerprint")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, w.sim.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	w.with("ZVM_CA_FILE", ca).mustRun("find", "web01")
	w.mustRun("find", "web01", "--ca-file", ca)
	w.with("ZVM_CA_FILE", secretFile(t, "nothing", 0o600)).run("find", "web01").want(t, 64, "ZVM_CA_FILE", "no certificate")
	w.with("ZVM_CERT_SHA256", "abc").run("find", "web01").want(t, 64, "SHA-256")
	w.with("ZVM_INSECURE_SKIP_VERIFY", "yes").run("find", "web01").want(t, 64, "ZVM_INSECURE_SKIP_VERIFY must be 1 or 0")
	w.with("ZVM_INSECURE_SKIP_VERIFY", "0").run("find", "web01").want(t, 1, "certificate")
	loud := w.with("ZVM_INSECURE_SKIP_VERIFY", "1").mustRun("find", "web01")
	loud.want(t, 0, "level=WARN", "certificate is not checked")
}

func TestTheRealmAndTheClientAreUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithRealm("other"))
	w.with("ZVM_REALM", "other").with("ZVM_CLIENT_ID", "zerto-client").mustRun("find", "web01")
	w.run("find", "web01").want(t, 1, "check ZVM_URL and ZVM_REALM")
}

func TestAUsersCatalogueIsLaidOverTheBuiltInOne(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t)
	file := filepath.Join(t.TempDir(), "catalog.json")
	text := `{"version":1,"servers":[{"server":"mine","source":"me","tools":[{"names":["frob"],"class":"mutating"}]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []outcome{
		w.mustRun("check", "mine", "frob", "--catalog", file, "--json"),
		w.with("ZERTO_REWIND_CATALOG", file).mustRun("check", "mine", "frob", "--json"),
	} {
		if !strings.Contains(o.out, `"class": "mutating"`) {
			t.Errorf("stdout:\n%s", o.out)
		}
	}
	w.with("ZERTO_REWIND_CATALOG", "/nowhere").run("check", "a", "b").want(t, 64, "ZERTO_REWIND_CATALOG")
	w.with("ZERTO_REWIND_CATALOG", secretFile(t, "{", 0o600)).run("check", "a", "b").want(t, 64)
	several := secretFile(t, `{"version":1,"servers":[{"server":"mine","source":"me","tools":[{"names":["frob"],"class":"x","y":1}]}]}`, 0o600)
	o := w.with("ZERTO_REWIND_CATALOG", several).run("check", "a", "b")
	o.want(t, 64, "error: "+several+":1:91: ", "\n  "+several+":1:95: ")
	if strings.Contains(o.err, `\n`) || strings.Contains(o.err, "--help") {
		t.Errorf("stderr:\n%s", o.err)
	}
}
