package cloud

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestBootstrapCreatesTheDefaultCloudOnce(t *testing.T) {
	get := func(w *world) *pcapi.Cloud {
		c := &pcapi.Cloud{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: pcapi.DefaultCloudName}, c); err != nil {
			t.Fatalf("Get: %v", err)
		}
		return c
	}
	w := newWorld(t, home(), nil)
	for _, endpoint := range []string{"http://first.test", "http://second.test"} {
		b := Bootstrap{Client: w.client, Endpoint: endpoint}
		if err := b.Start(t.Context()); err != nil {
			t.Fatalf("Start: %v", err)
		}
		if !b.NeedLeaderElection() {
			t.Error("a standby would write")
		}
		if allowed := get(w).Spec.AllowedNamespaces; allowed == nil || allowed.String() != (&metav1.LabelSelector{}).String() {
			t.Errorf("allowedNamespaces = %v, want {}, which allows all namespaces", allowed)
		}
		equal(t, "endpoint: what is there is not changed", "http://first.test", get(w).Spec.Endpoint)
	}
	if err := (Bootstrap{Client: uncreatable{w.client}, Endpoint: "http://first.test"}).Start(t.Context()); err != nil {
		t.Errorf("Start = %v, want no create where the Cloud exists", err)
	}
	b := Bootstrap{Client: uncreatable{newWorld(t, home(), nil).client}, Endpoint: "http://first.test"}
	if err := b.Start(t.Context()); !errors.Is(err, errAPIAway) || !strings.Contains(err.Error(), "--default-cloud-endpoint") {
		t.Errorf("Start = %v, want the flag in it", err)
	}
}

type uncreatable struct{ client.Client }

func (uncreatable) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errAPIAway
}

func TestBootstrapWaitsUntilTheWebhookCanBeCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, home(), nil)
		c := &reviewedLater{Client: w.client, failures: 3}
		begin := time.Now()
		if err := (Bootstrap{Client: c, Endpoint: "http://first.test"}).Start(t.Context()); err != nil {
			t.Fatalf("Start: %v", err)
		}
		equal(t, "waited", 3*bootstrapInterval, time.Since(begin))
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: pcapi.DefaultCloudName}, &pcapi.Cloud{}); err != nil {
			t.Errorf("Get: %v", err)
		}

		var infos, errs int
		logger := funcr.New(func(_, line string) {
			switch {
			case !strings.Contains(line, "the default Cloud is not created yet"):
			case strings.HasPrefix(line, `"level"=0`):
				infos++
			default:
				errs++
			}
		}, funcr.Options{})
		ctx, cancel := context.WithTimeout(log.IntoContext(t.Context(), logger), bootstrapQuiet+9*bootstrapSlow/2)
		defer cancel()
		never := &reviewedLater{Client: newWorld(t, home(), nil).client, failures: 1000}
		if err := (Bootstrap{Client: never, Endpoint: "http://first.test"}).Start(ctx); err != nil {
			t.Errorf("Start = %v, want no error of a manager that stops", err)
		}
		equal(t, "it waits until the manager stops", context.DeadlineExceeded, ctx.Err())
		equal(t, "attempts within a minute", 30, infos)
		equal(t, "attempts after it, which are errors", 5, errs)
	})
}

// reviewedLater fails creates as an API server that cannot call a webhook.
type reviewedLater struct {
	client.Client
	failures int
}

func (r *reviewedLater) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	if r.failures > 0 {
		r.failures--
		return apierrors.NewInternalError(errors.New("failed calling webhook"))
	}
	return r.Client.Create(ctx, object, opts...)
}
