package zvmtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
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

// ReadAt fills p with the noise that stands at off.
func (c noiseContent) ReadAt(p []byte, off int64) (int, error) {
	n := len(p)
	if skip := off % 8; skip != 0 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], c.word(off/8))
		written := copy(p, word[skip:])
		p, off = p[written:], off+int64(written)
	}
	for ; len(p) >= 8; p, off = p[8:], off+8 {
		binary.LittleEndian.PutUint64(p, c.word(off/8))
	}
	if len(p) > 0 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], c.word(off/8))
		copy(p, word[:])
	}
	return n, nil
}

// word is the output of the SplitMix64 generator after index steps from the seed.
func (c noiseContent) word(index int64) uint64 {
	z := c.seed + uint64(index+1)*0x9e3779b97f4a7c15
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
