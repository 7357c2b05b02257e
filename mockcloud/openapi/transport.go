package openapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// Report is called with each violation, possibly from several goroutines. Tests
// call t.Error in it.
type Report func(error)

// Transport wraps the transport of a client and checks its requests and the
// responses of the server. It does not check calls that fail, calls of the admin
// endpoints, and responses that are marked as quirky. Base is
// http.DefaultTransport if nil.
func Transport(base http.RoundTripper, report Report) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base: base, report: report}
}

type transport struct {
	base   http.RoundTripper
	report Report
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if Admin(r.URL.Path) {
		return t.base.RoundTrip(r)
	}
	var body []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		body, err = io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
		// A RoundTripper must not change the request.
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if err := CheckRequest(r, body); err != nil {
		t.report(err)
	}
	answer, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if quirky(answer.Header) {
		return answer, nil
	}
	if streaming(answer.Header) {
		t.check(r, answer, nil)
		return answer, nil
	}
	data, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(&replayed{data: data, err: err})
	if err == nil {
		t.check(r, answer, data)
	}
	return answer, nil
}

func (t *transport) check(r *http.Request, answer *http.Response, body []byte) {
	if err := CheckAnswer(r, answer.StatusCode, answer.Header, body); err != nil {
		t.report(err)
	}
}

// replayed is a body that was read, with the error that ended reading it.
type replayed struct {
	data []byte
	err  error
}

func (b *replayed) Read(into []byte) (int, error) {
	if len(b.data) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		return 0, io.EOF
	}
	n := copy(into, b.data)
	b.data = b.data[n:]
	return n, nil
}
