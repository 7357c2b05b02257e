package clouds

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// worker is a runnable like a controller, which works on for a while when the
// manager stops.
type worker struct{ started, stopping, finish chan struct{} }

func (w worker) Start(ctx context.Context) error {
	close(w.started)
	<-ctx.Done()
	close(w.stopping)
	<-w.finish
	return nil
}

func TestManagerClosesClientsAfterItsControllers(t *testing.T) {
	h := newHarness(t)
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Scheme: h.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return &informertest.FakeInformers{}, nil },
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return h.client.RESTMapper(), nil },
	})
	if err != nil {
		t.Fatalf("NewManager: %v", err)
	}
	w := worker{started: make(chan struct{}), stopping: make(chan struct{}), finish: make(chan struct{})}
	if err := mgr.Add(w); err != nil {
		t.Fatalf("Add: %v", err)
	}
	if err := mgr.Add(h.Closer(mgr.GetCache())); err != nil {
		t.Fatalf("Add: %v", err)
	}
	h.connect(home())
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	<-w.started
	stop()
	<-w.stopping
	if _, err := h.Get(t.Context(), home()); err != nil {
		t.Errorf("a controller that has not ended: %v", err)
	}
	h.dialed[0].wantOpen(t)
	close(w.finish)
	if err := <-stopped; err != nil {
		t.Errorf("the manager: %v", err)
	}
	h.dialed[0].wantClosed(t)
	if h.dialed[0].left > closeTimeout {
		t.Errorf("Close had %s, want at most %s", h.dialed[0].left, closeTimeout)
	}
	if _, err := h.Get(t.Context(), home()); !errors.Is(err, errClosed) {
		t.Errorf("after the manager: %v, want %v", err, errClosed)
	}
}
