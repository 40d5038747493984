package rewind_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestLaw3_NamesMeanOneVMOrNone(t *testing.T) {
	t.Parallel()
	sim := start(t)
	vpgs := map[string]*zvmtest.VPG{}
	add := func(name string, ips ...string) string {
		vpg := sim.AddVPG("vpg-"+name, zvmtest.VPGConfig{})
		vpgs[name] = vpg
		vm := sim.AddVM(name, vpg)
		vm.SetIPs(ips...)
		return vm.ID()
	}
	web := add("web01", "192.0.2.10", "fe80::1")
	db := add("db01.example.test")
	upper, lower := add("APP"), add("app")
	twin1, twin2 := add("APP-01", "192.0.2.20"), add("APP-01")
	odd := add("a b+c&d%2F#é")
	add("mail.a.example.test")
	add("mail.b.example.test")
	shared := add("shared.example.test")
	sharedToo := add("shared")
	_, s := connect(t, sim)
	for _, tt := range []struct {
		name, wanted string
		want         []string // ids: one is found, several are ambiguous, none is not found
	}{
		{"exact name", "web01", []string{web}},
		{"vmIdentifier", web, []string{web}},
		{"another case", "WEB01", []string{web}},
		{"short name against FQDN", "db01", []string{db}},
		{"short name in another case", "DB01", []string{db}},
		{"FQDN against short name", "web01.example.test", []string{web}},
		{"FQDN with a final dot", "Web01.Example.test.", []string{web}},
		{"exact beats another case", "app", []string{lower}},
		{"exact beats another case, the other way round", "APP", []string{upper}},
		{"two in another case", "App", []string{upper, lower}},
		{"two of one name", "APP-01", []string{twin1, twin2}},
		{"one of two of one name, by id", twin2, []string{twin2}},
		{"exact beats host name", "shared", []string{sharedToo}},
		{"exact FQDN beats its short name", "shared.example.test", []string{shared}},
		{"two FQDNs of one short name", "mail", nil},
		{"an FQDN in another domain", "db01.other.test", nil},
		{"address", "192.0.2.10", []string{web}},
		{"address mapped to IPv6", "::ffff:192.0.2.10", []string{web}},
		{"address nobody reports", "192.0.2.99", nil},
		{"name full of separators", "a b+c&d%2F#é", []string{odd}},
		{"nothing", "", nil},
		{"blank", " ", nil},
		{"part of a name", "web0", nil},
		{"name with blanks around it", " web01 ", nil},
		{"pattern", "web*", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := s.FindProtection(t.Context(), tt.wanted)
			var got []string
			var missing *rewind.NotFoundError
			var ambiguous *rewind.AmbiguousVMError
			switch {
			case err == nil:
				got = []string{string(p.VM.ID)}
			case errors.As(err, &ambiguous):
				for _, c := range ambiguous.Candidates {
					got = append(got, string(c.VM.ID))
					if c.VM.Name == "" || len(c.VPGs) == 0 || c.VPGs[0].VPGName == "" || c.VPGs[0].ProtectedSite == "" {
						t.Errorf("candidate does not say what it is: %+v", c)
					}
				}
			case errors.As(err, &missing):
				if missing.Site != sim.LocalSite().Name {
					t.Errorf("the error names site %q, want the one asked", missing.Site)
				}
			default:
				t.Fatal(err)
			}
			if tt.wanted == "mail" {
				if ambiguous == nil || len(got) != 2 {
					t.Errorf("got %v, %v, want two candidates", got, err)
				}
				return
			}
			if strings.HasPrefix(tt.name, "address") && !tellsAll() && len(got) == 0 {
				return
			}
			if diff := cmp.Diff(sorted(tt.want), sorted(got)); diff != "" {
				t.Errorf("VMs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAVMInThreeVPGsIsOneVM(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct {
		name string
		opts []zvmtest.Option
	}{
		{"ids at the top level", nil},
		{"ids only in links", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.IDsOnlyInLinks)}},
		{"camel case", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.CamelCaseKeys)}},
		{"null fields", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.NullFields)}},
		{"filters ignored", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.FiltersIgnored)}},
	} {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, shape.opts...)
			third := w.sim.AddVPG("archive", zvmtest.VPGConfig{RecoverySite: w.sim.AddPeerSite("Archive")})
			w.sim.AddVM("many", w.local, w.remote, third)
			p, err := w.FindProtection(t.Context(), "many")
			must(t, err)
			var names []string
			for _, v := range p.VPGs {
				names = append(names, v.VPGName)
			}
			if diff := cmp.Diff([]string{"archive", "web-dr", "web-local"}, names); diff != "" {
				t.Errorf("VPGs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProtectionJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := w.FindProtection(t.Context(), "web01")
	must(t, err)
	data, err := json.Marshal(p)
	must(t, err)
	var parts struct {
		VM   json.RawMessage
		VPGs []json.RawMessage
	}
	must(t, json.Unmarshal(data, &parts))
	for want, part := range map[string][]byte{
		"vm vpgs": data,
		"id name": parts.VM,
		"local protectedSite protecting reason recoverySite status subStatus vpgId vpgName": parts.VPGs[0],
	} {
		if diff := cmp.Diff(want, strings.Join(keys(t, part), " ")); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
	}
}
