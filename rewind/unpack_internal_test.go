package rewind

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Paths "as listed" hold what the rules forbid, so that the entry is the end of the path and the rules alone refuse it.
func TestAnEntryOfAZipIsWhatWasAskedForOrIsNotUsed(t *testing.T) {
	t.Parallel()
	const path = "V/srv/a/data.bin"
	named := func(names ...string) (entries []zip.FileHeader) {
		for _, name := range names {
			entries = append(entries, zip.FileHeader{Name: name})
		}
		return entries
	}
	mode := func(m fs.FileMode) []zip.FileHeader {
		entry := zip.FileHeader{Name: "data.bin"}
		entry.SetMode(m)
		return []zip.FileHeader{entry}
	}
	for name, tt := range map[string]struct {
		path    string // path when empty
		entries []zip.FileHeader
		alone   bool // it is used for a file that was asked for by itself
		within  bool // and for one of several
	}{
		"its name":                       {entries: named("data.bin"), alone: true, within: true},
		"with its folder":                {entries: named("a/data.bin"), alone: true, within: true},
		"with its folders":               {entries: named("srv/a/data.bin"), alone: true, within: true},
		"with its partition":             {entries: named("V/srv/a/data.bin"), alone: true, within: true},
		"with the other separator":       {entries: named(`srv\a\data.bin`), alone: true, within: true},
		"with entries of the folders":    {entries: named("srv/", "srv/a/", "srv/a/data.bin"), alone: true, within: true},
		"below a folder of its name":     {path: "V/a/a", entries: named("a/", "a/a"), alone: true, within: true},
		"its name, odd on other systems": {path: "V/notes:old?", entries: named("notes:old?"), alone: true, within: true},
		"the same, with its folder":      {path: "V/a/notes:old?", entries: named("a/notes:old?"), alone: true, within: true},
		"its name, with a backslash":     {path: `V/dev-by\x2did.device`, entries: named(`dev-by\x2did.device`), alone: true},
		"accents":                        {path: "V/données", entries: named("données"), alone: true, within: true},

		"another name":            {entries: named("other.bin")},
		"the end of a name":       {entries: named("ata.bin")},
		"a longer name":           {entries: named("xdata.bin")},
		"the start of the path":   {entries: named("V/srv/a")},
		"another folder":          {entries: named("b/data.bin")},
		"above its partition":     {entries: named("W/V/srv/a/data.bin")},
		"below its name":          {entries: named("data.bin/x")},
		"another case":            {entries: named("DATA.BIN")},
		"no name":                 {entries: named("")},
		"upwards":                 {entries: named("../../b/data.bin")},
		"upwards as listed":       {path: "V/../data.bin", entries: named("../data.bin")},
		"upwards, backslashes":    {path: "V/../data.bin", entries: named(`..\data.bin`)},
		"here":                    {path: "V/./data.bin", entries: named("./data.bin")},
		"absolute":                {entries: named("/srv/a/data.bin")},
		"absolute as listed":      {path: "V//data.bin", entries: named("/data.bin")},
		"another server's folder": {path: `V///h/data.bin`, entries: named(`\\h\data.bin`)},
		"an empty part":           {path: "V/a//data.bin", entries: named("a//data.bin")},
		"a drive letter":          {path: "C:/a/data.bin", entries: named("C:/a/data.bin")},
		"a drive, backslashes":    {path: "C:/a/data.bin", entries: named(`C:\a\data.bin`)},
		"NUL":                     {path: "V/a\x00/data.bin", entries: named("a\x00/data.bin")},
		"a device of Windows":     {path: "V/aux/data.bin", entries: named("aux/data.bin")},
		"a folder with a dot":     {path: "V/a./data.bin", entries: named("a./data.bin")},

		"a link":               {entries: mode(fs.ModeSymlink | 0o777)},
		"a device":             {entries: mode(fs.ModeDevice | 0o600)},
		"a device of letters":  {entries: mode(fs.ModeDevice | fs.ModeCharDevice | 0o600)},
		"a pipe":               {entries: mode(fs.ModeNamedPipe | 0o600)},
		"a socket":             {entries: mode(fs.ModeSocket | 0o600)},
		"a folder by its mode": {entries: mode(fs.ModeDir | 0o700)},
		"encrypted":            {entries: []zip.FileHeader{{Name: "data.bin", Flags: 1}}},

		"twice":                       {entries: named("data.bin", "data.bin")},
		"twice, with its folder":      {entries: named("data.bin", "a/data.bin")},
		"in another folder as well":   {entries: named("data.bin", "b/data.bin")},
		"in two cases":                {entries: named("data.bin", "Data.BIN")},
		"in two cases, not ASCII":     {path: "V/straße", entries: named("straße", "STRASSE")},
		"as a link as well":           {entries: append(mode(fs.ModeSymlink|0o777), named("data.bin")...)},
		"with a file of another name": {entries: named("data.bin", "x"), within: true},

		"of code page 437": {path: "V/données", entries: named("donn\x82es")},
		"of Shift-JIS, whose second byte is a backslash": {path: "V/ソ", entries: named("\x83\x5c")},
		"not UTF-8, as listed":                           {path: "V/a\xff/data.bin", entries: named("a\xff/data.bin")},
		// These bytes are é in UTF-8 and two other letters in the code page of old zips: of several files it may be either.
		"not said to be UTF-8": {path: "V/é", entries: []zip.FileHeader{{Name: "é", NonUTF8: true}}, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := zvm.Item{Path: tt.path}
			if item.Path == "" {
				item.Path = path
			}
			data := zipWith(t, tt.entries)
			entry, err := onlyEntry(bytes.NewReader(data), int64(len(data)), item)
			if (entry != nil) != tt.alone || (err == nil) != tt.alone {
				t.Errorf("asked for by itself: entry %v, %v, want it used: %t", entry != nil, err, tt.alone)
			}
			refused := (*NotDownloadableError)(nil)
			if err != nil && (!errors.As(err, &refused) || refused.Path != item.Path) {
				t.Errorf("got %v, want a *NotDownloadableError of %s", err, item.Path)
			}
			if refused != nil && len(tt.entries) == 1 && !tt.entries[0].Mode().IsDir() && !strings.Contains(refused.Reason, strconv.Quote(tt.entries[0].Name)) {
				t.Errorf("%q does not name the entry", refused.Reason)
			}
			archive, err := openZip(bytes.NewReader(data), int64(len(data)), len(tt.entries))
			if err != nil {
				t.Fatal(err)
			}
			if within := entriesByName(archive, []zvm.Item{item})[item.Name()] != nil; within != tt.within {
				t.Errorf("one of several: used: %t, want %t", within, tt.within)
			}
		})
	}
}

func zipWith(t *testing.T, entries []zip.FileHeader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, entry := range entries {
		if _, err := z.CreateHeader(&entry); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
