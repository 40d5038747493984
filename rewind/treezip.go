package rewind

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// What one request asks for at most. A file that takes long by itself gains nothing from company.
const (
	mostAtOnce      = 200
	mostBytesAtOnce = 32 << 20
	smallFile       = 1 << 20
)

// bringFiles writes the files of one folder: small ones several at a time where the server sends several, in a zip
// (zvm-wire 6.5), and all others one by one.
func (t *treeWork) bringFiles(ctx context.Context, b branch, files []zvm.Item) error {
	batches := inBatches(files)
	return t.crew.each(ctx, len(batches), func(ctx context.Context, i int) error { return t.bringBatch(ctx, b, batches[i]) })
}

func inBatches(files []zvm.Item) [][]zvm.Item {
	var batches [][]zvm.Item
	var batch []zvm.Item
	var size int64
	for _, f := range files {
		if f.Size < 0 || f.Size > smallFile {
			batches = append(batches, []zvm.Item{f})
			continue
		}
		batch, size = append(batch, f), size+f.Size
		if len(batch) == mostAtOnce || size >= mostBytesAtOnce {
			batches = append(batches, batch)
			batch, size = nil, 0
		}
	}
	if len(batch) > 0 {
		batches = append(batches, batch)
	}
	return batches
}

// bringBatch tries to get several files at once, and one by one what did not come so.
func (t *treeWork) bringBatch(ctx context.Context, b branch, batch []zvm.Item) error {
	rest := batch
	if len(batch) > 1 && !t.oneByOne.Load() {
		var err error
		if rest, err = t.bringZip(ctx, b, batch); err != nil {
			return err
		}
		if len(rest) == len(batch) {
			t.oneByOne.Store(true)
		}
	}
	return t.crew.each(ctx, len(rest), func(ctx context.Context, i int) error { return t.bringFile(ctx, b, rest[i]) })
}

// bringZip asks for several files in one zip and returns those that it did not bring. Only the destination's troubles are
// errors: a refusal, a zip for which there is no room, and one that is cut or cannot be made out leave files that are asked
// for one by one, which then say what is wrong.
func (t *treeWork) bringZip(ctx context.Context, b branch, batch []zvm.Item) (rest []zvm.Item, err error) {
	spool, err := newSpool()
	if err != nil {
		return batch, nil //nolint:nilerr // one by one, the files may come without a zip
	}
	defer spool.close()
	var archive *zip.Reader
	err = t.company.do(ctx, func() (err error) {
		archive, err = t.spoolZip(ctx, spool, batch)
		return err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return batch, nil //nolint:nilerr // what is wrong shows when they are asked for one by one
	}
	entries := entriesByName(archive, batch)
	var mu sync.Mutex
	err = t.crew.each(ctx, len(batch), func(_ context.Context, i int) error {
		brought, err := t.unpack(b, batch[i], entries[batch[i].Name()])
		if !brought {
			mu.Lock()
			defer mu.Unlock()
			rest = append(rest, batch[i])
		}
		return err
	})
	return rest, err
}

// unpack writes one file out of a zip, if it is what was asked for.
func (t *treeWork) unpack(b branch, file zvm.Item, entry *zip.File) (brought bool, err error) {
	if entry == nil {
		return false, nil
	}
	n, sum, err := unpackTo(toBranch(b, file), entry, file.Size)
	if err == nil {
		t.arrived(b, file, n, sum)
		return true, nil
	}
	if dest := (*DestinationError)(nil); errors.As(err, &dest) {
		return false, err
	}
	return false, nil // what is wrong shows when it is asked for by itself
}

func (t *treeWork) spoolZip(ctx context.Context, into spool, batch []zvm.Item) (*zip.Reader, error) {
	var size int64
	paths := make([]string, len(batch))
	for i, f := range batch {
		paths[i] = f.Path
		size += f.Size + int64(len(f.Path))*2 + 1024 // the headers of an entry
	}
	data, err := t.m.at.zvm.DownloadFLR(ctx, t.m.session, paths...)
	if err != nil {
		return nil, err
	}
	defer data.Body.Close() //nolint:errcheck // the body has been read to its end, or its error returned
	from := bufio.NewReader(data.Body)
	if magic, err := from.Peek(4); err != nil || string(magic) != "PK\x03\x04" {
		return nil, errors.Join(err, errors.New("the server sent several files in something that is not a zip"))
	}
	most := largestContainer(size)
	n, err := into.fill(from, most)
	switch {
	case err != nil:
		return nil, err
	case n == most:
		return nil, fmt.Errorf("the server sends a zip of %d bytes and more for files of %d", n, size)
	}
	return openZip(into, n, len(batch))
}

// entriesByName finds the files that were asked for in a zip, by their names in the one folder that holds them. Entries
// whose names end alike, in whatever case, are of no use, all of them: each may be the file. Neither is one whose name is
// not known to be UTF-8: its bytes may be another file's name in UTF-8.
func entriesByName(archive *zip.Reader, batch []zvm.Item) map[string]*zip.File {
	wanted := make(map[string]zvm.Item, len(batch))
	for _, item := range batch {
		wanted[item.Name()] = item
	}
	alike := make(map[string]int, len(archive.File))
	for _, f := range archive.File {
		alike[folded(lastPart(f))]++
	}
	entries := make(map[string]*zip.File, len(batch))
	for _, f := range archive.File {
		name := lastPart(f)
		if alike[folded(name)] == 1 && !f.NonUTF8 && whyNotAsked(f, wanted[name]) == "" {
			entries[name] = f
		}
	}
	return entries
}

// lastPart is a file's own name. A folder has none here: files further down may be called as it is.
func lastPart(entry *zip.File) string {
	name := slashed(entry.Name)
	return name[strings.LastIndexByte(name, '/')+1:]
}

// unpackTo writes one entry, whole or not at all.
func unpackTo(sink Sink, entry *zip.File, size int64) (n int64, sum string, err error) {
	content, err := entry.Open()
	if err != nil {
		return 0, "", err
	}
	defer content.Close() //nolint:errcheck // its end has been read, or its error returned
	file, err := sink.open()
	if err != nil {
		return 0, "", err
	}
	hash := sha256.New()
	if n, err = copyExactly(io.MultiWriter(file, hash), content, size); err != nil {
		file.discard()
		return 0, "", err
	}
	return n, hex.EncodeToString(hash.Sum(nil)), file.commit()
}
