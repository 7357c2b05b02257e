package setup_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// lag holds back what the watches of a resource report between begin and end, as a slow
// watch does.
type lag struct {
	// resource is the plural name of the resource.
	resource string

	mu   sync.Mutex
	over chan struct{}
}

func newLag(resource string) *lag {
	l := &lag{resource: resource, over: make(chan struct{})}
	close(l.over)
	return l
}

// begin begins a lag. The last one must have ended.
func (l *lag) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = make(chan struct{})
}

// end ends the lag, if there is one.
func (l *lag) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.over:
	default:
		close(l.over)
	}
}

func (l *lag) wait() {
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	<-over
}

// wrap returns a transport whose watches of the resource lag.
func (l *lag) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && strings.HasSuffix(r.URL.Path, "/"+l.resource) && r.URL.Query().Has("watch") {
			response.Body = lagging{ReadCloser: response.Body, lag: l}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lagging is the body of a watch.
type lagging struct {
	io.ReadCloser
	lag *lag
}

// Read returns what was sent once the lag is over.
func (b lagging) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.lag.wait()
	return n, err
}
