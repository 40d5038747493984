package hookadapter_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
)

var (
	randomSeed  = flag.Uint64("random-seed", 7, "of the random payloads")
	randomCount = flag.Int("random-count", 10_000, "how many random payloads are judged")
)

// TestLaw6NoRandomPayloadRunsUnguarded feeds payloads of every host, whole, spoilt and made up, to hooks installed for
// the same host, for another and for any. Whatever the hook answers, no host may run a call that its own reading of the
// payload does not make a harmless one: nothing is guarded, approved or ruled here.
func TestLaw6NoRandomPayloadRunsUnguarded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(*randomSeed, 1))
	known := builtIn(t)
	entries := slices.Collect(known.Entries())
	var ranCount, askedCount, blockedCount int
	for range *randomCount {
		e, stdin, mode, unmarked := randomPayload(t, r, entries)
		c := hookadapter.Config{Gate: noGuards, Host: pick(r, e.host, e.host, "", "auto", pick(r, hookadapter.Hosts()...))}
		if unmarked {
			c.Host = e.host // which nothing but the installation tells any more
		}
		got := run(t.Context(), bytes.NewReader(stdin), c)
		expectForm(t, e.file(), got)
		switch e.reads(got, mode) {
		case blocked:
			blockedCount++
		case asked:
			askedCount++
			if !e.asks {
				t.Errorf("%s, installed for %q: asks, for %q", e.file(), c.Host, stdin)
			}
		case proceeds:
			ranCount++
			if call, ok := e.call(looselyRead(stdin)); !ok || !harmless(known, call) {
				t.Errorf("%s, installed for %q: %q runs because of %v", e.file(), c.Host, stdin, got)
			}
		}
	}
	// A test in which nothing runs, or nothing is blocked, shows nothing.
	if least := *randomCount / 50; ranCount < least || askedCount < least || blockedCount < least {
		t.Errorf("%d ran, %d were asked about, %d were blocked: too few of one kind to mean anything", ranCount, askedCount, blockedCount)
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// words are pieces of names, command lines and arguments, so that random calls meet the catalogue's entries often.
var words = []string{
	"ssh", "web01", "db01", "$HOST", "rm", "-rf", "/var/www", "&&", "|", ";", "ls", "cat", "systemctl", "status", "restart", "nginx",
	"'", "\"", "`", "$(", ")", ">", "\n", "sudo", "bash", "-c", "-J", "root@web01", "kubectl", "delete", "get", "ansible", "all", "qm",
	"stop", "100", "zerto-rewind", "protect", "--action", "x", "Invoke-Command", "-ComputerName", "{", "}", "é", "\u202e", "#", "-", "_",
}

func randomSample(t *testing.T, r *rand.Rand, entries []*catalog.Entry) sample {
	t.Helper()
	s := sample{mode: pick(r, "default", "default", "plan", "acceptEdits", "auto", "dontAsk", "bypassPermissions", "", "Default")}
	switch r.IntN(6) {
	case 0:
		s.command = strings.Join(some(r, 7), pick(r, " ", " ", ""))
	case 1:
		s.command = pick(r, "ls -l", "ssh web01 'rm -rf /'", "ssh web01 uptime", "git status", "ansible all -m ping", "ssh $HOST reboot", "kubectl get pods")
	case 2:
		s.server, s.tool = strings.Join(some(r, 2), "_"), strings.Join(some(r, 2), pick(r, "_", "__", "-"))
	default:
		e := pick(r, entries...)
		s.server, s.tool = e.Server, e.Tool
		if len(e.Aliases) > 0 && r.IntN(2) == 0 {
			s.server = pick(r, e.Aliases...)
		}
	}
	s.args = randomObject(r, 2)
	for _, e := range entries {
		if e.Tool == s.tool && e.Server == s.server {
			for _, name := range slices.Concat(e.Target, e.Container, e.Command) {
				s.args[name] = randomValue(r, 1)
			}
		}
	}
	return s
}

func some(r *rand.Rand, most int) []string {
	list := make([]string, 1+r.IntN(most))
	for i := range list {
		list[i] = pick(r, words...)
	}
	return list
}

func randomObject(r *rand.Rand, depth int) map[string]any {
	object := map[string]any{}
	for range r.IntN(4) {
		name := pick(r, "host", "hostname", "name", "vmid", "vm_id", "server", "check", "dry_run", "action", "command", "session", "Host", "file_path")
		object[name] = randomValue(r, depth)
	}
	return object
}

func randomValue(r *rand.Rand, depth int) any {
	switch r.IntN(8) {
	case 0:
		return r.IntN(200)
	case 1:
		return r.IntN(2) == 0
	case 2:
		return nil
	case 3:
		if depth > 0 {
			return []any{randomValue(r, depth-1), randomValue(r, depth-1)}
		}
	case 4:
		if depth > 0 {
			return randomObject(r, depth-1)
		}
	}
	return strings.Join(some(r, 3), pick(r, " ", ",", ""))
}

// randomPayload returns what a host sends, or what may have become of it, the permission mode the host is in, and whether
// what the host is known by may be lost.
func randomPayload(t *testing.T, r *rand.Rand, entries []*catalog.Entry) (e event, text []byte, mode string, unmarked bool) {
	t.Helper()
	for {
		e = pick(r, eachEvent()...)
		s := randomSample(t, r, entries)
		p := e.payload(s)
		if p == nil {
			continue
		}
		mode = s.permissionMode()
		switch r.IntN(8) {
		case 0:
			p = with(p, map[string]any{pick(r, slices.Sorted(maps.Keys(p))...): randomValue(r, 2)})
		case 1:
			p = with(p, randomObject(r, 3))
		case 2:
			p = with(p, map[string]any{"tool_input": pick[any](r, nil, "{}", `{"host":"web01"}`, []any{}, 7, "x")})
		}
		if changed, ok := p["permission_mode"]; ok {
			mode, _ = changed.(string)
		}
		text = []byte(asJSON(t, p))
		switch r.IntN(8) {
		case 0:
			text = spoilt(r, text)
			left := looselyRead(text)
			unmarked = !slices.Equal(slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(p)))
			if changed, ok := left["permission_mode"]; ok {
				mode, _ = changed.(string)
			}
		case 1:
			text = append([]byte("\xef\xbb\xbf"), text...)
		case 2:
			text = []byte(utf16Text(pick[binary.ByteOrder](r, binary.LittleEndian, binary.BigEndian), string(text)))
		}
		return e, text, mode, unmarked
	}
}

