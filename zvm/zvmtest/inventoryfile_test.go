package zvmtest_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const wholeInventory = `{
  "site": "Here", "peers": ["There"],
  "users": [{"name": "ann", "password": "MARKER-ann", "role": "viewer"}, {"name": "flo", "password": "MARKER-flo", "role": "flr-operator"}],
  "clients": [{"id": "agent", "secret": "MARKER-agent", "role": "admin"}],
  "vpgs": [
    {"name": "local", "history": "2h", "journalAge": "10m", "checkpointInterval": "1m"},
    {"name": "remote", "protectedSite": "Here", "recoverySite": "There", "status": 2, "subStatus": 23}
  ],
  "vms": [
    {"name": "web01", "vpgs": ["local", "remote"], "ips": ["192.0.2.7"], "flr": false,
     "files": {"/etc/motd": "hello\n"}, "dirs": {"/srv": "data"}, "noise": {"/var/noise": 9}, "many": {"/var/many": 3}},
    {"name": "win01", "layout": "windows", "files": {"C:\\x.txt": "x"}},
    {"name": "db01", "partitions": [{"root": "Vol", "mountPoint": "/", "fs": "xfs"}], "files": {"/a": "b"}}
  ]
}`

func TestInventoryIsAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "live"), []byte("from the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, zvmtest.WithInventory(strings.NewReader(wholeInventory), dir))

	var list []struct {
		VMName, VpgName, ProtectedSiteName, RecoverySiteName string
		Status, SubStatus                                    int
		EnabledActions                                       struct{ IsFlrEnabled bool }
		VMNetworkInformation                                 struct {
			NetworkAdapters []struct{ IPAddresses []string }
		} `json:"VmNetworkInformation"`
	}
	loginAs(t, s, "ann", "MARKER-ann").get("/v1/vms").into(t, &list)
	if len(list) != 2 || list[0].VpgName != "local" || list[0].RecoverySiteName != "Here" || list[0].EnabledActions.IsFlrEnabled ||
		list[1].VpgName != "remote" || list[1].RecoverySiteName != "There" || list[1].Status != 2 || list[1].SubStatus != 23 ||
		!cmp.Equal(list[0].VMNetworkInformation.NetworkAdapters[0].IPAddresses, []string{"192.0.2.7"}) {
		t.Errorf("VMs = %+v", list)
	}
	local := s.VPGs()[0]
	if all := local.Checkpoints(s.Now().AddDate(-1, 0, 0), s.Now()); len(all) != 10 {
		t.Errorf("a journal of 10 minutes has %d checkpoints", len(all))
	}
	got := map[string]string{}
	for i, path := range []string{"/etc/motd", `C:\x.txt`, "/a"} {
		data, err := s.VMs()[i].Guest().ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		got[path] = string(data)
	}
	live, err := s.VMs()[0].Guest().ReadFile("/srv/live")
	got["/srv/live"] = string(live)
	want := map[string]string{"/etc/motd": "hello\n", `C:\x.txt`: "x", "/a": "b", "/srv/live": "from the host"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, files (-want +got):\n%s", err, diff)
	}
	noise, err := s.VMs()[0].Guest().ReadFile("/var/noise")
	last, many := s.VMs()[0].Guest().ReadFile("/var/many/file-000002.txt")
	if err != nil || len(noise) != 9 || many != nil || string(last) != "file-000002.txt\n" {
		t.Errorf("generated files hold %q, %v, and %q, %v", noise, err, last, many)
	}
	c := loginAs(t, s, "ann", "MARKER-ann")
	if a := c.post("/v1/vpgs/"+local.ID()+"/checkpoints", `{"checkpointName":"x"}`); a.status != http.StatusForbidden {
		t.Errorf("a viewer's insert = %d", a.status)
	}
}

