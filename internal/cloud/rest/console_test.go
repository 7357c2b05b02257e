package rest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestConsoleIsRead(t *testing.T) {
	t.Parallel()
	server := reply{status: 200, body: `{"id":"i-1","name":"web","state":"ACTIVE"}`}
	for name, test := range map[string]struct {
		replies []reply
		lines   int
		want    string
		kind    cloud.Kind
		says    string
	}{
		"the lines that were asked for":          {replies: []reply{{status: 200, body: `{"output":"b\nc\n"}`}}, lines: 2, want: "b\nc\n"},
		"more lines than asked for: the last":    {replies: []reply{{status: 200, body: `{"output":"a\nb\nlogin: "}`}}, lines: 2, want: "b\nlogin: "},
		"nothing":                                {replies: []reply{{status: 200, body: `{"output":""}`}}, lines: 2},
		"not UTF-8: replaced":                    {replies: []reply{{status: 200, body: "{\"output\":\"a\xffb\"}"}}, lines: 2, want: "a\ufffdb"},
		"control characters stay":                {replies: []reply{{status: 200, body: `{"output":"\u001b[1mb\r\n"}`}}, lines: 2, want: "\x1b[1mb\r\n"},
		"more bytes than are kept: the last":     {replies: []reply{{status: 200, body: `{"output":"` + strings.Repeat("x", cloud.MaxConsole) + `y"}`}}, lines: 2, want: strings.Repeat("x", cloud.MaxConsole-1) + "y"},
		"more than an answer may have":           {replies: []reply{{status: 200, body: `{"output":"` + strings.Repeat("x", maxBody) + `"}`}}, lines: 2, kind: cloud.Unreadable},
		"no output":                              {replies: []reply{{status: 200, body: `{"output":null}`}}, lines: 2, kind: cloud.Unreadable, says: "no output"},
		"the server is being built":              {replies: []reply{problemReply(409, "invalidState")}, lines: 2, kind: cloud.Busy},
		"a 409 without a code":                   {replies: []reply{{status: 409, body: `{}`}}, lines: 2, kind: cloud.Busy},
		"there is no server":                     {replies: []reply{problemReply(404, "notFound")}, lines: 2, kind: cloud.NotFound},
		"a 404 of the console alone":             {replies: []reply{problemReply(404, "notFound"), server}, lines: 2, kind: cloud.Busy},
		"this server has no console":             {replies: []reply{problemReply(422, "unsupported")}, lines: 2, kind: cloud.Unsupported},
		"the cloud fails once: it is read again": {replies: []reply{{status: 503}, {status: 200, body: `{"output":"a"}`}}, lines: 2, want: "a"},
		"no lines":                               {lines: 0, kind: cloud.Rejected, says: "ask for 1 to 1000"},
		"too many":                               {lines: 1001, kind: cloud.Rejected, says: "ask for 1 to 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := answering(test.replies...)
			c := serve(t, at).withCapabilities(allCapabilities()...)
			got, err := c.ReadConsole(t.Context(), "i-1", test.lines)
			if diff := cmp.Diff(outcome{Kind: test.kind}, outcomeOf(err)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want it to say %q", err, test.says)
			}
			if got != test.want {
				t.Errorf("%d bytes %.60q, want %d bytes %.60q", len(got), got, len(test.want), test.want)
			}
			if len(test.replies) == 0 && at.count() > 0 {
				t.Errorf("sent %v", at.sent())
			}
		})
	}
}
