package rest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/testkit/golden"
)

// TestRequestsAreAsRecorded compares the requests of creates and changes with those that are recorded.
func TestRequestsAreAsRecorded(t *testing.T) {
	var text strings.Builder
	var mu sync.Mutex
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&text, "%s %s\n", r.Method, r.URL.RequestURI())
		for _, header := range []string{"Content-Type", "Accept", "Idempotency-Key", "Prefer"} {
			if value := r.Header.Get(header); value != "" {
				fmt.Fprintf(&text, "%s: %s\n", header, value)
			}
		}
		fmt.Fprintf(&text, "%s\n", body)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, `{"id": "s1", "name": "web", "state": "ACTIVE"}`)
	})
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			fmt.Fprintf(&text, "error: %s: %v\n", cloud.KindOf(err), err)
		}
	}
	c := serve(t, answer)
	creates, changes := cloudtest.Creates([]string{"a", "b"}, "z1", "debian"), cloudtest.Changes()
	for _, has := range [][]cloud.Capability{allCapabilities(), nil} {
		c.withCapabilities(has...)
		for _, name := range cloudtest.Sorted(creates) {
			fmt.Fprintf(&text, "\n=== create: %s, %s\n", name, which(has))
			_, err := c.CreateServer(t.Context(), creates[name])
			note(err)
		}
		for _, name := range cloudtest.Sorted(changes) {
			fmt.Fprintf(&text, "\n=== change: %s, %s\n", name, which(has))
			_, err := c.UpdateServer(t.Context(), "s1", changes[name])
			note(err)
		}
	}
	golden.Compare(t, "requests", text.String())
}

func which(has []cloud.Capability) string {
	if len(has) == 0 {
		return "no capabilities"
	}
	return "all capabilities"
}
