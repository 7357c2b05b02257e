package transport

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

const maxRedirects = 3

// followRedirects follows a GET within the same scheme, host and port, three
// times at most. Any other redirect is returned as the answer: a change that is
// sent twice, or credentials that are sent elsewhere, are worse than an error.
// It follows below the other wrappers, so that a request takes one slot and is
// counted once, however often it is redirected.
func followRedirects(next http.RoundTripper) http.RoundTripper {
	client := &http.Client{Transport: next, CheckRedirect: checkRedirect}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := client.Do(req)
		if err == nil {
			return resp, nil
		}
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			// The client that wears the transport adds the method and the URL, too.
			err = wrapped.Err
		}
		return nil, err
	})
}

func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || len(via) > maxRedirects || !sameOrigin(next.URL, first.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
