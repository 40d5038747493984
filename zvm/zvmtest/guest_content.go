package zvmtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// fileContent is the immutable content of a file. Its reader gets the file's name and may be asked for many times at once.
type fileContent interface {
	size() int64
	reader(name string) io.ReadSeeker
}

// storedContent is content held in memory.
type storedContent []byte

func (c storedContent) size() int64                 { return int64(len(c)) }
func (c storedContent) reader(string) io.ReadSeeker { return bytes.NewReader(c) }

// nameContent is the content of a generated file: its name and a newline. Its value is the size, which one inode that
// serves a whole folder has to know without a name.
type nameContent int64

func (c nameContent) size() int64                      { return int64(c) }
func (c nameContent) reader(name string) io.ReadSeeker { return strings.NewReader(name + "\n") }

// zeroContent is as many zeros as its value says.
type zeroContent int64

func (c zeroContent) size() int64                 { return int64(c) }
func (c zeroContent) reader(string) io.ReadSeeker { return io.NewSectionReader(c, 0, int64(c)) }

// ReadAt fills p with zeros; the section reader around it knows where the file ends.
func (c zeroContent) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// noiseContent is length bytes that depend on nothing but the seed and their place.
type noiseContent struct {
	length int64
	seed   uint64
}

func (c noiseContent) size() int64                 { return c.length }
func (c noiseContent) reader(string) io.ReadSeeker { return io.NewSectionReader(c, 0, c.length) }

// Noise is cut from a table, chunk by chunk, so that sending it costs about what sending a file does. The table is wider
// than what a deflating archive looks back at.
const (
	noiseChunk = 4 << 10
	noiseTable = 128 << 10
)

var noiseTableOnce = sync.OnceValue(func() []byte {
	table := make([]byte, noiseTable+noiseChunk)
	for i := 0; i < len(table); i += 8 {
		binary.LittleEndian.PutUint64(table[i:], splitMix64(0, int64(i/8)))
	}
	return table
})

// ReadAt fills p with the noise that stands at off. A chunk begins with a number of its own, which also says where in the
// table the rest of it stands, so that no two chunks are the same.
func (c noiseContent) ReadAt(p []byte, off int64) (int, error) {
	n := len(p)
	for len(p) > 0 {
		var head [8]byte
		number := splitMix64(c.seed, off/noiseChunk)
		binary.LittleEndian.PutUint64(head[:], number)
		rest := noiseTableOnce()[number%noiseTable:][:noiseChunk]
		within := int(off % noiseChunk)
		copied := copy(p, rest[within:])
		if within < len(head) {
			copy(p, head[within:])
		}
		p, off = p[copied:], off+int64(copied)
	}
	return n, nil
}

// splitMix64 is the output of the SplitMix64 generator after index steps from the seed.
func splitMix64(seed uint64, index int64) uint64 {
	z := seed + uint64(index+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// generatedItems is n files whose names are numbers of one width, so that their order is that of the numbers and one
// inode serves them all.
func generatedItems(dir *inode, n int, stamp time.Time) *itemSet {
	width := max(6, len(fmt.Sprint(n)))
	name := func(i int) string { return fmt.Sprintf("file-%0*d.txt", width, i) }
	file := &inode{kind: kindFile, content: nameContent(len(name(0)) + 1), created: stamp, accessed: stamp, written: stamp}
	return sortedItems(n, func(i int) (string, string, *inode) {
		made := name(i)
		return dir.key(made), made, file
	})
}
