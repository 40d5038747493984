package zvmtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

const zeroGUID = "00000000-0000-0000-0000-000000000000"

// guid derives an id from the seed, so that two runs with one seed have the
// same ids and golden files stay valid.
func guid(seed uint64, kind, name string) string {
	h := sha256.New()
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	h.Write(b[:])
	h.Write([]byte(kind + "\x00" + name))
	sum := h.Sum(nil)
	sum[6] = sum[6]&0x0f | 0x40
	sum[8] = sum[8]&0x3f | 0x80
	x := hex.EncodeToString(sum[:16])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}

// nextGUID numbers the ids of one kind. The caller holds the mutex.
func (s *Server) nextGUID(kind string) string {
	s.ordinals[kind]++
	return guid(s.cfg.seed, kind, strconv.Itoa(s.ordinals[kind]))
}

// newSecret makes a token, a refresh token or a download id. Secrets differ
// between servers of one seed, so that a token sent to the wrong server is
// refused there, and begin with MARKER-, so that a test can search its
// outputs for them.
func newSecret(kind string) string {
	return "MARKER-" + kind + "-" + rand.Text()
}
