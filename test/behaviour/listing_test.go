package behaviour_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// hanging is a cloud that does not answer when its servers are listed.
type hanging struct {
	*httptest.Server
	// listings is the number of calls that wait for an answer.
	listings atomic.Int32
}

func serveHanging(t *T) *hanging {
	t.Helper()
	target, err := url.Parse(serveCloud(t, mockcloud.Options{}).URL)
	t.Expect(err).NotTo(HaveOccurred())
	h, answers := &hanging{}, httputil.NewSingleHostReverseProxy(target)
	end := make(chan struct{})
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/servers" {
			answers.ServeHTTP(w, r)
			return
		}
		h.listings.Add(1)
		defer h.listings.Add(-1)
		select {
		case <-r.Context().Done():
		case <-end:
		}
	}))
	t.Cleanup(h.Close)
	t.Cleanup(func() { close(end) })
	return h
}

func TestCloudsThatHangDelayNoListingOfOthers(tt *testing.T) {
	t := newT(tt)
	const clouds = 40
	f, h := newFixture(t, mockcloud.Options{}), serveHanging(t)
	for range clouds {
		createCloud(t, h.URL)
	}
	t.Eventually(h.listings.Load).Should(BeNumerically(">", clouds/2), "most of them are being listed")

	f.waitForPolls(2)
	fresh := createCloud(t, f.URL)
	t.Eventually(latest(fresh)).Should(testkit.BeReady(), "a new Cloud is connected")
	t.Expect(h.listings.Load()).To(BeNumerically(">", clouds/2), "most of them still hang")
}
