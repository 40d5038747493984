package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func TestTextThatCannotBeShownSaysWhy(t *testing.T) {
	t.Parallel()
	size := int64(3)
	for name, tt := range map[string]struct {
		state     *rewind.ItemState
		text, why string
	}{
		"no file":          {nil, "", ""},
		"text":             {&rewind.ItemState{Bytes: &size, SHA256: "x", Content: []byte("abc")}, "abc", ""},
		"a folder":         {&rewind.ItemState{Type: "Folder"}, "", "it is not a file on both sides"},
		"what is not read": {&rewind.ItemState{Unread: "in use"}, "", "in use"},
		"what is not kept": {&rewind.ItemState{Bytes: &size, SHA256: "x"}, "", "more than 67108864 bytes came to differ"},
		"binary":           {&rewind.ItemState{Bytes: &size, SHA256: "x", Content: []byte("a\x00b")}, "", "it is binary"},
		"Latin-1":          {&rewind.ItemState{Bytes: &size, SHA256: "x", Content: []byte("a\xe9b")}, "", "it is not UTF-8 text"},
	} {
		if text, why := textOf(tt.state); text != tt.text || why != tt.why {
			t.Errorf("%s: got %q, %q, want %q, %q", name, text, why, tt.text, tt.why)
		}
	}
}

func TestTextsAreNotComparedForACallerWhoHasLeft(t *testing.T) {
	t.Parallel()
	d := &difference{Difference: &rewind.Difference{Added: []rewind.DiffItem{{Path: "a", ItemState: rewind.ItemState{SHA256: "x"}}}}}
	left := errors.New("left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(left)
	if err := d.takeTexts(ctx); !errors.Is(err, left) || len(d.Texts) != 0 {
		t.Errorf("got %v and %+v", err, d.Texts)
	}
}
