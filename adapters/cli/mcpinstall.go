package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

// fileSettings are those whose values are paths: a host starts the server in a folder of its own choice.
var fileSettings = []setting{setPasswordFile, setClientSecretFile, setCAFile, setStateDir, setCatalog}

func (a *app) mcpInstall() *cobra.Command {
	var (
		w     where
		write bool
	)
	c := a.command(cobra.Command{
		Use:   "install HOST [--scope user|project] [--write]",
		Short: "Print, or write, what makes an agent host start the MCP server",
		Long: `Install prints the settings that make an agent host start this MCP server, or puts them into the host's file with
--write, where everything else stays as it is. HOST is ` + strings.Join(install.MCPHosts(), ", ") + `.

The settings take over how the ZVM is reached now, from flags and environment. A secret is never written: the host is told
to take its variable from its own environment, or the path of the file that holds it is written.`,
		Args: exactly("HOST"),
	}, 0, func(_ context.Context, args []string) error {
		host, scope := args[0], install.Scope(w.scope)
		place, err := a.place()
		if err != nil {
			return err
		}
		server, err := a.server(host, w.binary)
		if err != nil {
			return err
		}
		settings, err := install.MCPSettings(host, scope, server, place)
		if err != nil {
			return &usageError{err}
		}
		if write || w.dryRun {
			change, err := install.PlanMCP(host, scope, server, place)
			return a.applied(host, scope, w.dryRun, change, err)
		}
		if a.json {
			return a.document(struct {
				Host     string        `json:"host"`
				Scope    install.Scope `json:"scope"`
				Settings string        `json:"settings"`
			}{host, scope, string(settings)})
		}
		return a.lines(string(settings))
	})
	w.register(c, true)
	c.Flags().BoolVar(&write, "write", false, "write the host's file instead of printing")
	return c
}

// server describes the MCP server as this command would run it.
func (a *app) server(host, binary string) (install.Server, error) {
	program, err := a.program(binary)
	if err != nil {
		return install.Server{}, err
	}
	s := install.Server{Command: program, Args: []string{"mcp"}}
	r := a.reader()
	for _, set := range append(texts(), choices()...) {
		s.Managed = append(s.Managed, set.variable)
	}
	s.Managed = append(s.Managed, setPassword.variable, setClientSecret.variable)
	add := func(set setting, value string) {
		s.Env = append(s.Env, install.Variable{Name: set.variable, Value: value})
	}
	refer := func(set setting) { s.Env = append(s.Env, install.Variable{Name: set.variable, Refers: true}) }
	for _, set := range texts() {
		switch value := r.text(set); {
		case set == setAgent && value == "":
			add(set, install.Agent(host))
		case set == setURL && value == "":
			refer(set)
		case value == "":
		case slices.Contains(fileSettings, set):
			path, err := filepath.Abs(value)
			if err != nil {
				return s, fmt.Errorf("%s: %w", set.variable, err)
			}
			add(set, path)
		default:
			add(set, value)
		}
	}
	for _, set := range choices() {
		if r.enabled(set) {
			add(set, "1")
		}
	}
	user, client := r.text(setUsername) != "", r.text(setClientSecret) != "" || r.text(setClientSecretFile) != ""
	switch {
	case client && r.text(setClientSecretFile) == "":
		refer(setClientSecret)
	case !client && !user:
		refer(setUsername)
		fallthrough
	case !client:
		if r.text(setPasswordFile) == "" {
			refer(setPassword)
		}
	}
	return s, r.err()
}
