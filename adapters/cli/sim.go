package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// simulation is how a simulated ZVM is set up.
type simulation struct {
	listen     string
	guests     []string // VM=DIR
	tokenTTL   time.Duration
	insertTime time.Duration
	trace      bool
}

// simulated tells how to reach a simulated ZVM.
type simulated struct {
	URL      string `json:"url"`
	Username string `json:"username"`
	Password string `json:"password"` // of the simulation, good for nothing else
	CAFile   string `json:"caFile"`
}

func (a *app) sim() *cobra.Command {
	s := simulation{listen: "127.0.0.1:0", tokenTTL: time.Minute, insertTime: 3 * time.Second}
	c := a.command(cobra.Command{
		Use:   "sim [--listen ADDRESS] [--guest VM=DIR]",
		Short: "Run a simulated ZVM to try the other commands on",
		Long: `Sim runs a simulated ZVM with one VM, web01, in two VPGs: web-local, whose files come back here, and web-remote, which
replicates to another site. It prints the settings that lead to it as one line for a shell, and serves until it is
interrupted. With --guest, the VM's disk shows a folder of this computer: change a file there, and recover it as it was
at a tagged checkpoint.`,
		Args: cobra.NoArgs,
	}, 0, func(ctx context.Context, _ []string) error { return a.simulate(ctx, s) })
	flags := c.Flags()
	flags.StringVar(&s.listen, "listen", s.listen, "loopback `address` to listen on; port 0 means a free one")
	flags.StringArrayVar(&s.guests, "guest", nil, "show a folder as the disk of a VM, as `VM=DIR`; may be repeated")
	flags.DurationVar(&s.tokenTTL, "token-ttl", s.tokenTTL, "life of an access `token`")
	flags.DurationVar(&s.insertTime, "insert-time", s.insertTime, "how long the insert of a tagged checkpoint takes")
	flags.BoolVar(&s.trace, "trace", false, "one line per request on stderr")
	return c
}

func (a *app) simulate(ctx context.Context, s simulation) (err error) {
	server, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	caFile, err := writeCAFile(server.CAPEM())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(caFile)) }()

	reach := simulated{server.URL(), server.Username(), server.Password(), caFile}
	if a.json {
		err = a.document(reach)
	} else {
		_, err = fmt.Fprintf(a.io.Out, "export ZVM_URL=%s ZVM_USERNAME=%s ZVM_PASSWORD=%s ZVM_CA_FILE=%s\n",
			shellWord(reach.URL), shellWord(reach.Username), shellWord(reach.Password), shellWord(reach.CAFile))
	}
	if err != nil {
		return err
	}
	if s.trace {
		a.trace(ctx, server)
	} else {
		<-ctx.Done()
	}
	return nil
}

func (s simulation) start(ctx context.Context) (*zvmtest.Server, error) {
	host, _, err := net.SplitHostPort(s.listen)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--listen: %w", err)}
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &usageError{fmt.Errorf("--listen %s: a simulation is for this computer alone: give a loopback address", s.listen)}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, err
	}
	server, err := zvmtest.New( //nolint:contextcheck // a simulation is ended by its Close, not by a context
		zvmtest.WithListener(listener), zvmtest.WithTokenTTL(s.tokenTTL), zvmtest.WithInsertTime(s.insertTime),
		zvmtest.WithMountTime(time.Second), zvmtest.WithUnmountTime(300*time.Millisecond),
	)
	if err != nil {
		return nil, errors.Join(&usageError{err}, listener.Close())
	}
	if err := s.populate(server); err != nil {
		server.Close()
		return nil, &usageError{err}
	}
	return server, nil
}

// populate adds web01, or the VMs of --guest beside it, each in a local VPG and one to another site.
func (s simulation) populate(server *zvmtest.Server) error {
	local := server.AddVPG("web-local", zvmtest.VPGConfig{})
	remote := server.AddVPG("web-remote", zvmtest.VPGConfig{RecoverySite: server.AddPeerSite("Recovery")})
	web01 := server.AddVM("web01", local, remote)
	filled := map[string]bool{}
	for _, pair := range s.guests {
		name, dir, ok := strings.Cut(pair, "=")
		if !ok || name == "" || dir == "" || filled[name] {
			return fmt.Errorf("--guest %q: want VM=DIR, once for each VM", pair)
		}
		filled[name] = true
		vm := web01
		if name != vm.Name() {
			vm = server.AddVM(name, local, remote)
		}
		if err := vm.Guest().MountDir("/", dir); err != nil {
			return fmt.Errorf("--guest %s: %w", name, err)
		}
	}
	if filled[web01.Name()] {
		return nil
	}
	return web01.Guest().WriteFile("/etc/nginx/nginx.conf", []byte("events {}\nhttp {\n    server { listen 80; }\n}\n"))
}

func writeCAFile(pem []byte) (string, error) {
	f, err := os.CreateTemp("", "zerto-rewind-sim-*.pem")
	if err != nil {
		return "", err
	}
	_, err = f.Write(pem)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// trace prints the requests as they end, until ctx does. The simulation keeps a list of them and does not call back.
func (a *app) trace(ctx context.Context, server *zvmtest.Server) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	printed := 0
	for {
		all := server.Requests()
		for ; printed < len(all) && (all[printed].Status != 0 || ctx.Err() != nil); printed++ {
			r := all[printed]
			a.say("%s %d %s %s", r.Time.Format("15:04:05.000"), r.Status, r.Method, r.Path)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// shellWord quotes a value for a POSIX shell where it needs to be.
func shellWord(value string) string {
	if value != "" && strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+") == "" {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
