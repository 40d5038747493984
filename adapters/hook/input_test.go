package hookadapter_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
)

func utf16Text(order binary.ByteOrder, text string) string {
	var b bytes.Buffer
	for _, unit := range append([]uint16{0xFEFF}, utf16.Encode([]rune(text))...) {
		_ = binary.Write(&b, order, unit)
	}
	return b.String()
}

func TestSpellingsOfOneInput(t *testing.T) {
	t.Parallel()
	read := payload(t, map[string]any{"tool_name": "Write", "tool_input": map[string]any{"content": strings.Repeat("日本語😀", 20000)}})
	for behaviour, stdin := range map[string]io.Reader{
		"as it is":                      strings.NewReader(read),
		"with a line end":               strings.NewReader(read + "\r\n"),
		"with a byte order mark":        strings.NewReader("\uFEFF" + read),
		"in UTF-16LE":                   strings.NewReader(utf16Text(binary.LittleEndian, read)),
		"in UTF-16BE":                   strings.NewReader(utf16Text(binary.BigEndian, read)),
		"byte by byte, then held open":  heldOpen(t, payload(t, map[string]any{"tool_name": "Read"})),
		"UTF-16 byte by byte, held too": heldOpen(t, utf16Text(binary.LittleEndian, payload(t, map[string]any{"tool_name": "Read", "cwd": "/😀"}))),
		"with its arguments as text":    strings.NewReader(payload(t, map[string]any{"tool_name": "mcp__proxmox__get_vms", "tool_input": `{"node":"pve1"}`})),
	} {
		if r := run(t.Context(), stdin, hookadapter.Config{Gate: noGuards}); r != (ran{}) {
			t.Errorf("%s: %+v, want silence", behaviour, r)
		}
	}
}

