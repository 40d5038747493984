package catalogfile

import "context"

// Edited is an edit without a disk.
func Edited(before []byte, edit func(*Edit) error) ([]byte, error) {
	return edited("x", before, edit)
}

// UpdateWith is Update on a disk whose renames are the test's.
func UpdateWith(ctx context.Context, rename func(from, to string) error, path string, edit func(*Edit) error) error {
	return disk{rename, isBusyCode}.update(ctx, path, edit)
}

// Comments returns the comments of a valid document, without line ends.
func Comments(data []byte) []string {
	var found []string
	for at := 0; at < len(data); at++ {
		switch data[at] {
		case '"':
			for at++; data[at] != '"'; at++ {
				if data[at] == '\\' {
					at++
				}
			}
		case '/':
			length := commentLength(data[at:])
			found = append(found, string(data[at:at+length]))
			at += length
		}
	}
	return found
}

// The codes of Windows that mean that a file is in use.
const (
	AccessDenied     = windowsAccessDenied
	SharingViolation = windowsSharingViolation
)
