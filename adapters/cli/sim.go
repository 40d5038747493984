package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// simulation is how a simulated ZVM is set up.
type simulation struct {
	listen     string
	inventory  string   // file name
	guests     []string // VM=DIR
	profile    string
	seed       uint64
	tokenTTL   time.Duration
	insertTime time.Duration
	ownInsert  bool // insertTime counts even with a profile
	keycloak   string
	trace      bool
}

// simulated tells how to reach a simulated ZVM.
type simulated struct {
	URL      string `json:"url"`
	Username string `json:"username"` // empty with a Keycloak
	Password string `json:"password"` // of the simulation, good for nothing else
	CAFile   string `json:"caFile"`
}

// defaultInventory is both what a simulation has without --inventory and the help's example of the format.
const defaultInventory = `{
  "site": "Production",
  "peers": ["Recovery"],
  "vpgs": [
    {"name": "web-local"},
    {"name": "web-remote", "recoverySite": "Recovery", "history": "24h", "journalAge": "1h"}
  ],
  "vms": [
    {"name": "web01", "vpgs": ["web-local", "web-remote"], "ips": ["192.0.2.7"], "layout": "linux",
     "files": {"/etc/nginx/nginx.conf": "events {}\nhttp {\n    server { listen 80; }\n}\n"}}
  ]
}`

// keptRequests bounds the request log of a simulation, which nobody reads and which may run for days.
const keptRequests = 100

func (a *app) sim() *cobra.Command {
	s := simulation{listen: "127.0.0.1:0", seed: 1, tokenTTL: time.Minute, insertTime: 3 * time.Second}
	c := a.command(cobra.Command{
		Use:   "sim [--listen ADDRESS] [--inventory FILE] [--guest VM=DIR] [--profile NAME]",
		Short: "Run a simulated ZVM to try the other commands on",
		Long: `Sim runs a simulated ZVM with one VM, web01, in two VPGs: web-local, whose files come back here, and web-remote, which
replicates to another site. It prints the settings that lead to it as one line for a shell, and serves until it is
interrupted. Any HTTP client can use it, in any language.

With --guest, the VM's disk shows a folder of this computer: change a file there, and recover it as it was at a tagged
checkpoint.

The profile quick does everything at once, realistic takes the times of an appliance, and hostile answers all that is
not known about the interface of a ZVM in the awkward way, as the seed decides.

With --keycloak, the address of a Keycloak up to /auth or to /auth/realms/NAME, tokens are the ones of that realm, which
is zerto if none is named.

An inventory is a JSON document. This is the one that sim has without --inventory:

` + defaultInventory + `

A VPG also takes protectedSite, status and subStatus as numbers, and checkpointInterval; a VM takes "flr": false, "dirs"
(folders of this computer by guest path, relative to the file), and "layout": linux, numbered, windows, windows-volumes
or many-disks, or else "partitions": [{"root": "Vol", "mountPoint": "/", "fs": "ext4"}]. Beside these, "users":
[{"name", "password", "role"}] and "clients": [{"id", "secret", "role"}] have the roles admin, viewer and flr-operator.`,
		Args: cobra.NoArgs,
	}, 0, func(ctx context.Context, _ []string) error { return a.simulate(ctx, s) })
	flags := c.Flags()
	flags.StringVar(&s.listen, "listen", s.listen, "loopback `address` to listen on; port 0 means a free one")
	flags.StringVar(&s.inventory, "inventory", "", "JSON `file` with the sites, VPGs, VMs and users")
	flags.StringArrayVar(&s.guests, "guest", nil, "show a folder as the disk of a VM, as `VM=DIR`; may be repeated")
	flags.StringVar(&s.profile, "profile", "", "quick, realistic or hostile")
	flags.Uint64Var(&s.seed, "seed", s.seed, "what ids and the profiles are derived from")
	flags.DurationVar(&s.tokenTTL, "token-ttl", s.tokenTTL, "life of an access `token`")
	flags.DurationVar(&s.insertTime, "insert-time", s.insertTime, "how long the insert of a tagged checkpoint takes; a profile has its own")
	flags.StringVar(&s.keycloak, "keycloak", "", "`URL` of a Keycloak that issues the tokens")
	flags.BoolVar(&s.trace, "trace", false, "one line per request on stderr")
	c.PreRun = func(*cobra.Command, []string) { s.ownInsert = flags.Changed("insert-time") }
	return c
}

