package diagnostics

import (
	"encoding/json"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/fairqueue"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// maxRequests bounds the requests under way: one that lists servers takes memory for
// their names.
const maxRequests = 4

// Options are what is served.
type Options struct {
	Version string
	// Cluster identifies this cluster in the labels of servers.
	Cluster string
	// Scope is the part of all Clouds that the manager reconciles.
	Scope tenancy.Scope
	// Cache reads objects, with the indexes of the VM controller.
	Cache client.Reader
	// Directory holds the inventories of all Clouds.
	Directory *inventory.Directory
	History   *reconciler.History
	Queues    *fairqueue.Queues
	Metrics   prometheus.Gatherer
	// Leading reports whether this process may act; nil for always.
	Leading func() bool
}

type handler struct{ Options }

// NewHandler returns what answers requests.
func NewHandler(options Options) http.Handler {
	h := &handler{options}
	mux := http.NewServeMux()
	mux.HandleFunc(wire.VersionPath, h.version)
	mux.HandleFunc(wire.AllClouds, h.leader(h.clouds))
	mux.HandleFunc(wire.CloudsPath+"{cloud}", h.leader(h.cloud))
	mux.HandleFunc(wire.CloudsPath+"{cloud}/servers", h.leader(h.servers))
	mux.HandleFunc(wire.ObjectsPath+"{kind}/{namespace}/{name}", h.leader(h.object))
	mux.Handle(wire.MetricsPath, promhttp.HandlerFor(options.Metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, wire.NotFound, "there is no such path: the plugin may be newer than the operator")
	})
	return guard(mux)
}

// guard refuses what does not read, and requests of pages of other sites whose name
// resolves to this machine (DNS rebinding).
func guard(next http.Handler) http.Handler {
	slots := make(chan struct{}, maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(r.Host); err == nil {
			host = name
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case !loopback(host):
			refuse(w, http.StatusForbidden, wire.Invalid, "the header Host must be 127.0.0.1, [::1] or localhost")
			return
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			refuse(w, http.StatusMethodNotAllowed, wire.Invalid, "only GET is allowed")
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// leader refuses requests while another process leads.
func (h *handler) leader(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.leading() {
			refuse(w, http.StatusServiceUnavailable, wire.NotLeading, "this replica does not lead: ask the others")
			return
		}
		next(w, r)
	}
}

func (h *handler) leading() bool { return h.Leading == nil || h.Leading() }

func (h *handler) version(w http.ResponseWriter, _ *http.Request) {
	answer(w, wire.Version{Version: h.Version, Leading: h.leading()})
}

func (h *handler) object(w http.ResponseWriter, r *http.Request) {
	object := wire.Object{Kind: r.PathValue("kind"), Namespace: r.PathValue("namespace"), Name: r.PathValue("name"), Steps: []wire.Step{}}
	if object.Namespace == wire.NoNamespace {
		object.Namespace = ""
	}
	for _, past := range h.History.Of(object.Kind, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}) {
		object.Steps = append(object.Steps, wire.Step{
			Step: past.Step, Time: past.Time.UTC(), DurationSeconds: past.Duration.Seconds(), Reason: past.Reason, Message: past.Message,
		})
	}
	answer(w, object)
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the client sees an answer that was cut
}

func refuse(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(wire.Error{Reason: reason, Message: message})
}
