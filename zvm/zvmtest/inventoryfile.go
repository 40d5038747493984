package zvmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// WithInventory reads what the server has from a JSON document:
//
//	{
//	  "site":    "Production",
//	  "peers":   ["Recovery"],
//	  "users":   [{"name": "ann", "password": "…", "role": "viewer"}],
//	  "clients": [{"id": "agent", "secret": "…", "role": "admin"}],
//	  "vpgs": [
//	    {"name": "web-local", "history": "24h"},
//	    {"name": "web-remote", "recoverySite": "Recovery", "status": 1, "subStatus": 23}
//	  ],
//	  "vms": [
//	    {"name": "web01", "vpgs": ["web-local", "web-remote"], "ips": ["192.0.2.7"],
//	     "files": {"/etc/motd": "hello\n"}, "dirs": {"/srv": "./srv"},
//	     "noise": {"/var/db.bin": 4294967296}, "many": {"/var/spool": 200000}}
//	  ]
//	}
//
// Every member may be left out; an unknown or a repeated one is an error of
// New, as is a VPG or a site that the document does not have.
//
//   - site names the local site, as WithSiteName does; peers are paired sites.
//   - The roles of users and clients are "admin", "viewer" and "flr-operator".
//   - A VPG has the members of VPGConfig: protectedSite and recoverySite by
//     name, status and subStatus as numbers, history, journalAge and
//     checkpointInterval as durations such as "90m". Its name is unique here.
//   - A VM is in the VPGs that it names. "flr": false switches its file-level
//     recovery off. Its partitions are those of "layout", which is "linux",
//     "numbered", "windows", "windows-volumes" or "many-disks", or those of
//     "partitions", a list of {"root", "mountPoint", "fs"} with "ext4",
//     "ext3", "xfs" or "ntfs"; LinuxLayout without both.
//   - files are texts by guest path; dirs are directories of this host by
//     guest path, read relative to dir and shown live as Guest.MountDir does.
//   - noise are sizes in bytes by guest path, of files whose bytes are made as
//     they are read (Guest.WriteSparse); many are numbers of small files by
//     the guest path of their folder (Guest.WriteManyFiles).
//
// The document is read to its end when the option is applied. VMs and VPGs
// give the handles to what it made.
func WithInventory(document io.Reader, dir string) Option {
	return func(c *config) error {
		inv, err := readInventory(document)
		if err == nil {
			err = inv.applyTo(c)
		}
		if err != nil {
			return fmt.Errorf("WithInventory: %w", err)
		}
		inv.dir = dir
		c.inventories = append(c.inventories, inv)
		return nil
	}
}

// inventory is the document of WithInventory.
type inventory struct {
	dir string

	Site    string
	Peers   []string
	Users   []inventoryAccount
	Clients []inventoryAccount
	VPGs    []inventoryVPG
	VMs     []inventoryVM
}

type inventoryAccount struct {
	Name, Password string // of a user
	ID, Secret     string // of a client
	Role           string
}

type inventoryVPG struct {
	Name                                    string
	ProtectedSite, RecoverySite             string
	Status, SubStatus                       int
	History, JournalAge, CheckpointInterval inventoryDuration
}

type inventoryVM struct {
	Name       string
	VPGs       []string
	IPs        []string
	FLR        *bool
	Layout     string
	Partitions []inventoryPartition
	Files      map[string]string
	Dirs       map[string]string
	Noise      map[string]int64
	Many       map[string]int
}

type inventoryPartition struct {
	Root, MountPoint, FS string
}

// mostMany bounds the memory of a folder that a document asks for.
const mostMany = 1_000_000

// inventoryDuration is a duration as time.ParseDuration reads it.
type inventoryDuration time.Duration

func (d *inventoryDuration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = inventoryDuration(parsed)
	return err
}