func TestLaw6InputThatCannotBeReadDenies(t *testing.T) {
	t.Parallel()
	harmless := payload(t, map[string]any{"tool_name": "Read", "tool_input": map[string]any{"file_path": "/x"}})
	half := utf16Text(binary.LittleEndian, harmless)
	for behaviour, text := range map[string]string{
		"nothing":                                             "",
		"a byte order mark alone":                             "\xef\xbb\xbf",
		"half a byte order mark":                              "\xef\xbb{}",
		"a UTF-16 mark alone":                                 "\xff\xfe",
		"UTF-16 without mark":                                 half[2:],
		"UTF-16 cut in a unit":                                half[:len(half)-1],
		"UTF-16 with half a character":                        strings.Replace(half, "R\x00", "\x3d\xd8", 1),
		"a cut object":                                        harmless[:len(harmless)-1],
		"no JSON":                                             "Read",
		"a list":                                              "[" + harmless + "]",
		"null":                                                "null",
		"two values":                                          harmless + harmless,
		"text behind it":                                      harmless + " x",
		"text before it":                                      "motd " + harmless,
		"invalid UTF-8":                                       strings.Replace(harmless, "/x", "/\xff", 1),
		"Latin-1":                                             strings.Replace(harmless, "/x", "/b\xfcro", 1),
		"depth without end":                                   strings.Replace(harmless, `"/x"`, strings.Repeat("[", 20000)+strings.Repeat("]", 20000), 1),
		"a tool named twice":                                  strings.Replace(harmless, `{`, `{"tool_name":"Bash",`, 1),
		"a tool named in two cases":                           strings.Replace(harmless, `{`, `{"Tool_Name":"Bash",`, 1),
		"a name with a letter that folds":                     strings.Replace(harmless, `{`, `{"tool_u\u017fe_id":"1",`, 1),
		"arguments twice":                                     strings.Replace(harmless, `{`, `{"tool_input":{},`, 1),
		"a mode twice":                                        strings.Replace(harmless, `{`, `{"permission_mode":"plan",`, 1),
		"one argument twice":                                  strings.Replace(harmless, `"file_path"`, `"file_path":"/y","file_path"`, 1),
		"one argument in two cases":                           strings.Replace(harmless, `"file_path"`, `"File_Path":"/y","file_path"`, 1),
		"one argument twice, once escaped":                    strings.Replace(harmless, `"file_path"`, `"file\u005fpath":"/y","file_path"`, 1),
		"a name twice within an argument":                     strings.Replace(harmless, `"/x"`, `[{"a":1,"a":2}]`, 1),
		"half a character":                                    strings.Replace(harmless, "/x", `/\ud83d`, 1),
		"the other half":                                      strings.Replace(harmless, "/x", `/\ude00\ud83d`, 1),
		"arguments that are null":                             strings.Replace(harmless, `{"file_path":"/x"}`, `null`, 1),
		"arguments that are a list":                           strings.Replace(harmless, `{"file_path":"/x"}`, `[]`, 1),
		"arguments that are a number":                         strings.Replace(harmless, `{"file_path":"/x"}`, `1`, 1),
		"arguments as text that is no JSON":                   strings.Replace(harmless, `{"file_path":"/x"}`, `"rm -rf"`, 1),
		"arguments as text with a loose end":                  strings.Replace(harmless, `{"file_path":"/x"}`, `"{\"a\":1,}"`, 1),
		"arguments as text of two values":                     strings.Replace(harmless, `{"file_path":"/x"}`, `"{}{}"`, 1),
		"arguments as text, one of them twice":                strings.Replace(harmless, `{"file_path":"/x"}`, `"{\"a\":1,\"a\":2}"`, 1),
		"arguments as text, half a character":                 strings.Replace(harmless, `{"file_path":"/x"}`, `"{\"a\":\"\\ud83d\"}"`, 1),
		"arguments as text, no colon":                         strings.Replace(harmless, `{"file_path":"/x"}`, `"{\"a\" 1}"`, 1),
		"arguments as text, no comma":                         strings.Replace(harmless, `{"file_path":"/x"}`, `"{\"a\":1 \"b\":2}"`, 1),
		"arguments as text, a comma alone":                    strings.Replace(harmless, `{"file_path":"/x"}`, `"{,}"`, 1),
		"arguments as text, two commas":                       strings.Replace(harmless, `{"file_path":"/x"}`, `"{\"a\":1,,\"b\":2}"`, 1),
		"arguments as text, a number for a name":              strings.Replace(harmless, `{"file_path":"/x"}`, `"{1:2}"`, 1),
		"arguments as text, a value missing":                  strings.Replace(harmless, `{"file_path":"/x"}`, `"{\"a\":}"`, 1),
		"arguments as text, no end":                           strings.Replace(harmless, `{"file_path":"/x"}`, `"{\"a\":1"`, 1),
		"arguments as text, nothing in it":                    strings.Replace(harmless, `{"file_path":"/x"}`, `""`, 1),
		"arguments as text, half a character escaped outside": strings.Replace(harmless, `{"file_path":"/x"}`, `"{\"a\":\"\ud83d\"}"`, 1),
		"no arguments":                                        payload(t, map[string]any{"tool_name": "Read", "tool_input": nil}),
		"no tool":                                             payload(t, map[string]any{"tool_name": nil}),
		"a tool that is a number":                             payload(t, map[string]any{"tool_name": 1}),
		"no event":                                            payload(t, map[string]any{"hook_event_name": nil}),
	} {
		if text == harmless {
			t.Errorf("%s: nothing was spoilt", behaviour)
		}
		for _, host := range []string{"", "claude"} {
			expect(t, behaviour, run(t.Context(), strings.NewReader(text), hookadapter.Config{Host: host, Gate: noGuards}), "bypassPermissions", blocked)
		}
	}
	if r := run(t.Context(), strings.NewReader(harmless), hookadapter.Config{Gate: noGuards}); r != (ran{}) {
		t.Errorf("the input that was spoilt: %+v, want silence", r)
	}
}

func TestWholeCharactersInEscapesAreRead(t *testing.T) {
	t.Parallel()
	for _, path := range []string{`/\ud83d\ude00`, `/\\ud83d`, `/\\\ud83d\ude00`, `/\ufffd`, "/\ufffd"} {
		text := `{"hook_event_name":"PreToolUse","permission_mode":"auto","tool_use_id":"1","tool_name":"Read","tool_input":{"file_path":"` + path + `"}}`
		if r := run(t.Context(), strings.NewReader(text), hookadapter.Config{Gate: noGuards}); r != (ran{}) {
			t.Errorf("path %s: %+v, want silence", path, r)
		}
	}
}

func TestInputWithoutEndIsDeniedInTime(t *testing.T) {
	t.Parallel()
	c := hookadapter.Config{Host: "claude", Gate: noGuards, Deadline: 50 * time.Millisecond}
	for behaviour, stdin := range map[string]io.Reader{
		"nothing comes":         heldOpen(t, ""),
		"the object stays open": heldOpen(t, payload(t, nil)[:40]),
		"blanks for ever":       &endless{text: []byte(" ")},
		"one name for ever":     &endless{start: []byte(`{"`), text: []byte("a")},
	} {
		expect(t, behaviour, run(t.Context(), stdin, c), "bypassPermissions", blocked)
	}
}

// afterAnswer withholds the end of the input until the answer was written.
type afterAnswer struct {
	io.Reader
	written chan struct{}
	ended   atomic.Bool
}

func (a *afterAnswer) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err != nil {
		<-a.written
		a.ended.Store(true)
	}
	return n, err
}

