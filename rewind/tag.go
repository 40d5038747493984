package rewind

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Tag is what the name of a tagged checkpoint says. Its text is one line of at most [MaxTagBytes] bytes:
//
//	tag    = "ai:" agent " | " action " | vm=" vms " | change=" change " | " time
//	agent  = field                      at most 32 bytes
//	change = field                      at most 40 bytes
//	vms    = field *( "," field ) / "+" count
//	time   = UTC, 2006-01-02T15:04:05Z
//	field  = "-" / 1*( char / "%" 2hex ) [ "~" 8hex ]
//	action = printable text without "|", cut to what is left of the 200 bytes
//
// A char is any printable character but "%", "|", "," and "~". Every other byte, and a blank at either end, is written
// as "%" and two hexadecimal digits, so that a field comes back as it went in; "-" is the empty field. A field over its
// limit is cut and ends in "~" and the first 8 hexadecimal digits of the SHA-256 of the whole: it no longer shows the
// whole but still names it, and [Tag.Names] and [Tag.Concerns] know. "+" and a count stands for more machines than fit;
// since a checkpoint covers every machine of its VPG, such a tag concerns them all.
//
// Only the action loses text. Text that a server appends behind the time is ignored.
type Tag struct {
	Agent  string
	Action string
	VMs    []string // names; nil when there were more than fit
	Change string
	Time   time.Time // whole seconds, UTC
}

// MaxTagBytes is the most a tag takes. Servers document no limit.
const MaxTagBytes = 200

const (
	tagPrefix      = "ai:"
	tagSeparator   = " | "
	tagTime        = "2006-01-02T15:04:05Z"
	maxAgentBytes  = 32
	maxChangeBytes = 40
	maxVMBytes     = 56
	minActionBytes = 12
	minListedBytes = 16
	digestBytes    = 9 // "~" and eight digits
)

// String writes the tag. Every value of the fields gives a valid tag.
func (t Tag) String() string {
	agent := encodeField(t.Agent, maxAgentBytes)
	change := encodeField(t.Change, maxChangeBytes)
	fixed := len(tagPrefix) + len(agent) + 4*len(tagSeparator) + len("vm=") + len("change=") + len(change) + len(tagTime)
	vms := encodeVMs(t.VMs, MaxTagBytes-fixed-minActionBytes)
	action := encodeAction(t.Action, MaxTagBytes-fixed-len(vms))
	return strings.Join([]string{
		tagPrefix + agent, action, "vm=" + vms, "change=" + change, t.Time.UTC().Format(tagTime),
	}, tagSeparator)
}

// ParseTag reads a checkpoint's name. It reports false for a name that is not a whole tag of ours; automatic and
// foreign checkpoints are the normal case.
func ParseTag(name string) (Tag, bool) {
	parts := strings.SplitN(strings.TrimSpace(name), tagSeparator, 5)
	if len(parts) != 5 {
		return Tag{}, false
	}
	agent, isOurs := strings.CutPrefix(parts[0], tagPrefix)
	vms, hasVMs := strings.CutPrefix(parts[2], "vm=")
	change, hasChange := strings.CutPrefix(parts[3], "change=")
	if !isOurs || !hasVMs || !hasChange || len(parts[4]) < len(tagTime) {
		return Tag{}, false
	}
	at, err := time.Parse(tagTime, parts[4][:len(tagTime)])
	if err != nil {
		return Tag{}, false
	}
	t := Tag{Agent: decodeField(agent), Change: decodeField(change), Time: at, VMs: decodeVMs(vms)}
	if parts[1] != "-" {
		t.Action = parts[1]
	}
	return t, true
}

// ParseCutTag reads what a server left of a tag that it cut off: every field that is whole because a separator still
// follows it. It reports false when not even the agent is. No server is known to cut; a guard is never made of a cut tag,
// since it was not read back as it was sent.
//
// Of a tag "ai:patch-bot | upgrade nginx | vm=web01 | change=k3f9-x2ma-7q1d | 2026-…Z", 86 bytes long, a cut at 128 or 100
// bytes loses nothing and one at 80 loses the time; the change is whole from byte 66 on. Long actions and names push the
// rest back: at worst, with 200 bytes, a cut at 128 leaves agent and action, and one at 80 the agent alone.
func ParseCutTag(name string) (Tag, bool) {
	if tag, whole := ParseTag(name); whole {
		return tag, true
	}
	rest, isOurs := strings.CutPrefix(strings.TrimLeft(name, " "), tagPrefix)
	if !isOurs {
		return Tag{}, false
	}
	parts := strings.Split(rest, tagSeparator)
	parts = parts[:len(parts)-1] // the last one may be cut
	if len(parts) == 0 {
		return Tag{}, false
	}
	t := Tag{Agent: decodeField(parts[0])}
	if len(parts) > 1 && parts[1] != "-" {
		t.Action = parts[1]
	}
	for _, part := range parts[min(2, len(parts)):] {
		if vms, ok := strings.CutPrefix(part, "vm="); ok {
			t.VMs = decodeVMs(vms)
		}
		if change, ok := strings.CutPrefix(part, "change="); ok {
			t.Change = decodeField(change)
		}
	}
	return t, true
}

