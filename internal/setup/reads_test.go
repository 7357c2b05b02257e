package setup

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var testStart = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

type fakeReader struct{ kind, version string }

func (r *fakeReader) TypeDescription() string         { return r.kind }
func (r *fakeReader) LastSyncResourceVersion() string { return r.version }

var (
	errDecode    = errors.New(`failed to list *v1alpha1.VM: parsing time "2026-11-27t02:00:00z"`)
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "vms"}, "", errors.New("no right"))
)

func TestReadsThatFailAgainMakeTheReplicaUnready(t *testing.T) {
	for name, err := range map[string]error{"cannot be decoded": errDecode, "the operator lacks the right": errForbidden} {
		t.Run(name, func(t *testing.T) {
			clock := testStart
			reads, vms := newReadFailures(func() time.Time { return clock }), &fakeReader{kind: "*v1alpha1.VM"}
			reads.observe(vms, err)
			if err := reads.check(nil); err != nil {
				t.Errorf("after one failure: %v", err)
			}
			clock = clock.Add(time.Minute)
			reads.observe(vms, err)
			if got := reads.check(nil); got == nil || !strings.Contains(got.Error(), "VM objects cannot be read") || !strings.Contains(got.Error(), err.Error()) {
				t.Errorf("after two failures: %v", got)
			}
			const metric = `# HELP privatecloud_cache_read_failing 1 for each kind that this replica cannot read from the API server, so that no object of it is reconciled.
# TYPE privatecloud_cache_read_failing gauge
privatecloud_cache_read_failing{kind="VM"} 1
`
			if err := testutil.CollectAndCompare(reads, strings.NewReader(metric)); err != nil {
				t.Error(err)
			}
			vms.version = "7" // it was read
			if err := reads.check(nil); err != nil || testutil.CollectAndCount(reads) != 0 {
				t.Errorf("after it was read: %v, %d series", err, testutil.CollectAndCount(reads))
			}
		})
	}
}

func TestFailureOfAStoppedCacheIsForgotten(t *testing.T) {
	clock := testStart
	reads, vms := newReadFailures(func() time.Time { return clock }), &fakeReader{kind: "*v1alpha1.VM", version: "3"}
	reads.observe(vms, errDecode)
	reads.observe(vms, errDecode)
	clock = clock.Add(readsKept + time.Second)
	if err := reads.check(nil); err != nil {
		t.Error(err)
	}
}

func TestAPIServerThatIsAwayMakesNoReplicaUnready(t *testing.T) {
	for name, err := range map[string]error{
		"it refuses connections":       fmt.Errorf("failed to list: %w", &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: errors.New("connection refused")}),
		"the watch ends":               io.EOF,
		"the watch breaks":             io.ErrUnexpectedEOF,
		"the version is too old":       apierrors.NewResourceExpired("too old"),
		"it is busy":                   apierrors.NewTooManyRequests("busy", 1),
		"it is not ready":              apierrors.NewServiceUnavailable("starting"),
		"it does not answer in time":   apierrors.NewTimeoutError("slow", 1),
		"a proxy before it waits long": apierrors.NewServerTimeout(schema.GroupResource{}, "list", 1),
	} {
		t.Run(name, func(t *testing.T) {
			reads, vms := newReadFailures(time.Now), &fakeReader{kind: "*v1alpha1.VM"}
			for range 5 {
				reads.observe(vms, err)
			}
			if err := reads.check(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestErrorOfAReadIsShownInPart(t *testing.T) {
	reads, vms := newReadFailures(time.Now), &fakeReader{kind: "*v1alpha1.VM"}
	for range 2 {
		reads.observe(vms, errors.New(strings.Repeat("ä", 1<<20)))
	}
	if err := reads.check(nil); err == nil || len(err.Error()) > 2*maxReadError {
		t.Errorf("%d bytes", len(fmt.Sprint(err)))
	}
}
