package install

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const tomlTable = "mcp_servers"

// putTOML puts the server into Codex' settings as a table of its own at their end, or in place of the one that is there. No
// other line is touched. What comes out has to mean what went in and the server, else nothing is written.
func putTOML(path string, data []byte, s Server) ([]byte, error) {
	text, marked := bytes.CutPrefix(data, bom)
	before, err := readTOML(path, text)
	if err != nil {
		return nil, err
	}
	servers, ok := before[tomlTable].(map[string]any)
	if before[tomlTable] != nil && !ok {
		return nil, &DamagedError{Path: path, Reason: tomlTable + " is not a table"}
	}
	held, ok := servers[ServerName].(map[string]any)
	if servers[ServerName] != nil && !ok {
		return nil, &DamagedError{Path: path, Reason: tomlTable + "." + ServerName + " is not a table"}
	}
	want := tomlServer(held, s)
	if reflect.DeepEqual(held, want) {
		return data, nil
	}
	block, err := tomlBlock(want)
	if err != nil {
		return nil, err
	}
	newline := "\n"
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		newline = "\r\n"
		block = strings.ReplaceAll(block, "\n", newline)
	}
	after := placeBlock(string(text), block, newline, held != nil)

	expected := maps.Clone(before)
	if expected == nil {
		expected = map[string]any{}
	}
	servers = maps.Clone(servers)
	if servers == nil {
		servers = map[string]any{}
	}
	servers[ServerName], expected[tomlTable] = want, servers
	got, err := readTOML(path, []byte(after))
	if err != nil || !reflect.DeepEqual(got, expected) {
		return nil, &DamagedError{Path: path, Reason: "its MCP servers stand in it in a way that is not edited here; put this in by hand:\n" + block}
	}
	if marked {
		after = string(bom) + after
	}
	return []byte(after), nil
}

func readTOML(path string, text []byte) (map[string]any, error) {
	var tree map[string]any
	err := toml.Unmarshal(text, &tree)
	var damaged *toml.DecodeError
	if errors.As(err, &damaged) {
		line, column := damaged.Position()
		return nil, &DamagedError{path, line, column, damaged.Error()}
	}
	if err != nil {
		return nil, &DamagedError{Path: path, Reason: err.Error()}
	}
	return tree, nil
}

// tomlServer returns the server's table, with what somebody else has put into the one that is there.
func tomlServer(held map[string]any, s Server) map[string]any {
	table := maps.Clone(held)
	if table == nil {
		table = map[string]any{}
	}
	env := map[string]any{}
	if old, ok := held["env"].(map[string]any); ok {
		maps.Copy(env, old)
	}
	var forwarded []any
	if old, ok := held["env_vars"].([]any); ok {
		forwarded = slices.Clone(old)
	}
	for _, name := range s.Managed {
		delete(env, name)
		forwarded = slices.DeleteFunc(forwarded, func(v any) bool { return v == name })
	}
	for _, v := range s.Env {
		if v.Refers {
			forwarded = append(forwarded, v.Name)
		} else {
			env[v.Name] = v.Value
		}
	}
	args := make([]any, len(s.Args))
	for i, arg := range s.Args {
		args[i] = arg
	}
	table["command"], table["args"], table["env"] = s.Command, args, env
	delete(table, "env_vars")
	if len(forwarded) > 0 {
		table["env_vars"] = forwarded
	}
	return table
}

func tomlBlock(table map[string]any) (string, error) {
	text, err := toml.Marshal(map[string]any{tomlTable: map[string]any{ServerName: table}})
	return strings.TrimPrefix(string(text), "["+tomlTable+"]\n"), err
}

// placeBlock puts the block at the end, or in place of the lines of the table that is there and of the tables below it.
func placeBlock(text, block, newline string, replaces bool) string {
	if !replaces {
		switch {
		case strings.TrimSpace(text) == "":
			return block
		case !strings.HasSuffix(text, "\n"):
			text += newline
		}
		return text + newline + block
	}
	var b strings.Builder
	within, placed := false, false
	loose := "" // comments behind ours, which may belong to the table that follows
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if strings.HasPrefix(bare, "[") {
			name := strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(bare)
			ours := strings.HasPrefix(name, "["+tomlTable+"."+ServerName+"]") || strings.HasPrefix(name, "["+tomlTable+"."+ServerName+".")
			switch {
			case ours && !placed:
				b.WriteString(block)
				placed = true
			case within && !ours:
				b.WriteString(newline + strings.TrimLeft(loose, "\r\n"))
				loose = ""
			}
			within = ours
		}
		switch {
		case !within:
			b.WriteString(line)
		case bare == "" || strings.HasPrefix(bare, "#"):
			loose += line
		default:
			loose = ""
		}
	}
	return b.String() + strings.TrimLeft(loose, "\r\n")
}
