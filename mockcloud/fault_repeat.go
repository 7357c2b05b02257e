package mockcloud

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	partNumber = "{n}"
	callNumber = "{call}"
	// repeatBuffer is how much of a repeated body is written at a time, in bytes.
	repeatBuffer = 64 << 10
)

// body returns what writes the body to the response of the call of this number.
func (r *Repetition) body(call int64) func(http.ResponseWriter) {
	numbered := func(text string) string { return strings.ReplaceAll(text, callNumber, strconv.FormatInt(call, 10)) }
	start, part, end := numbered(r.Start), strings.Split(numbered(r.Part), partNumber), numbered(r.End)
	return func(w http.ResponseWriter) {
		out := bufio.NewWriterSize(w, repeatBuffer)
		_, err := out.WriteString(start)
		var number []byte
		for n := 1; err == nil && (r.Times == 0 || n <= r.Times); n++ {
			number = strconv.AppendInt(number[:0], int64(n), 10)
			for i, text := range part {
				if i > 0 {
					_, _ = out.Write(number)
				}
				_, err = out.WriteString(text)
			}
		}
		// A bufio.Writer keeps its first error.
		_, _ = out.WriteString(end)
		_ = out.Flush()
	}
}

// compress compresses the body. It adds the header before the body is sent.
func (a *answer) compress() {
	a.header.Set("Content-Encoding", "gzip")
	a.header.Del("Content-Length")
	write := a.stream
	if write == nil {
		body := a.body
		write = func(w http.ResponseWriter) { _, _ = w.Write(body) }
	}
	a.body = nil
	a.stream = func(w http.ResponseWriter) {
		packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return
		}
		write(packedResponse{ResponseWriter: w, to: packed})
		_ = packed.Close()
	}
}

// packedResponse writes the body to another writer.
type packedResponse struct {
	http.ResponseWriter
	to io.Writer
}

func (p packedResponse) Write(data []byte) (int, error) { return p.to.Write(data) }