func readInventory(document io.Reader) (*inventory, error) {
	text, err := io.ReadAll(io.LimitReader(document, maxBody+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxBody {
		return nil, errors.New("the document is too long")
	}
	if err := checkRepeats(json.NewDecoder(bytes.NewReader(text))); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	inv := &inventory{}
	if err := decoder.Decode(inv); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the document")
	}
	return inv, nil
}

// checkRepeats reads one value and refuses a member that comes twice in an
// object, of which package json would take the last.
func checkRepeats(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	switch token {
	case json.Delim('{'):
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			if seen[name] {
				return fmt.Errorf("member %q comes twice", name)
			}
			seen[name] = true
			if err := checkRepeats(d); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for d.More() {
			if err := checkRepeats(d); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token()
	return err
}

// applyTo sets what belongs to the options.
func (inv *inventory) applyTo(c *config) error {
	if inv.Site != "" {
		c.siteName = inv.Site
	}
	for _, user := range inv.Users {
		if err := WithUser(user.Name, user.Password, roleNamed(user.Role))(c); err != nil {
			return err
		}
	}
	for _, client := range inv.Clients {
		if err := WithServiceClient(client.ID, client.Secret, roleNamed(client.Role))(c); err != nil {
			return err
		}
	}
	return nil
}

func roleNamed(name string) Role {
	return map[string]Role{"admin": Admin, "viewer": Viewer, "flr-operator": FLROperator}[name]
}

// stock makes what the documents describe, before anybody can look.
func (s *Server) stock() error {
	for _, inv := range s.cfg.inventories {
		if err := s.addInventory(inv); err != nil {
			return fmt.Errorf("WithInventory: %w", err)
		}
	}
	if len(s.problems) > 0 {
		return fmt.Errorf("WithInventory: %s", strings.Join(s.problems, "; "))
	}
	return nil
}

func (s *Server) addInventory(inv *inventory) error {
	sites := map[string]Site{"": s.LocalSite(), s.local.Name: s.LocalSite()}
	for _, name := range inv.Peers {
		sites[name] = s.AddPeerSite(name)
	}
	vpgs := map[string]*VPG{}
	for _, entry := range inv.VPGs {
		cfg, err := entry.config(sites)
		if err != nil {
			return fmt.Errorf("VPG %q: %w", entry.Name, err)
		}
		if entry.Name == "" || vpgs[entry.Name] != nil {
			return fmt.Errorf("VPG %q: a VPG needs a name of its own", entry.Name)
		}
		vpgs[entry.Name] = s.AddVPG(entry.Name, cfg)
	}
	for _, entry := range inv.VMs {
		if err := s.addInventoryVM(entry, vpgs, inv.dir); err != nil {
			return fmt.Errorf("VM %q: %w", entry.Name, err)
		}
	}
	return nil
}

func (entry inventoryVPG) config(sites map[string]Site) (VPGConfig, error) {
	cfg := VPGConfig{
		Status: entry.Status, SubStatus: entry.SubStatus,
		History:            time.Duration(entry.History),
		JournalAge:         time.Duration(entry.JournalAge),
		CheckpointInterval: time.Duration(entry.CheckpointInterval),
	}
	if cfg.History < 0 {
		return cfg, errors.New("its history is negative")
	}
	if cfg.CheckpointInterval > 0 && cfg.CheckpointInterval < time.Second {
		return cfg, errors.New("its checkpointInterval is less than a second")
	}
	for _, name := range []string{entry.ProtectedSite, entry.RecoverySite} {
		if _, found := sites[name]; !found {
			return cfg, fmt.Errorf("there is no site %q", name)
		}
	}
	cfg.ProtectedSite, cfg.RecoverySite = sites[entry.ProtectedSite], sites[entry.RecoverySite]
	return cfg, nil
}

func (s *Server) addInventoryVM(entry inventoryVM, known map[string]*VPG, dir string) error {
	if entry.Name == "" {
		return errors.New("a VM needs a name")
	}
	var vpgs []*VPG
	for _, name := range entry.VPGs {
		if known[name] == nil {
			return fmt.Errorf("there is no VPG %q", name)
		}
		vpgs = append(vpgs, known[name])
	}
	layout, err := entry.layout()
	if err != nil {
		return err
	}
	vm := s.AddVM(entry.Name, vpgs...)
	vm.SetIPs(entry.IPs...)
	vm.SetFLREnabled(entry.FLR == nil || *entry.FLR)
	if layout != nil {
		if err := vm.guest.SetLayout(layout); err != nil {
			return err
		}
	}
	return entry.fill(vm.guest, dir)
}

func (entry inventoryVM) fill(g *Guest, dir string) error {
	for _, path := range slices.Sorted(maps.Keys(entry.Files)) {
		if err := g.WriteFile(path, []byte(entry.Files[path])); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(entry.Noise)) {
		if err := g.WriteSparse(path, entry.Noise[path], 1); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(entry.Many)) {
		if entry.Many[path] > mostMany {
			return fmt.Errorf("many %s: more than %d files", path, mostMany)
		}
		if err := g.WriteManyFiles(path, entry.Many[path]); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(entry.Dirs)) {
		source := entry.Dirs[path]
		if !filepath.IsAbs(source) {
			source = filepath.Join(dir, source)
		}
		if err := g.MountDir(path, source); err != nil {
			return err
		}
	}
	return nil
}

// layout is nil for a guest as it is at first.
func (entry inventoryVM) layout() (Layout, error) {
	if len(entry.Partitions) == 0 {
		named := map[string]Layout{
			"": nil, "linux": LinuxLayout(), "numbered": NumberedLayout(), "windows": WindowsLayout(),
			"windows-volumes": WindowsVolumeLayout(), "many-disks": ManyDisksLayout(),
		}
		layout, found := named[entry.Layout]
		if !found {
			return nil, fmt.Errorf("there is no layout %q", entry.Layout)
		}
		return layout, nil
	}
	if entry.Layout != "" {
		return nil, errors.New("layout and partitions exclude each other")
	}
	kinds := map[string]FS{"ext4": Ext4, "ext3": Ext3, "xfs": XFS, "ntfs": NTFS}
	var layout Layout
	for _, p := range entry.Partitions {
		kind, found := kinds[p.FS]
		if !found {
			return nil, fmt.Errorf("there is no file system %q", p.FS)
		}
		layout = append(layout, Partition{Root: p.Root, MountPoint: p.MountPoint, FS: kind})
	}
	return layout, nil
}