// Names reports whether the tag was made for the change.
func (t Tag) Names(change string) bool { return t.Change == asParsed(change, maxChangeBytes) }

// Concerns reports whether the tag was made for the VM of that name, or for more VMs than it could list.
func (t Tag) Concerns(vm string) bool {
	if t.VMs == nil {
		return true
	}
	for _, named := range t.VMs {
		if named == vm {
			return true
		}
		if isCut(named) && named == asParsed(vm, len(encodeField(named, MaxTagBytes))) {
			return true
		}
	}
	return false
}

// asParsed returns what a value looks like after it went through a field of limit bytes.
func asParsed(value string, limit int) string { return decodeField(encodeField(value, limit)) }

func encodeVMs(names []string, room int) string {
	if len(names) == 0 {
		return "-"
	}
	each := min(maxVMBytes, room)
	if len(names) > 1 {
		fields := make([]string, len(names))
		for i, name := range names {
			fields[i] = encodeName(name, maxVMBytes)
		}
		if list := strings.Join(fields, ","); len(list) <= room {
			return list
		}
		each = min(maxVMBytes, (room+1)/len(names)-1)
	}
	if each < minListedBytes {
		return "+" + strconv.Itoa(len(names))
	}
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = encodeName(name, each)
	}
	return strings.Join(fields, ",")
}

// encodeName keeps a name that begins with "+" from reading as a count.
func encodeName(name string, limit int) string {
	field := encodeField(name, limit)
	if strings.HasPrefix(field, "+") {
		return encodeBytes(name, limit, true)
	}
	return field
}

func decodeVMs(list string) []string {
	if strings.HasPrefix(list, "+") {
		return nil
	}
	fields := strings.Split(list, ",")
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = decodeField(f)
	}
	return names
}

// encodeField writes a value so that it survives as one field of at most limit bytes.
func encodeField(value string, limit int) string { return encodeBytes(value, limit, false) }

func encodeBytes(value string, limit int, escapeFirst bool) string {
	switch value {
	case "":
		return "-"
	case "-":
		return "%2D"
	}
	digestAt := len(value)
	if isCut(value) {
		digestAt -= digestBytes
	}
	var field strings.Builder
	cut := 0 // where the field ends if it has to be cut
	for i := 0; i < len(value) && field.Len() <= limit; {
		r, size := utf8.DecodeRuneInString(value[i:])
		if field.Len() <= limit-digestBytes {
			cut = field.Len()
		}
		if (plain(r, size) || i == digestAt) && !(i == 0 && escapeFirst) && !(r == ' ' && (i == 0 || i == len(value)-1)) {
			field.WriteString(value[i : i+size])
		} else {
			for _, b := range []byte(value[i : i+size]) {
				field.WriteByte('%')
				field.WriteString(strings.ToUpper(hex.EncodeToString([]byte{b})))
			}
		}
		i += size
	}
	if field.Len() <= limit {
		return field.String()
	}
	sum := sha256.Sum256([]byte(value))
	return field.String()[:cut] + "~" + hex.EncodeToString(sum[:4])
}

// isCut reports whether a value has the form of a field that was cut. Such a value is not escaped again, so that what a
// tag shows can be used to name it.
func isCut(value string) bool {
	at := len(value) - digestBytes
	if at < 0 || value[at] != '~' {
		return false
	}
	return strings.Trim(value[at+1:], "0123456789abcdef") == ""
}

// plain reports whether a character stands for itself in a field.
func plain(r rune, size int) bool {
	if r == utf8.RuneError && size <= 1 {
		return false
	}
	return unicode.IsPrint(r) && !strings.ContainsRune("%|,~", r)
}

func decodeField(field string) string {
	if field == "-" {
		return ""
	}
	if !strings.Contains(field, "%") {
		return field
	}
	value := make([]byte, 0, len(field))
	for i := 0; i < len(field); i++ {
		if field[i] == '%' && i+2 < len(field) {
			if b, err := hex.DecodeString(field[i+1 : i+3]); err == nil {
				value = append(value, b[0])
				i += 2
				continue
			}
		}
		value = append(value, field[i])
	}
	return string(value)
}

// encodeAction makes any text one printable line of at most limit bytes without a separator in it.
func encodeAction(action string, limit int) string {
	var text strings.Builder
	for _, r := range action {
		switch {
		case r == '|':
			text.WriteByte('/')
		case r == utf8.RuneError || !unicode.IsPrint(r):
			text.WriteByte(' ')
		default:
			text.WriteRune(r)
		}
	}
	line := strings.Join(strings.Fields(text.String()), " ")
	if line == "" {
		return "-"
	}
	if len(line) <= limit {
		return line
	}
	const ellipsis = "…"
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return strings.TrimRight(line[:end], " ") + ellipsis
}