func spoilt(r *rand.Rand, text []byte) []byte {
	at := r.IntN(len(text))
	switch r.IntN(5) {
	case 0:
		return text[:at]
	case 1:
		text[at] ^= 1 << r.IntN(8)
	case 2:
		return slices.Insert(text, at, pick(r, []byte(`"`), []byte(`{`), []byte(`,`), []byte("\x00"), []byte(`\ud83d`))...)
	case 3:
		return slices.Delete(text, at, min(len(text), at+1+r.IntN(8)))
	case 4:
		return append(text, text[at:]...)
	}
	return text
}

func builtIn(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// FuzzInput checks that no bytes make the host that they seem to come from run a call that is not harmless.
func FuzzInput(f *testing.F) {
	for _, e := range eachEvent() {
		for _, samples := range verdicts() {
			for _, s := range samples {
				if p := e.payload(s); p != nil {
					f.Add([]byte(asJSON(f, p)), e.host)
				}
			}
		}
	}
	f.Add([]byte(`{"tool_name":"Read","tool_name":"Bash"}`), "claude")
	for _, command := range []string{"npx ProxmoxMCP-Plus", "-y ProxmoxMCP-Plus", "npx -y x\\\\ProxmoxMCP-Plus@1 .2", "uvx ProxmoxMCP-Plus", "npx\u00a0-y ProxmoxMCP-Plus"} {
		f.Add([]byte(`{"cursor_version":"3","hook_event_name":"beforeMCPExecution","tool_name":"MCP:get_vms","tool_input":"{}","command":"`+command+`"}`), "")
	}
	f.Add([]byte(`{"hookName":"PreToolUse","preToolUse":{"toolName":"esxi__listVMs","parameters":{}}}`), "")
	f.Add([]byte(payload(f, map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "zerto-rewind protect web01 --action"}})), "")
	f.Add([]byte(utf16Text(binary.LittleEndian, payload(f, nil))), "")
	known := builtIn(f)
	f.Fuzz(func(t *testing.T, stdin []byte, told string) {
		c := hookadapter.Config{Gate: noGuards, Host: told}
		r := run(t.Context(), bytes.NewReader(stdin), c)
		expectForm(t, "answer", r)
		explained := hookadapter.Explain(t.Context(), bytes.NewReader(stdin), c)
		if (ran{explained.ExitCode, explained.Stdout, explained.Stderr}) != r {
			t.Errorf("%q is explained as %+v and answered by %v", stdin, explained, r)
		}
		if explained.Host == "" && r.exitCode != 2 {
			t.Errorf("%q comes from no known host, and is answered by %v", stdin, r)
		}
		p := looselyRead(stdin)
		mode, _ := p["permission_mode"].(string)
		for _, e := range eachEvent() {
			if e.host != explained.Host || explained.Event != e.name {
				continue
			}
			if call, ok := e.call(p); e.reads(r, mode) == proceeds && (!ok || !harmless(known, call)) {
				t.Errorf("%s runs %q because of %v", e.file(), stdin, r)
			}
		}
	})
}

// looselyRead reads an input as JavaScript does: of equal names the last one counts, and nothing is refused.
func looselyRead(stdin []byte) map[string]any {
	for mark, order := range map[string]binary.ByteOrder{"\xff\xfe": binary.LittleEndian, "\xfe\xff": binary.BigEndian} {
		if bytes.HasPrefix(stdin, []byte(mark)) {
			units := make([]uint16, len(stdin)/2)
			_ = binary.Read(bytes.NewReader(stdin), order, units)
			stdin = []byte(string(utf16.Decode(units)))
		}
	}
	var p map[string]any
	_ = json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(stdin, []byte("\uFEFF")))).Decode(&p)
	return p
}

// harmless reports whether a call is one that needs neither guard nor human, by the catalogue and by what its command
// line does.
func harmless(known *catalog.Catalog, call called) bool {
	args, _ := call.args.(map[string]any)
	if text, ok := call.args.(string); ok {
		_ = json.Unmarshal([]byte(text), &args)
	}
	name := call.name
	if call.text != "" {
		name, _ = known.ParseToolName(call.text)
	}
	r := known.ClassifyCall(name, args)
	if r.Entry != nil && r.Entry.BuiltIn {
		if line, ok := r.Entry.CommandLine(args); ok {
			read := shell.Reader{}.ReadCommand(r.Entry.Tool, line)
			return read.Safe() && read.TargetProblem == ""
		}
	}
	return r.Safe()
}