func (a *app) simulate(ctx context.Context, s simulation) error {
	server, err := a.startSimulation(ctx, s)
	if err != nil {
		return err
	}
	defer server.Close()
	caFile, err := server.CAFile()
	if err != nil {
		return err
	}
	reach := simulated{server.URL(), server.Username(), server.Password(), caFile}
	if s.keycloak != "" {
		reach.Username, reach.Password = "", ""
	}
	if a.json {
		err = a.document(reach)
	} else {
		err = reach.export(a.io.Out)
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// export prints the settings as a line for a shell.
func (r simulated) export(out io.Writer) error {
	line := "export ZVM_URL=" + shellWord(r.URL)
	if r.Username != "" {
		line += " ZVM_USERNAME=" + shellWord(r.Username) + " ZVM_PASSWORD=" + shellWord(r.Password)
	}
	_, err := fmt.Fprintln(out, line+" ZVM_CA_FILE="+shellWord(r.CAFile))
	return err
}

func (a *app) startSimulation(ctx context.Context, s simulation) (*zvmtest.Server, error) {
	opts, err := s.options()
	if err != nil {
		return nil, &usageError{err}
	}
	if s.trace {
		opts = append(opts, zvmtest.WithOnRequest(a.trace))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, err
	}
	server, err := zvmtest.New(append(opts, zvmtest.WithListener(listener))...) //nolint:contextcheck // a simulation is ended by its Close, not by a context
	if err != nil {
		return nil, errors.Join(&usageError{err}, listener.Close())
	}
	if err := s.showGuests(server); err != nil {
		server.Close()
		return nil, &usageError{err}
	}
	return server, nil
}

func (s simulation) options() ([]zvmtest.Option, error) {
	host, _, err := net.SplitHostPort(s.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("--listen %s: a simulation is for this computer alone: give a loopback address", s.listen)
	}
	opts := []zvmtest.Option{
		zvmtest.WithSeed(s.seed), zvmtest.WithRequestLog(keptRequests),
		zvmtest.WithMountTime(time.Second), zvmtest.WithUnmountTime(300 * time.Millisecond),
	}
	if s.profile != "" {
		profile, found := map[string]zvmtest.Profile{
			"quick": zvmtest.Quick, "realistic": zvmtest.Realistic, "hostile": zvmtest.Hostile,
		}[s.profile]
		if !found {
			return nil, fmt.Errorf("--profile %s: want quick, realistic or hostile", s.profile)
		}
		opts = append(opts, zvmtest.WithProfile(profile))
	}
	if s.profile == "" || s.ownInsert {
		opts = append(opts, zvmtest.WithInsertTime(s.insertTime))
	}
	opts = append(opts, zvmtest.WithTokenTTL(s.tokenTTL))
	if s.keycloak != "" {
		base, realm, found := strings.Cut(strings.TrimRight(s.keycloak, "/"), "/realms/")
		if !found {
			realm = "zerto"
		}
		opts = append(opts, zvmtest.WithKeycloak(base, realm))
	}
	document, dir := []byte(defaultInventory), ""
	if s.inventory != "" {
		dir = filepath.Dir(s.inventory)
		if document, err = os.ReadFile(s.inventory); err != nil {
			return nil, fmt.Errorf("--inventory: %w", err)
		}
	}
	return append(opts, zvmtest.WithInventory(bytes.NewReader(document), dir)), nil
}

// showGuests replaces the disks of VMs by folders of this computer. Without an inventory, a VM that is not there is added
// beside web01.
func (s simulation) showGuests(server *zvmtest.Server) error {
	filled := map[string]bool{}
	for _, pair := range s.guests {
		name, dir, ok := strings.Cut(pair, "=")
		if !ok || name == "" || dir == "" || filled[name] {
			return fmt.Errorf("--guest %q: want VM=DIR, once for each VM", pair)
		}
		filled[name] = true
		vm, err := s.guestVM(server, name)
		if err != nil {
			return err
		}
		if err := vm.Guest().SetLayout(zvmtest.LinuxLayout()); err != nil {
			return fmt.Errorf("--guest %s: %w", name, err)
		}
		if err := vm.Guest().MountDir("/", dir); err != nil {
			return fmt.Errorf("--guest %s: %w", name, err)
		}
	}
	return nil
}

func (s simulation) guestVM(server *zvmtest.Server, name string) (*zvmtest.VM, error) {
	var found []*zvmtest.VM
	for _, vm := range server.VMs() {
		if vm.Name() == name {
			found = append(found, vm)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && s.inventory == "":
		return server.AddVM(name, server.VPGs()...), nil
	}
	return nil, fmt.Errorf("--guest %s: the inventory has %d VMs of that name", name, len(found))
}

// trace prints one request that has ended. Several may end at a time.
func (a *app) trace(r zvmtest.Request) {
	status := strconv.Itoa(r.Status)
	if r.Status == 0 {
		status = "cut"
	}
	a.say("%s %s %s %s", r.Time.Format("15:04:05.000"), status, r.Method, r.Path)
}

// shellWord quotes a value for a POSIX shell where it needs to be.
func shellWord(value string) string {
	if value != "" && strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+") == "" {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
