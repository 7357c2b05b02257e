package transport

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestLoadShowsWhatIsUnderWayAndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{RequestsPerSecond: 10, Burst: 5, MaxInFlight: 2}
		release := make(chan struct{})
		c := newTransport(t, func(http.ResponseWriter, *http.Request) { <-release }, limited(limits))
		want := cloud.Load{RequestsPerSecond: 10, Burst: 5, MaxInFlight: 2}
		if diff := cmp.Diff(want, c.Load()); diff != "" {
			t.Errorf("at rest (-want +got):\n%s", diff)
		}
		for _, flow := range []string{"dev", "dev", "dev", "prod"} {
			go func() { _ = get(cloud.WithFlow(t.Context(), flow), c) }()
			synctest.Wait()
		}
		want.InFlight, want.Waiting = 2, 2
		want.Flows = []cloud.FlowLoad{{Name: "dev", Waiting: 1}, {Name: "prod", Waiting: 1}}
		if diff := cmp.Diff(want, c.Load()); diff != "" {
			t.Errorf("under load (-want +got):\n%s", diff)
		}
		time.Sleep(maxWait) // those that wait are refused, and come back later
		synctest.Wait()
		load := c.Load()
		if load.Waiting != 0 || len(load.Flows) != 2 || !load.Flows[0].RetryAt.After(time.Now()) {
			t.Errorf("after the wait: %+v", load)
		}
		close(release)
		synctest.Wait()
	})
}
