package zvmtest

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

var errTruncated = errors.New("the rest is cut off")

// truncatingWriter lets the headers and a number of bytes pass.
type truncatingWriter struct {
	http.ResponseWriter
	left int
}

func (w *truncatingWriter) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	n, err := w.ResponseWriter.Write(p[:w.left])
	w.left = 0
	if err == nil {
		err = errTruncated
	}
	return n, err
}

// retypingWriter changes the type of what is answered.
type retypingWriter struct {
	http.ResponseWriter
	contentType string
}

func (w *retypingWriter) WriteHeader(status int) {
	w.Header().Set("Content-Type", w.contentType)
	w.ResponseWriter.WriteHeader(status)
}

func (w *retypingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// drippingWriter lets a body pass in small pieces.
type drippingWriter struct {
	http.ResponseWriter
	s    *Server
	ctx  context.Context
	plan faultPlan
}

func (w *drippingWriter) Write(p []byte) (int, error) {
	written := 0
	for piece := range slices.Chunk(p, w.plan.bytes) {
		if !w.s.pause(w.ctx, w.plan.interval) {
			return written, errTruncated
		}
		n, err := w.ResponseWriter.Write(piece)
		written += n
		if err == nil {
			err = http.NewResponseController(w.ResponseWriter).Flush()
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (w *drippingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// statusWriter remembers the status for the request log.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
