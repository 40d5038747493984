package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
)

// The bearer token has no flag: a command line can be read by others.
var (
	setMCPToken     = setting{"", "ZERTO_REWIND_MCP_TOKEN", ""}
	setMCPTokenFile = setting{"", "ZERTO_REWIND_MCP_TOKEN_FILE", ""}
)

func (a *app) mcp() *cobra.Command {
	var recoverDir, address string
	c := a.command(cobra.Command{
		Use:   "mcp [--recover-dir DIR] [--http ADDRESS]",
		Short: "Offer the rewind loop to an agent as an MCP server on stdin and stdout",
		Long: `Mcp serves the Model Context Protocol over stdin and stdout until stdin ends. Files are written below --recover-dir
alone, which is the working directory if it is not given.

With --http it serves the same over HTTP until it is interrupted, for clients of both protocol eras on one URL, which it
prints. Every request has to bear the token of $ZERTO_REWIND_MCP_TOKEN, or of the file $ZERTO_REWIND_MCP_TOKEN_FILE, with
32 characters at least. It listens on loopback addresses alone: the token would be in clear anywhere else.`,
		Args: exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		options, err := a.mcpOptions(recoverDir)
		if err != nil {
			return err
		}
		session, _, err := a.session()
		if err != nil {
			return err
		}
		if address == "" {
			return mcpadapter.Serve(ctx, session, a.io.In, a.io.Out, options...)
		}
		server, err := mcpadapter.NewServer(session, options...)
		if err != nil {
			return err
		}
		r := a.reader()
		token, given := r.secret(setMCPToken, setMCPTokenFile, func(warning string) { a.log.Warn(warning) })
		if !given {
			r.missing = append(r.missing, setMCPToken.variable+" or "+setMCPTokenFile.variable)
		}
		if err := r.err(); err != nil {
			return err
		}
		handler, err := mcpadapter.Handler(server, token, a.log)
		if err != nil {
			return &settingsError{fmt.Errorf("%s: %w", setMCPToken.variable, err)}
		}
		return a.serveHTTP(ctx, address, handler)
	})
	a.recoverySiteFlag(c)
	c.Flags().StringVar(&recoverDir, "recover-dir", ".", "existing `folder` below which recovered files are written")
	c.Flags().StringVar(&address, "http", "", "loopback `address` to serve HTTP on; port 0 means a free one")
	c.AddCommand(a.mcpInstall())
	return c
}

func (a *app) mcpOptions(recoverDir string) ([]mcpadapter.Option, error) {
	if _, err := a.rules(); err != nil {
		return nil, err // now, where somebody reads it, and not at the first call
	}
	options := []mcpadapter.Option{
		mcpadapter.WithCatalogSource(a.catalogue), mcpadapter.WithAddMutating(a.addMutating), mcpadapter.WithAnswers(a.answeredMCP),
		mcpadapter.WithLogger(a.log), mcpadapter.WithVersion(readBuild().Version), mcpadapter.WithRecoverDir(recoverDir),
	}
	if _, err := a.reader().stateDir(); err == nil {
		options = append(options, mcpadapter.WithGuardLister(a.lateGuards), mcpadapter.WithGuarded(a.noteGuard), mcpadapter.WithFreeze(a.frozen))
	}
	if agent := a.reader().text(setAgent); agent != "" {
		options = append(options, mcpadapter.WithAgent(agent))
	}
	return options, nil
}

// closingLimit is how long the last requests may take when the server ends.
const closingLimit = 10 * time.Second

func (a *app) serveHTTP(ctx context.Context, address string, handler http.Handler) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return &usageError{fmt.Errorf("--http: %w", err)}
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return &usageError{errors.New("--http: only loopback addresses are served, such as 127.0.0.1:8765; put what speaks TLS before it to reach others")}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := a.result(struct {
		URL string `json:"url"`
	}{"http://" + listener.Addr().String()}, func(t *table) { t.row("http://" + listener.Addr().String()) }); err != nil {
		_ = server.Close()
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingLimit)
	defer cancel()
	if server.Shutdown(closing) != nil {
		_ = server.Close() // streams of listening clients do not end by themselves
	}
	return context.Cause(ctx)
}
