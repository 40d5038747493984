package zvmtest

import (
	"archive/zip"
	"io"
	"slices"
	"strings"
)

// archive writes a zip of the files and folders at the session paths to w, as it reads them: memory stays flat whatever
// their size, and entries above 4 GiB use Zip64. Names are relative to the deepest folder that holds every path, so
// that the one folder "Volume1-Ext4/etc" becomes "etc/…". Items that cannot be downloaded are left out, with all below
// them. A path that names nothing is errGuestNotFound or errGuestBadPath, before anything is written.
//
// Stored files are deflated; generated ones, which are large or do not shrink, are only stored. Every file entry ends in
// a data descriptor, because sizes are not known before it was read (cases B49).
func (t *tree) archive(w io.Writer, paths []string) error {
	items := make(map[string]*inode, len(paths))
	picked := make([]string, 0, len(paths))
	for _, path := range paths {
		stored, item, err := t.find(path)
		if err != nil {
			return err
		}
		if items[stored] == nil {
			items[stored] = item
			picked = append(picked, stored)
		}
	}
	picked = slices.DeleteFunc(picked, func(path string) bool { return insideAny(path, items) })
	base := commonParent(picked)
	z := zip.NewWriter(w)
	for _, path := range picked {
		if err := pack(z, strings.TrimPrefix(path, base), items[path]); err != nil {
			return err
		}
	}
	return z.Close()
}

// insideAny says whether a folder above path is among items, which then covers path already.
func insideAny(path string, items map[string]*inode) bool {
	for path != "" {
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
		if items[path] != nil {
			return true
		}
	}
	return false
}

// commonParent returns the deepest folder that holds all paths, with the slash that ends it, or "" for the guest.
func commonParent(paths []string) string {
	var common string
	for i, path := range paths {
		parent := path[:strings.LastIndexByte(path, '/')+1]
		if i == 0 {
			common = parent
		}
		for !strings.HasPrefix(parent, common) {
			common = common[:strings.LastIndexByte(strings.TrimSuffix(common, "/"), '/')+1]
		}
	}
	return common
}

func pack(z *zip.Writer, name string, item *inode) error {
	switch {
	case item.refusal != "":
		return nil
	case item.container():
		return packFolder(z, name, item)
	}
	header := &zip.FileHeader{Name: name, Method: zip.Store, Modified: item.written}
	if _, stored := item.content.(storedContent); stored {
		header.Method = zip.Deflate
	}
	entry, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(entry, item.content.reader(name[strings.LastIndexByte(name, '/')+1:]))
	return err
}

func packFolder(z *zip.Writer, name string, folder *inode) error {
	if name != "" {
		if _, err := z.CreateHeader(&zip.FileHeader{Name: name + "/", Modified: folder.written}); err != nil {
			return err
		}
	}
	for child, item := range folder.entries.from(0) {
		if err := pack(z, joinSession(name, child), item); err != nil {
			return err
		}
	}
	return nil
}
