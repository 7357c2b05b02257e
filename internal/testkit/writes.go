package testkit

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Writes records the changes that clients of one configuration requested, oldest first.
type Writes struct {
	mu   sync.Mutex
	made []string
}

// Count records every change that is requested with config.
func (w *Writes) Count(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				w.mu.Lock()
				w.made = append(w.made, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/apis"))
				w.mu.Unlock()
			}
			return next.RoundTrip(r)
		})
	})
}

// To returns the changes whose path contains each of parts, as method and path.
func (w *Writes) To(parts ...string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, made := range w.made {
		if containsAll(made, parts) {
			found = append(found, made)
		}
	}
	return found
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
