package transport

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestRedirects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method, location string
		// want are the URLs of the requests that were sent.
		want   []string
		status int
	}{
		"a GET within its origin: followed":           {"GET", "/v2", []string{endpoint + "/v1", endpoint + "/v2"}, 200},
		"the same origin with its default port":       {"GET", "http://CLOUD.test:80/v2", []string{endpoint + "/v1", "http://CLOUD.test:80/v2"}, 200},
		"another host: returned":                      {"GET", "http://elsewhere.test/v2", []string{endpoint + "/v1"}, 307},
		"another port: returned":                      {"GET", "http://cloud.test:81/v2", []string{endpoint + "/v1"}, 307},
		"another scheme: returned":                    {"GET", "https://cloud.test/v2", []string{endpoint + "/v1"}, 307},
		"a POST within its origin: returned":          {"POST", "/v2", []string{endpoint + "/v1"}, 307},
		"a DELETE within its origin: returned":        {"DELETE", "/v2", []string{endpoint + "/v1"}, 307},
		"a loop: followed three times, then returned": {"GET", "/v1", []string{endpoint + "/v1", endpoint + "/v1", endpoint + "/v1", endpoint + "/v1"}, 307},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []string
			reg := prometheus.NewPedanticRegistry()
			c := newTransport(t, func(w http.ResponseWriter, r *http.Request) {
				sent = append(sent, r.URL.String())
				if r.URL.Path == "/v1" {
					w.Header().Set("Location", test.location)
					w.WriteHeader(http.StatusTemporaryRedirect)
				}
			}, limited(Limits{RequestsPerSecond: 1, Burst: 1, MaxInFlight: 1}), func(cfg *Config) { cfg.Metrics = NewMetrics(reg) })
			status, _, err := fetch(t.Context(), c.Client(), test.method, endpoint+"/v1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, sent); diff != "" || status != test.status {
				t.Errorf("status %d, want %d; requests (-want +got):\n%s", status, test.status, diff)
			}
			if counts := requestCounts(t, reg); len(counts) != 1 {
				t.Errorf("counted %v, want one request", counts)
			}
		})
	}
}
