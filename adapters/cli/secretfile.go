package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"
)

// maxSecretFile is far above every secret, and keeps a wrong path from filling the memory.
const maxSecretFile = 64 << 10

// readSecretFile returns what a file holds without a byte order mark and without one final line ending, which editors
// add. Blanks belong to the secret. The warning is about who else may read the file.
func readSecretFile(path string) (secret, warning string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", "", err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil {
		return "", "", err
	}
	if info.IsDir() {
		return "", "", fmt.Errorf("%s is a folder", path)
	}
	if runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		warning = fmt.Sprintf("%s holds a secret and can be read by others (mode %04o); chmod 600 it", path, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", "", err
	}
	if len(data) > maxSecretFile {
		return "", "", fmt.Errorf("%s is too large for a secret", path)
	}
	secret, err = secretText(data)
	if err != nil {
		return "", "", fmt.Errorf("%s %w", path, err)
	}
	return secret, warning, nil
}

func secretText(data []byte) (string, error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) || bytes.IndexByte(data, 0) >= 0 {
		return "", errors.New("is UTF-16 or binary; save it as UTF-8 text")
	}
	if !utf8.Valid(data) {
		return "", errors.New("is not UTF-8 text")
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	text, cut := strings.CutSuffix(text, "\n")
	if cut {
		text = strings.TrimSuffix(text, "\r")
	}
	if text == "" {
		return "", errors.New("is empty")
	}
	return text, nil
}
