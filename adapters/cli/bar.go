package cli

import (
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"
)

// bar shows how far a download has come, on the last line of a terminal, until something else is said. It is safe for
// concurrent use; the zero value shows nothing.
type bar struct {
	mu    sync.Mutex
	shown *progressbar.ProgressBar
}

// start is the moment from which the rate counts. A download that ends before it has much to show never has a bar.
func (b *bar) start(to io.Writer, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if total <= 0 {
		total = -1 // not known
	}
	b.shown = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(to),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetSpinnerChangeInterval(0), // it would spin in a goroutine of its own
		progressbar.OptionClearOnFinish(),
	)
}

func (b *bar) show(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown != nil {
		_ = b.shown.Set64(bytes) // more than there should be is said by the download
	}
}

func (b *bar) hide() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown != nil {
		_ = b.shown.Clear() // stderr is the last place to complain at
		b.shown = nil
	}
}