func (a *afterAnswer) Write(p []byte) (int, error) {
	close(a.written)
	return len(p), nil
}

func TestHookOutlivesAnInputThatItCouldNotRead(t *testing.T) {
	t.Parallel()
	stdin := &afterAnswer{Reader: strings.NewReader("no JSON"), written: make(chan struct{})}
	code := hookadapter.Run(t.Context(), stdin, io.Discard, stdin, hookadapter.Config{Gate: noGuards, Deadline: time.Minute})
	if code != 2 || !stdin.ended.Load() {
		t.Errorf("exit %d, input ended: %v; want 2 after the end of the input", code, stdin.ended.Load())
	}
}

// endless repeats its text.
type endless struct {
	start, text []byte
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.start)
	e.start = e.start[n:]
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

// FuzzInput checks that no bytes make Claude Code run a call that is not safe by an independent reading of them.
func FuzzInput(f *testing.F) {
	for _, changes := range []map[string]any{
		nil,
		{"tool_name": "Read"},
		{"tool_name": "mcp__proxmox__get_vms"},
		{"tool_name": "mcp__someone__do_it", "permission_mode": "bypassPermissions"},
		{"tool_name": "Bash", "tool_input": map[string]any{"command": "ls"}},
		{"tool_name": "Bash", "tool_input": `{"command":"ssh web01"}`, "permission_mode": "auto"},
		{"tool_name": "mcp__mcp-ansible__ansible-task", "tool_input": map[string]any{"check": true, "host_pattern": "all"}},
		{"tool_name": "MCP:x", "cursor_version": "1"},
	} {
		f.Add([]byte(payload(f, changes)), true)
	}
	f.Add([]byte(`{"tool_name":"Read","tool_name":"Bash"}`), true)
	f.Add([]byte(utf16Text(binary.LittleEndian, payload(f, nil))), false)
	c, err := catalog.Default()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stdin []byte, told bool) {
		config := hookadapter.Config{Gate: noGuards}
		if told {
			config.Host = "claude"
		}
		r := run(t.Context(), bytes.NewReader(stdin), config)
		call := looselyRead(stdin)
		mode, _ := call["permission_mode"].(string)
		if r.exitCode != 0 && r.exitCode != 2 || r.stdout != "" && r.stderr != "" {
			t.Errorf("answer %+v is of no form", r)
		}
		if claudeReads(r, mode) == proceeds && !harmless(c, call) {
			t.Errorf("%q runs because of %+v", stdin, r)
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
	var call map[string]any
	_ = json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(stdin, []byte("\uFEFF")))).Decode(&call)
	return call
}

func harmless(c *catalog.Catalog, call map[string]any) bool {
	args, _ := call["tool_input"].(map[string]any)
	if text, ok := call["tool_input"].(string); ok {
		_ = json.Unmarshal([]byte(text), &args)
	}
	tool, _ := call["tool_name"].(string)
	name, _ := c.ParseToolName(tool)
	r := c.ClassifyCall(name, args)
	if r.Entry != nil && r.Entry.BuiltIn {
		if line, ok := r.Entry.CommandLine(args); ok {
			read := shell.Reader{}.ReadCommand(r.Entry.Tool, line)
			return read.Safe() && read.TargetProblem == ""
		}
	}
	return r.Safe()
}

// BenchmarkReadOnlyTool is the decision in a process that has read the catalogue. The limit is that of the whole process,
// 10 ms, of which starting it takes 3 to 7.
func BenchmarkReadOnlyTool(b *testing.B) {
	text := payload(b, map[string]any{"tool_name": "mcp__proxmox__get_vms"})
	b.ReportAllocs()
	for b.Loop() {
		if r := run(b.Context(), strings.NewReader(text), hookadapter.Config{Gate: noGuards}); r != (ran{}) {
			b.Fatalf("%+v", r)
		}
	}
}

// BenchmarkColdProcess starts the hook as a host does. The process is this test's binary, which links more than the
// hook.
func BenchmarkColdProcess(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	text := payload(b, map[string]any{"tool_name": "mcp__proxmox__get_vms"})
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), self)
		cmd.Env = append(os.Environ(), asProcess+"=1")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			b.Fatalf("%v: %s", err, out)
		}
	}
}

// BenchmarkLargestInput is to stay below the deadline of 4 s by far: 1 s.
func BenchmarkLargestInput(b *testing.B) {
	text := payload(b, map[string]any{"tool_input": map[string]any{"name": "web01", "note": strings.Repeat("x", 19<<20)}})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if r := run(b.Context(), strings.NewReader(text), hookadapter.Config{Gate: noGuards}); !strings.Contains(r.stdout, "web01") {
			b.Fatalf("%+v, want the verdict on web01", r)
		}
	}
}
