package openapi

import (
	"bytes"
	"io"
	"net/http"
)

// Handler wraps the handler of a server and checks the same as Transport, for a
// client in another process. It does not check responses without a status, and
// those that are marked as quirky.
func Handler(next http.Handler, report Report) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Admin(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			report(err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err := CheckRequest(r, body); err != nil {
			report(err)
		}
		copied := &copier{ResponseWriter: w}
		next.ServeHTTP(copied, r)
		if copied.status == 0 || quirky(w.Header()) {
			return
		}
		if err := CheckAnswer(r, copied.status, w.Header(), copied.body.Bytes()); err != nil {
			report(err)
		}
	})
}

// copier records the response, except event streams and quirky responses.
type copier struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (c *copier) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *copier) Write(data []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if !streaming(c.Header()) && !quirky(c.Header()) {
		c.body.Write(data)
	}
	return c.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController flush and hijack.
func (c *copier) Unwrap() http.ResponseWriter { return c.ResponseWriter }
