package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// readsKept is how long a failure counts after it was last observed. A reflector tries again
	// within a minute.
	readsKept = 2 * time.Minute
	// maxReadError bounds what is shown of an error, in bytes. It may contain what users wrote.
	maxReadError = 256
)

// readFailures are the kinds that caches cannot read from the API server: an object cannot be
// decoded, or the operator lacks the right. No object of such a kind is reconciled. A
// failure counts from the second time on, and until the cache has read a newer version. Errors
// of an API server that is unavailable do not count.
type readFailures struct {
	now func() time.Time

	mu sync.Mutex
	of map[reader]readFailure
}

// reader is a reflector of client-go.
type reader interface {
	TypeDescription() string
	LastSyncResourceVersion() string
}

type readFailure struct {
	kind, version string
	err           error
	times         int
	last          time.Time
}

func newReadFailures(now func() time.Time) *readFailures {
	return &readFailures{now: now, of: map[reader]readFailure{}}
}

// handle is the handler of the errors of all watches.
func (f *readFailures) handle(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err) // logs it
	f.observe(r, err)
}

func (f *readFailures) observe(r reader, err error) {
	if temporary(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	description := r.TypeDescription()
	f.of[r] = readFailure{
		kind: description[strings.LastIndex(description, ".")+1:], version: r.LastSyncResourceVersion(),
		err: err, times: f.of[r].times + 1, last: f.now(),
	}
}

// forget drops the failures that no longer count. The caller holds mu.
func (f *readFailures) forget() {
	for r, failure := range f.of {
		if r.LastSyncResourceVersion() != failure.version || f.now().Sub(failure.last) > readsKept {
			delete(f.of, r)
		}
	}
}

// present returns the errors of the kinds that cannot be read.
func (f *readFailures) present() map[string]error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	found := map[string]error{}
	for _, failure := range f.of {
		if failure.times > 1 {
			found[failure.kind] = failure.err
		}
	}
	return found
}

// check is the readiness check.
func (f *readFailures) check(*http.Request) error {
	var texts []string
	for kind, err := range f.present() {
		text := err.Error()
		texts = append(texts, fmt.Sprintf("%s objects cannot be read, so that none is reconciled: %s", kind, strings.ToValidUTF8(text[:min(len(text), maxReadError)], "")))
	}
	if len(texts) == 0 {
		return nil
	}
	slices.Sort(texts)
	return errors.New(strings.Join(texts, "; "))
}

var readFailing = prometheus.NewDesc("privatecloud_cache_read_failing",
	"1 for each kind that this replica cannot read from the API server, so that no object of it is reconciled.", []string{"kind"}, nil)

// Describe implements prometheus.Collector.
func (f *readFailures) Describe(to chan<- *prometheus.Desc) { to <- readFailing }

// Collect implements prometheus.Collector.
func (f *readFailures) Collect(to chan<- prometheus.Metric) {
	for kind := range f.present() {
		to <- prometheus.MustNewConstMetric(readFailing, prometheus.GaugeValue, 1, kind)
	}
}

// temporary reports whether an error passes once the API server is available again.
func temporary(err error) bool {
	var network net.Error
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
