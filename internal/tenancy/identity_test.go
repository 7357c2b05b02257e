package tenancy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func at(endpoint string) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) { c.Spec.Endpoint = endpoint }
}

func TestSameCloudComparesEndpoints(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		one, other string
		same       bool
	}{
		"equal":                                {"https://cloud.example.com/api", "https://cloud.example.com/api", true},
		"a slash at the end":                   {"https://cloud.example.com/api", "https://cloud.example.com/api/", true},
		"slashes at the end":                   {"https://cloud.example.com", "https://cloud.example.com//", true},
		"a doubled slash inside":               {"https://cloud.example.com/a/b", "https://cloud.example.com/a//b", true},
		"no path and the root":                 {"https://cloud.example.com", "https://cloud.example.com/", true},
		"a host in upper case":                 {"https://cloud.example.com", "https://CLOUD.Example.com", true},
		"a scheme in upper case":               {"https://cloud.example.com", "HTTPS://cloud.example.com", true},
		"a final dot of the host":              {"https://cloud.example.com", "https://cloud.example.com.", true},
		"the default port of https":            {"https://cloud.example.com/api", "https://cloud.example.com:443/api", true},
		"the default port of http":             {"http://cloud.example.com", "http://cloud.example.com:80/", true},
		"an IPv6 address with its port":        {"https://[2001:db8::1]", "https://[2001:DB8::1]:443", true},
		"a percent-encoded letter in the path": {"https://cloud.example.com/api", "https://cloud.example.com/%61pi", true},
		"spaces around it":                     {"https://cloud.example.com", " https://cloud.example.com ", true},
		"the port of the other scheme":         {"https://cloud.example.com", "https://cloud.example.com:80", false},
		"another port":                         {"https://cloud.example.com:8443", "https://cloud.example.com", false},
		"another scheme":                       {"https://cloud.example.com", "http://cloud.example.com", false},
		"another host":                         {"https://cloud.example.com", "https://cloud2.example.com", false},
		"another path":                         {"https://cloud.example.com/a", "https://cloud.example.com/b", false},
		"a path in another case":               {"https://cloud.example.com/api", "https://cloud.example.com/API", false},
		"two that are no URLs":                 {"cloud", "other", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := readerOf(t, cloudWith("one", at(tc.one)), cloudWith("other", at(tc.other)))
			for from, want := range map[string][]string{"one": {"one"}, "other": {"other"}} {
				if tc.same {
					want = []string{"one", "other"}
				}
				got, err := SameCloud(t.Context(), reader, from)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("from %s (-want +got):\n%s", from, diff)
				}
			}
		})
	}
}

func TestSameCloudComparesTypes(t *testing.T) {
	t.Parallel()
	typed := func(kind pcapi.CloudType) func(*pcapi.Cloud) { return func(c *pcapi.Cloud) { c.Spec.Type = kind } }
	const endpoint = "https://cloud.example.com"
	reader := readerOf(t, cloudWith("a", at(endpoint), typed(pcapi.CloudTypeREST)), cloudWith("b", at(endpoint)), cloudWith("c", at(endpoint), typed("Memory")))
	for name, want := range map[string][]string{
		"a": {"a", "b"}, "b": {"a", "b"}, "c": {"c"},
		"nowhere": {"nowhere"}, // a Cloud that does not exist leads nowhere else
	} {
		got, err := SameCloud(t.Context(), reader, name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", name, diff)
		}
	}
}
