package transport

import (
	"cmp"
	"io"
	"net/http"
	"sync"
)

const (
	// DefaultMaxBody bounds the body of a successful answer, in bytes, where its
	// Call has no MaxBody.
	DefaultMaxBody = 32 << 20
	// MaxErrorBody bounds the body of any other answer, in bytes.
	MaxErrorBody = 64 << 10
)

// boundBody makes reading an answer fail with *http.MaxBytesError beyond its
// bound. Compressed bodies count as what they unpack to.
func boundBody(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		bound := int64(MaxErrorBody)
		if resp.StatusCode >= 200 && resp.StatusCode < 300 {
			bound = cmp.Or(callOf(req.Context()).MaxBody, DefaultMaxBody)
		}
		resp.Body = http.MaxBytesReader(nil, resp.Body, bound)
		return resp, nil
	})
}

// onClose calls f when the body of resp is closed for the first time: an
// exchange lasts until then.
func onClose(resp *http.Response, f func()) {
	resp.Body = &closeNotifier{ReadCloser: resp.Body, f: f}
}

type closeNotifier struct {
	io.ReadCloser
	once sync.Once
	f    func()
}

func (n *closeNotifier) Close() error {
	err := n.ReadCloser.Close()
	n.once.Do(n.f)
	return err
}
