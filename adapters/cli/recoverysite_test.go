package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// pair is a world whose dr01 recovers to another site alone, with the ZVM of that site, and a guard of change c2.
type pair struct {
	*world
	peer *zvmtest.Server
	site string // as --recovery-site wants it
}

func newPair(t *testing.T, opts ...zvmtest.Option) *pair {
	t.Helper()
	w := newWorld(t)
	at := w.sim.AddPeerSite("Recovery")
	vm := w.sim.AddVM("dr01", w.remote)
	if err := vm.Guest().WriteFile("/etc/hosts", []byte("127.0.0.1 dr01\n")); err != nil {
		t.Fatal(err)
	}
	peer := w.sim.StartPeer(t, at, append([]zvmtest.Option{zvmtest.WithMountTime(0), zvmtest.WithUnmountTime(0)}, opts...)...)
	w.mustRun("protect", "dr01", "--action", "upgrade nginx", "--change", "c2")
	return &pair{w, peer, at.ID + "=" + peer.URL()}
}

func TestFilesComeBackThroughTheRecoverySiteThatIsNamed(t *testing.T) {
	t.Parallel()
	p := newPair(t, zvmtest.WithSwitch(zvmtest.PeerIDsDiffer))
	site, _, _ := strings.Cut(p.site, "=")
	p.run("browse", "--change", "c2", "/etc").want(t, 7, "Recovery", "--recovery-site "+site+"=https://")
	if o := p.mustRun("browse", "--change", "c2", "/etc", "--recovery-site", p.site); !strings.Contains(o.out, "hosts") {
		t.Errorf("browse:\n%s", o.out)
	}
	dest := filepath.Join(t.TempDir(), "hosts")
	if o := p.mustRun("recover", "--change", "c2", "/etc/hosts", "-o", dest, "--recovery-site", p.site, "--json"); !strings.Contains(o.out, `"recoverySiteId": "`+site) {
		t.Errorf("recover:\n%s", o.out)
	}
	p.sim.Advance(10 * time.Second)
	if o := p.mustRun("diff", "--change", "c2", "/etc", "--recovery-site", p.site); !strings.Contains(o.out, "no difference seen") {
		t.Errorf("diff:\n%s", o.out)
	}
	if o := p.mustRun("sweep", "--recovery-site", p.site); o.out != "nothing of ours is open\n" {
		t.Errorf("sweep:\n%s", o.out)
	}
	if live := p.peer.LiveFLRSessions(); len(live) > 0 || p.sim.Count("", "/v1/flrs/*") > 0 {
		t.Errorf("left open: %v; or the wrong ZVM was asked", live)
	}
}

func TestWhatIsLeftOpenAtARecoverySiteIsClosedByThePrintedCommand(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.peer.On("DELETE", "/v1/flrs/*").Status(403, "").Always()
	o := p.run("browse", "--change", "c2", "/etc", "--recovery-site", p.site)
	command := "zerto-rewind sweep --apply --recovery-site '" + p.site + "'"
	o.want(t, 9, command)
	site, _, _ := strings.Cut(p.site, "=")
	if o := p.mustRun("sweep", "--recovery-site", p.site); !strings.Contains(o.out, "web-remote at site "+site) {
		t.Errorf("sweep:\n%s", o.out)
	}
}

func TestARecoverySiteHasSettingsOfItsOwnOrThoseOfTheZVM(t *testing.T) {
	t.Parallel()
	p := newPair(t, zvmtest.WithUser("dr-user", "MARKER-dr", zvmtest.Admin), zvmtest.WithUser("svc-rewind", "MARKER-another", zvmtest.Admin))
	browse := []string{"browse", "--change", "c2", "/etc", "--recovery-site", p.site}
	p.run(browse...).want(t, 4, "at recovery site") // the ZVM's own user has another password there
	own := p.with("ZVM_RECOVERY_USERNAME", "dr-user")
	own.run(browse...).want(t, 64, "not set: ZVM_RECOVERY_PASSWORD or ZVM_RECOVERY_PASSWORD_FILE")
	own.with("ZVM_RECOVERY_PASSWORD", "MARKER-dr").mustRun(browse...)
	own.with("ZVM_RECOVERY_PASSWORD_FILE", secretFile(t, "MARKER-dr\n", 0o600)).mustRun(append(browse, "--username", p.sim.Username())...)
	p.with("ZVM_RECOVERY_PASSWORD", "MARKER-another").run(browse...).want(t, 64, "not set: ZVM_RECOVERY_USERNAME")
}

func TestARecoverySiteIsTrustedByItself(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	browse := []string{"browse", "--change", "c2", "/etc", "--recovery-site", p.site}
	wrong := p.with("ZVM_RECOVERY_CERT_SHA256", strings.Repeat("00", 32))
	wrong.run(browse...).want(t, 1, "at recovery site", "set ZVM_RECOVERY_CERT_SHA256 to its fingerprint")
	p.with("ZVM_RECOVERY_CERT_SHA256", "abc").run(browse...).want(t, 64, "ZVM_RECOVERY_CERT_SHA256: ")
	p.with("ZVM_RECOVERY_CA_FILE", "/nowhere/ca.pem").run(browse...).want(t, 64, "ZVM_RECOVERY_CA_FILE: ")
	p.with("ZVM_RECOVERY_CERT_SHA256", p.peer.CertSHA256()).mustRun(browse...)
}

func TestARecoverySiteIsNamedWholeAndOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	browse := []string{"browse", "--change", "c2", "/etc", "--recovery-site"}
	for _, value := range []string{"", "https://zvm.example.com", "=https://zvm.example.com", "site="} {
		p.run(append(browse, value)...).want(t, 64, "SITE_ID=URL")
	}
	p.run(append(browse, "site=zvm.example.com")...).want(t, 64, `--recovery-site site: the base URL must begin with "https://"`)
	p.run(append(browse, p.site, "--recovery-site", strings.ToUpper(p.site))...).want(t, 64, "named twice")
}

func TestAPartitionSettlesAPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.web01.Guest().AddPartition("Volume2-Ext4", "/var", zvmtest.Ext4); err != nil {
		t.Fatal(err)
	}
	w.write("/both", "root")
	w.write("/var/both", "var")
	w.guard()
	w.run("recover", "--change", "c1", "/both", "-o", "-").want(t, 6, "--partition", "Volume1-Ext4/both", "Volume2-Ext4/both")
	if o := w.mustRun("recover", "--change", "c1", "/both", "-o", "-", "--partition", "Volume2-Ext4"); o.out != "var" {
		t.Errorf("recovered %q", o.out)
	}
	if o := w.mustRun("browse", "--change", "c1", "/", "--partition", "Volume2-Ext4"); !strings.Contains(o.out, "both") {
		t.Errorf("browse:\n%s", o.out)
	}
	w.mustRun("diff", "--change", "c1", "/both", "--partition", "Volume1-Ext4")
	o := w.run("browse", "--change", "c1", "/", "--partition", "Volume9", "--json")
	o.want(t, 5, `"paths":["Volume1-Ext4","Volume2-Ext4"]`)
}

func TestNamesAreComparedInNormalForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("/srv/cafe\u0301", "decomposed")
	w.guard()
	if o := w.mustRun("recover", "--change", "c1", "/srv/caf\u00e9", "-o", "-"); o.out != "decomposed" {
		t.Errorf("recovered %q", o.out)
	}
}
