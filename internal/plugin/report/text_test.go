package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsAndHeadersHaveNoSecrets(t *testing.T) {
	var r redactor
	pod := map[string]any{
		"args":        []any{"--api-token", "abc", "--token", "--verbose", "--name", "shown"},
		"httpHeaders": []any{map[string]any{"name": "Authorization", "value": "abc"}, map[string]any{"name": "Host", "value": "shown"}},
	}
	want := map[string]any{
		"args":        []any{"--api-token", redacted, "--token", "--verbose", "--name", "shown"},
		"httpHeaders": []any{map[string]any{"name": "Authorization", "value": redacted}, map[string]any{"name": "Host", "value": "shown"}},
	}
	if diff := cmp.Diff(want, any(r.fields(pod))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextHasNoSecrets(t *testing.T) {
	r := &redactor{}
	r.hide("https://admin:hunter22@cloud.example.com:8443/api")
	r.hide("http://vcenter")
	for name, tc := range map[string]struct{ text, want string }{
		"nothing secret":                  {"VM 23ce5cec is as the spec says at 12:30:00", "VM 23ce5cec is as the spec says at 12:30:00"},
		"a page of this project":          {"see https://github.com/privatecloud/operator/blob/main/docs/vm.md#tag-a-vm", "see https://github.com/privatecloud/operator/blob/main/docs/vm.md#tag-a-vm"},
		"a page that only looks like one": {"https://github.com/privatecloud/operator@evil.example.com/x", "https://REDACTED"},
		"a URL":                           {`Get "https://other.example.com/v1?x=1": EOF`, `Get "https://REDACTED": EOF`},
		"a host":                          {"cannot reach CLOUD.example.com", "cannot reach REDACTED"},
		"a host with a port":              {"cannot reach cloud.example.com:8443 now", "cannot reach REDACTED now"},
		"a host below it":                 {"api.cloud.example.com", "api.REDACTED"},
		"a short host":                    {"to vcenter: refused", "to REDACTED: refused"},
		"a short host within a word":      {"vcenters", "vcenters"},
		"user and password":               {"admin used hunter22", "REDACTED used REDACTED"},
		"an address":                      {"dial tcp 203.0.113.7:443: connect: connection refused", "dial tcp REDACTED: connect: connection refused"},
		"two addresses":                   {"read tcp 10.0.0.1:3->203.0.113.7:443: EOF", "read tcp REDACTED->REDACTED: EOF"},
		"an address of IPv6":              {"dial tcp [2001:db8::1]:443: EOF", "dial tcp REDACTED: EOF"},
		"a name that is looked up":        {"lookup old.example.com on 10.96.0.10:53: no such host", "lookup REDACTED on REDACTED: no such host"},
		"a certificate of other names":    {"x509: certificate is valid for a.example, b.example, not c.example", "x509: certificate is valid for REDACTED"},
		"a bearer token":                  {"Authorization: Bearer abcdef.123456", "Authorization: REDACTED"},
		"a token alone":                   {"sent bearer abcdef123456", "sent bearer REDACTED"},
		"a JWT":                           {"got eyJhbGciOi.eyJzdWIi.sig-1", "got REDACTED"},
		"a field of JSON":                 {`{"msg":"x","accessToken":"se,c\"ret","n":1}`, `{"msg":"x","accessToken":REDACTED,"n":1}`},
		"a field of JSON within JSON":     {`{"error":"got {\"password\":\"s3cret word\"}"}`, `{"error":"got {\"password\":REDACTED}"}`},
		"a parameter":                     {"api_key=s3cret&n=1", "api_key=REDACTED&n=1"},
		"a key of a certificate":          {"x -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- y", "x REDACTED y"},
		"a key that is cut off":           {"x -----BEGIN PRIVATE KEY----- abc", "x REDACTED"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.text(tc.text); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
