package setup_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	clientconfig "k8s.io/client-go/rest"

	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// TestGroupWaitsForAnAPIServerWithTooManyRequests refuses creates of members as API
// priority and fairness does.
func TestGroupWaitsForAnAPIServerWithTooManyRequests(tt *testing.T) {
	for name, test := range map[string]struct {
		retryAfter string
		refusals   int
	}{
		"the client sends them again": {"1", 3},
		"the client gives up":         {"", 3},
	} {
		tt.Run(name, func(tt *testing.T) {
			const members, free = 20, 5
			r := newReplicas(tt)
			cloud, err := testkit.ServeCloud(mockcloud.Options{})
			r.Expect(err).NotTo(HaveOccurred())
			r.Cleanup(func() { r.Expect(cloud.Close()).To(Succeed()) })
			full := &throttle{free: free, left: test.refusals, retryAfter: test.retryAfter}
			user := clientconfig.CopyConfig(r.user)
			user.Wrap(full.wrap)
			manager := r.start(user, setup.Options{})
			r.Cleanup(func() { r.Expect(manager.Stop()).To(Succeed()) })

			r.Expect(r.env.Client.Create(r.Context(), testkit.Cloud("default", cloud.URL))).To(Succeed())
			group := testkit.VmGroup("default", "web")
			group.Spec.Replicas = new(int32(members))
			r.Expect(r.env.Client.Create(r.Context(), group)).To(Succeed())
			r.Eventually(r.ready(group)).Should(testkit.BeReady())
			r.Eventually(r.eventsOf(group)).Should(ContainElement("Reconciled"))

			r.Expect(group.Status.ReadyReplicas).To(BeEquivalentTo(members))
			reasons, err := r.eventsOf(group)(r.Context())
			r.Expect(err).NotTo(HaveOccurred())
			r.Expect(reasons).NotTo(ContainElement("Error"), "events of the group")
			created := slices.DeleteFunc(slices.Clone(reasons), func(reason string) bool { return reason != "MembersCreated" })
			r.Expect(created).To(HaveLen(1), "events of the creation: %v", reasons)
			r.Expect(full.remaining()).To(BeZero(), "refusals that were not sent")
		})
	}
}

// throttle refuses some creates of VMs with 429.
type throttle struct {
	// retryAfter is the Retry-After of refusals; empty for none.
	retryAfter string

	mu sync.Mutex
	// free is how many creates are accepted before, and left how many are still refused.
	free, left int
}

func (l *throttle) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/vms") || !l.refuses() {
			return next.RoundTrip(r)
		}
		response := &http.Response{
			StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader("Too many requests, please try again later.\n")),
		}
		if l.retryAfter != "" {
			response.Header.Set("Retry-After", l.retryAfter)
		}
		return response, nil
	})
}

func (l *throttle) remaining() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

func (l *throttle) refuses() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free > 0 {
		l.free--
		return false
	}
	if l.left == 0 {
		return false
	}
	l.left--
	return true
}
