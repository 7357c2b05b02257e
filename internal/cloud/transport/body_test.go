package transport

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestBodyIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call   Call
		status int
		size   int
		// bound is where reading fails, 0 if it does not.
		bound int64
	}{
		"success within its bound: read":         {Call{MaxBody: 10}, 200, 10, 0},
		"success beyond its bound: fails":        {Call{MaxBody: 10}, 200, 11, 10},
		"success without a bound: the default":   {Call{}, 201, DefaultMaxBody + 1, DefaultMaxBody},
		"error within the bound of errors: read": {Call{MaxBody: 10}, 500, MaxErrorBody, 0},
		"error beyond the bound of errors":       {Call{MaxBody: DefaultMaxBody}, 404, MaxErrorBody + 1, MaxErrorBody},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTransport(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = w.Write(make([]byte, test.size))
			})
			_, body, err := fetch(WithCall(t.Context(), test.call), c.Client(), http.MethodGet, endpoint)
			if test.bound == 0 {
				if err != nil || len(body) != test.size {
					t.Errorf("%d bytes, %v; want %d", len(body), err, test.size)
				}
				return
			}
			tooLarge, ok := errors.AsType[*http.MaxBytesError](err)
			if !ok || tooLarge.Limit != test.bound || len(body) != int(test.bound) {
				t.Errorf("%d bytes, %v; want an error after %d", len(body), err, test.bound)
			}
		})
	}
}

func TestBodyIsBoundedByUnpackedSize(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(strings.Repeat(" ", 1<<20))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(server.Close)
	c := newTransport(t, nil, func(cfg *Config) { cfg.Base = nil })
	t.Cleanup(c.CloseIdleConnections)
	_, _, err := fetch(WithCall(t.Context(), Call{MaxBody: 1 << 16}), c.Client(), http.MethodGet, server.URL)
	if _, ok := errors.AsType[*http.MaxBytesError](err); !ok || packed.Len() > 1<<16 {
		t.Errorf("%v for %d bytes packed, want the unpacked ones bounded", err, packed.Len())
	}
}