func TestInventoryIsReadStrictly(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{`:                      "EOF",
		`[]`:                     "cannot unmarshal array",
		`{} {}`:                  "something after the document",
		`{"vm":[]}`:              `unknown field "vm"`,
		`{"site":"a","site":""}`: `member "site" comes twice`,
		`{"vms":[{"name":"a","files":{"/x":"1","/x":"2"}}]}`:                                               `member "/x" comes twice`,
		`{"vpgs":[{"name":"a","history":"2 h"}]}`:                                                          "time: ",
		`{"vpgs":[{"name":"a"},{"name":"a"}]}`:                                                             `VPG "a": a VPG needs a name of its own`,
		`{"vpgs":[{"name":"a","recoverySite":"Mars"}]}`:                                                    `VPG "a": there is no site "Mars"`,
		`{"vpgs":[{"name":"a","history":"-1s"}]}`:                                                          `VPG "a": its history is negative`,
		`{"vpgs":[{"name":"a","checkpointInterval":"1ms"}]}`:                                               `VPG "a": its checkpointInterval`,
		`{"vms":[{"name":""}]}`:                                                                            `VM "": a VM needs a name`,
		`{"vms":[{"name":"a","vpgs":["b"]}]}`:                                                              `VM "a": there is no VPG "b"`,
		`{"vms":[{"name":"a","layout":"cpm"}]}`:                                                            `VM "a": there is no layout "cpm"`,
		`{"vms":[{"name":"a","layout":"linux","partitions":[{"root":"r","mountPoint":"/","fs":"ext4"}]}]}`: "exclude each other",
		`{"vms":[{"name":"a","partitions":[{"root":"r","mountPoint":"/","fs":"fat"}]}]}`:                   `no file system "fat"`,
		`{"vms":[{"name":"a","partitions":[{"root":"","mountPoint":"x","fs":"ext4"}]}]}`:                   `VM "a": add partition`,
		`{"vms":[{"name":"a","files":{"x":""}}]}`:                                                          `VM "a": write x`,
		`{"vms":[{"name":"a","dirs":{"/x":"nowhere-at-all"}}]}`:                                            `VM "a": stat `,
		`{"vms":[{"name":"a","noise":{"/x":-1}}]}`:                                                         `VM "a": write /x`,
		`{"vms":[{"name":"a","many":{"/x":1000001}}]}`:                                                     `VM "a": many /x`,
		`{"vpgs":[{"name":"a"},{"name":"b"}],"vms":[{"name":"v","vpgs":["a","b"]}]}`:                       `VM "v" cannot be in VPG "b"`,
		`{"users":[{"name":"a","password":"b","role":"king"}]}`:                                            `user "a" needs`,
		`{"clients":[{"id":"a","secret":"b"}]}`:                                                            `client "a" needs`,
	} {
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			s, err := zvmtest.New(zvmtest.WithInventory(strings.NewReader(document), t.TempDir()))
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want %q in it", err, want)
			}
		})
	}
}

func TestListenerOutlivesABadInventory(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = zvmtest.New(zvmtest.WithListener(l), zvmtest.WithInventory(strings.NewReader(`{"vms":[{"name":""}]}`), ""))
	if closeErr := l.Close(); err == nil || closeErr != nil {
		t.Errorf("New = %v, then Close = %v", err, closeErr)
	}
}

func FuzzInventory(f *testing.F) {
	f.Add(wholeInventory)
	f.Add(`{"vms":[{"name":"a","partitions":[{"root":"D/V","mountPoint":"C:","fs":"ntfs"}],"files":{"c:/A":"","C:\\a":""}}]}`)
	f.Add(`{"vpgs":[{"name":"a","history":"-1h","journalAge":"-1ns","checkpointInterval":"1ns","status":-1}]}`)
	f.Add(`{"vpgs":[{"name":"a","history":"1ns","journalAge":"9223372036854775807ns","checkpointInterval":"1s"}]}`)
	f.Add(`{"clients":[{"id":"zerto-client","secret":"a","role":"viewer"}]}`)
	f.Add(`{"vms":[{"name":"a","Dirs":{"/a":"/"}}]}`)
	f.Fuzz(func(t *testing.T, document string) {
		var asks struct {
			VMs     []struct{ Dirs map[string]any }
			Clients []struct{ ID string }
		}
		_ = json.Unmarshal([]byte(document), &asks)
		for _, vm := range asks.VMs {
			if len(vm.Dirs) > 0 {
				return // would read this computer
			}
		}
		for _, client := range asks.Clients {
			if client.ID == "zerto-client" {
				return // gives the login below a client secret, which it does not know
			}
		}
		s, err := zvmtest.New(zvmtest.WithInventory(strings.NewReader(document), t.TempDir()))
		if err != nil {
			return
		}
		defer s.Close()
		c := login(t, s)
		for _, path := range []string{"/v1/vms", "/v1/vpgs", "/v1/peersites"} {
			if a := c.get(path); a.status != http.StatusOK {
				t.Errorf("%s = %d %s", path, a.status, a.body)
			}
		}
	})
}

func TestCAFileGoesWithTheServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	name, err := s.CAFile()
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(name)
	if err != nil || string(pem) != string(s.CAPEM()) {
		t.Errorf("the file holds %q, %v", pem, err)
	}
	s.Close()
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("after Close: %v", err)
	}
	if name, err := s.CAFile(); err == nil {
		t.Errorf("a closed server wrote %s", name)
	}
}
