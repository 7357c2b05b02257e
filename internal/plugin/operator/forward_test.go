package operator_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/privatecloud/operator/internal/plugin/operator"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

// TestPortsAreForwarded shows that managers are asked through the API server, of which each
// request names the pod: here of a standby, and of a leader.
func TestPortsAreForwarded(t *testing.T) {
	t.Parallel()
	pods := map[string]*httptest.Server{
		"standby": httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"reason":"NotLeading","message":"this replica does not lead"}`)
		})),
		"leader": httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.Host, "127.0.0.1:") {
				t.Errorf("the header Host is %q", r.Host)
			}
			_, _ = io.WriteString(w, `{"cloud":"home","braked":true}`)
		})),
	}
	server := httptest.NewServer(apiServer{t, pods})
	t.Cleanup(server.Close)
	standby, leader := pod("system", corev1.PodRunning, "--diagnostics-bind-address=127.0.0.1:8082"), pod("system", corev1.PodRunning, "--diagnostics-bind-address", "127.0.0.1:8082")
	standby.Name, leader.Name = "standby", "leader"
	for _, backend := range pods {
		t.Cleanup(backend.Close)
	}
	env := envOf(plugintest.NewClient(t, standby, leader))
	*env.Config.APIServer = server.URL
	o, err := operator.Connect(t.Context(), env, operator.Flags{Namespace: "system"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	for range 2 {
		c, err := o.Cloud(t.Context(), "home")
		if err != nil || c.Cloud != "home" || !c.Braked {
			t.Errorf("Cloud %+v, %v", c, err)
		}
	}
}

func TestPodRefusesTheForwardedConnection(t *testing.T) {
	t.Parallel()
	ended := httptest.NewServer(nil)
	ended.Close()
	server := httptest.NewServer(apiServer{t, map[string]*httptest.Server{"manager": ended}})
	t.Cleanup(server.Close)
	env := envOf(plugintest.NewClient(t, pod("system", corev1.PodRunning, "--diagnostics-bind-address=127.0.0.1:8082")))
	*env.Config.APIServer = server.URL
	o, err := operator.Connect(t.Context(), env, operator.Flags{Namespace: "system"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	_, err = o.Cloud(t.Context(), "home")
	const want = "the operator (system/manager) does not serve diagnostics: upgrade the operator"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// apiServer forwards ports to pods over SPDY, as API servers do that know no websockets for it.
type apiServer struct {
	t    *testing.T
	pods map[string]*httptest.Server
}

func (s apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/portforward"), "/api/v1/namespaces/system/pods/")
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "no websockets", http.StatusForbidden)
		return
	case !ok || s.pods[name] == nil:
		s.t.Errorf("unexpected request of %s", r.URL)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		s.t.Error(err)
		return
	}
	streams := make(chan httpstream.Stream, 16)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if connection == nil {
		s.t.Error("the connection cannot be upgraded")
		return
	}
	defer connection.Close()
	for {
		select {
		case stream := <-streams:
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				if port := stream.Headers().Get(corev1.PortHeader); port != "8082" {
					s.t.Errorf("port %s is forwarded", port)
				}
				go s.forward(stream, s.pods[name].Listener.Addr().String())
			} else {
				_ = stream.Close() // no error
			}
		case <-connection.CloseChan():
			return
		}
	}
}

func (s apiServer) forward(stream httpstream.Stream, address string) {
	to, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", address)
	if err != nil {
		_ = stream.Reset() // nobody listens in the pod
		return
	}
	var copies sync.WaitGroup
	copies.Go(func() { _, _ = io.Copy(to, stream); _ = to.(*net.TCPConn).CloseWrite() })
	copies.Go(func() { _, _ = io.Copy(stream, to); _ = stream.Close() })
	copies.Wait()
	_ = to.Close()
}
