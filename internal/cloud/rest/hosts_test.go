package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestHostsAreTakenAllOrNone(t *testing.T) {
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
		"hours that make no sense are none": {
			body: `[{"name":"a","gpu":false,"availableHours":-3},{"name":"b","gpu":false,"availableHours":1e99},{"name":"c","gpu":false}]`,
			want: []cloud.Host{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		},
		"null is no list":           {body: `null`, text: "holds no list of hosts"},
		"an object is no list":      {body: `{"hosts":[]}`, text: "wrong type"},
		"a host without a name":     {body: `[` + good + `,{"gpu":true}]`, text: "host 2 of the answer: its name is empty"},
		"a name that is not text":   {body: `[{"name":"a\u0000b","gpu":true}]`, text: "not printable"},
		"a host of unknown kind":    {body: `[{"name":"esxi-1"}]`, text: "does not say whether it has a GPU"},
		"a host of null kind":       {body: `[{"name":"esxi-1","gpu":null}]`, text: "does not say whether it has a GPU"},
		"two hosts of one name":     {body: `[` + good + `,` + good + `]`, text: "host 2 of the answer: another has its name"},
		"hours of the wrong type":   {body: `[{"name":"a","gpu":true,"availableHours":"many"}]`, text: "wrong type"},
		"an answer that is cut off": {body: `[` + good, text: "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeHosts(&call{method: http.MethodGet, op: "list hosts"}, jsonAnswer(test.body))
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
