package rest

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// TestHeadersThatQuoteTheTokenAreNotShown holds that errors, which quote hosts of
// redirects and content types, do not quote a token in them.
func TestHeadersThatQuoteTheTokenAreNotShown(t *testing.T) {
	t.Parallel()
	const token = "hunter2-hunter2"
	for name, header := range map[string]map[string]string{
		"the host of a redirect":          {"Location": "https://" + token + ".elsewhere.example/"},
		"the host of a redirect, escaped": {"Location": "https://%68unter2-hunter2.elsewhere.example/"},
		"a content type":                  {"Content-Type": "text/" + token},
		"a parameter of a content type":   {"Content-Type": "text/x; v=" + token},
	} {
		for _, status := range []int{http.StatusOK, http.StatusFound, http.StatusNotFound} {
			t.Run(name+" "+http.StatusText(status), func(t *testing.T) {
				t.Parallel()
				c := serve(t, answering(reply{status: status, header: header, body: "no JSON"}), func(cfg *Config) {
					cfg.Credentials = Credentials{Token: token}
				}).withCapabilities(allCapabilities()...)
				for _, verb := range []string{"get", "list"} {
					if err := verbs[verb](t.Context(), c); err == nil || strings.Contains(err.Error(), "unter2") {
						t.Errorf("%s: %v", verb, err)
					}
				}
			})
		}
	}
}

// TestLongReasonCostsLittle is not parallel: it measures what is allocated.
func TestLongReasonCostsLittle(t *testing.T) {
	c := newClient(t, "http://cloud.test", func(cfg *Config) { cfg.Credentials = Credentials{Token: "hunter2-hunter2"} })
	reason := strings.Repeat(`QUFB%25%32%35\u0041`, transport.MaxErrorBody/18)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.exchange.scrubber.reasonOf(wireProblem{Detail: reason}, http.Header{}, "", "request")
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 16 {
		t.Errorf("a reason of %d bytes took %d MiB", len(reason), mib)
	}
}
