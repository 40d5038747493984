package hookadapter_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
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
