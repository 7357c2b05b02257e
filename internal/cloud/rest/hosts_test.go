package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestDecodeHostsReturnsAllOrNone(t *testing.T) {
	t.Parallel()
	const good = `{"name":"esxi-1","gpu":true,"availableHours":399,"cpuUsageMHz":7,"new":{}}`
	for name, test := range map[string]struct {
		body string
		want []cloud.Host
		// text is a part of the error.
		text string
	}{
		"a host with all that is known of it": {body: `[` + good + `]`, want: []cloud.Host{{Name: "esxi-1", GPU: true, AvailableHours: 399}}},
		"no hosts":                            {body: `[]`, want: []cloud.Host{}},
		"hours out of range count as 0": {
			body: `[{"name":"a","gpu":false,"availableHours":-3},{"name":"b","gpu":false,"availableHours":1e99},{"name":"c","gpu":false}]`,
			want: []cloud.Host{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		},
		"null instead of a list":       {body: `null`, text: "holds no list of hosts"},
		"an object instead of a list":  {body: `{"hosts":[]}`, text: "wrong type"},
		"a host without a name":        {body: `[` + good + `,{"gpu":true}]`, text: "host 2 of the answer: its name is empty"},
		"a name that is not printable": {body: `[{"name":"a\u0000b","gpu":true}]`, text: "not printable"},
		"a host without gpu":           {body: `[{"name":"esxi-1"}]`, text: "does not say whether it has a GPU"},
		"a host with gpu null":         {body: `[{"name":"esxi-1","gpu":null}]`, text: "does not say whether it has a GPU"},
		"two hosts with the same name": {body: `[` + good + `,` + good + `]`, text: "host 2 of the answer: another has its name"},
		"hours of the wrong type count as 0": {
			body: `[{"name":"a","gpu":true,"availableHours":"many"}]`, want: []cloud.Host{{Name: "a", GPU: true}},
		},
		"fields that differ in their case alone": {
			body: `[{"name":"a","gpu":true,"Name":"b","GPU":false,"availablehours":3}]`, want: []cloud.Host{{Name: "a", GPU: true}},
		},
		"gpu of the wrong type":     {body: `[{"name":"esxi-1","gpu":"yes"}]`, text: "does not say whether it has a GPU"},
		"a name of the wrong type":  {body: `[{"name":7,"gpu":true}]`, text: "host 1 of the answer: its name is empty"},
		"a host that is no object":  {body: `["esxi-1"]`, text: "host 1 of the answer: it is not an object"},
		"an answer that is cut off": {body: `[` + good, text: "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeHosts(&call{method: http.MethodGet, op: "list hosts"}, jsonAnswer(test.body), newStream(strings.NewReader(test.body)), nil)
			if test.text != "" {
				wantOutcome(t, asError(err), outcome{Kind: cloud.Unreadable})
				if err != nil && !strings.Contains(err.Error(), test.text) {
					t.Errorf("got %q, want %q in it", err, test.text)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("hosts, %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
