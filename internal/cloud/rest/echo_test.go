package rest

import (
	"net/http"
	"strings"
	"testing"
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
